"""How far an attempt came: where its ranks began, what they took, what of it is saved."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hpc_train.plan.states import Outcome
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.ranks import Beginning, read_beginning, read_exits, read_heartbeats
from hpc_train.runs.saved_models import read_models
from hpc_train.supervisor.outcome import AttemptOutcome


@dataclass(frozen=True, kw_only=True)
class AttemptSteps:
    """Optimizer steps since the run began.

    Attributes:
        first: In the checkpoint that the ranks went on from.
        last: The newest that any rank has told of.
        saved: In the newest checkpoint that a later attempt can go on from.
        failed_saves: What became of newer saves; empty where the newest one came about.
    """

    first: int
    last: int
    saved: int
    failed_saves: str = ""

    @property
    def newly_saved(self) -> int | None:
        """The newest checkpoint of this attempt; None where it made none."""
        return self.saved if self.saved > self.first else None


def attempt_steps(run: RunDir, attempt: int, *, assumed_first: int) -> AttemptSteps:
    """Read it from what the ranks left.

    Args:
        assumed_first: Where the attempt begins if its ranks never came to say so.
    """
    folder = run.attempt(attempt)
    beginning = read_beginning(folder) or Beginning(assumed_first)
    left = {item.step for item in beginning.damaged if not item.moved_aside}
    saved = newest_step(run, damaged=left)
    beats = read_heartbeats(folder)
    failed = next((beat.failed_saves for beat in beats if beat.rank == 0), None)
    steps = [beat.step for beat in beats]
    steps += [record.step for record in read_exits(folder) if record.step is not None]
    steps += _steps_of_models(run, folder)
    return AttemptSteps(
        first=beginning.step,
        last=max([beginning.step, saved, *steps]),
        saved=saved,
        failed_saves=failed.text if failed else "",
    )


def _steps_of_models(run: RunDir, attempt: AttemptDir) -> list[int]:
    """Those after which this attempt has saved a model: a full disk ends the signs of life first.

    By files of rank 0 alone. A link changes the one time of a file, and Lightning, which moves it
    to its place from elsewhere, gives it the other one by the node's clock: the earlier one counts.
    """
    try:
        began = attempt.beginning.stat().st_mtime
        found = [(it.step, Path(it.path).stat()) for it in read_models(run) if "://" not in it.path]
    except OSError:
        return []
    return [step for step, file in found if min(file.st_mtime, file.st_ctime) >= began]


def tell_beginning(
    run: RunDir,
    attempt: int,
    beginning: Beginning,
    say: Callable[[str], None],
    *,
    asked: int | None = None,
) -> None:
    """Write into the history where the ranks began, and which checkpoints they found damaged.

    Args:
        asked: How many ranks were to be there; a script that starts them may have another number.
    """
    first = {"attempt": attempt, "first_step": beginning.step}
    for item in beginning.damaged:
        damage = {**first, "step": item.step, "reason": item.reason}
        append_event(run.events, Event(time.time(), EventKind.CHECKPOINT_DAMAGED, damage))
        say(f"step {item.step} is damaged ({item.reason}): goes on from {beginning.step}")
    append_event(run.events, Event(time.time(), EventKind.RANKS_BEGAN, first))
    say(_where_they_begin(run, attempt, beginning.step))
    if None not in (asked, beginning.ranks) and beginning.ranks != asked:
        say(f"the script's own ranks: {beginning.ranks}, of {asked} that were asked for")


def _where_they_begin(run: RunDir, attempt: int, step: int) -> str:
    if step:
        return f"the ranks go on from step {step}"
    earlier = [it for it in attempts_in(read_events(run.events)) if it.attempt < attempt]
    return "the ranks begin anew" if any(it.last_step for it in earlier) else "the ranks begin"


def record_end(
    run: RunDir,
    attempt: int,
    ending: AttemptOutcome,
    steps: AttemptSteps,
    *,
    ended: float | None = None,
) -> None:
    """Write into the history how an attempt ended and how far it came.

    Args:
        ended: In seconds since the epoch, where that was not now.
    """
    completed = ending.outcome is Outcome.COMPLETED
    data = {
        "attempt": attempt,
        **{key: value for key, value in dataclasses.asdict(ending).items() if key != "gone"},
        "outcome": ending.outcome.value,
        "blamed": list(ending.blamed),
        "first_step": steps.first,
        "last_step": steps.last,
        "saved_step": steps.last if completed else steps.saved,
        **({"ended": ended} if ended is not None else {}),
        **({"failed_saves": steps.failed_saves} if steps.failed_saves else {}),
    }
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
