"""Notes in the run's history: of lines of env.setup that failed, and what the ranks leave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from hpc_train.plan.plan import ShellPlan
from hpc_train.plan.setup_watch import SetupTold
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir

WIDTH = 120  # of a line as it is shown


def tell_notes(run: RunDir, attempt: int, notes: Iterable[str], say: Callable[[str], None]) -> None:
    """Write each into the history, unless the attempt's history has it."""
    if not (new := list(notes)):
        return
    there = next(it.notes for it in attempts_in(read_events(run.events)) if it.attempt == attempt)
    for note in new:
        if note not in there:
            data = {"attempt": attempt, "text": note}
            append_event(run.events, Event(time.time(), EventKind.NOTE, data))
            say(f"note: {note}")


def setup_notes(shell: ShellPlan, told: SetupTold) -> Iterator[str]:
    """What failed and the job went on, a note each."""
    for item, code in told.failed.items():
        yield f"env.setup.{item} (`{_shown(shell.own_line(item))}`) exited with {code}"
    if told.has_own_trap:
        yield (
            "env.setup sets a trap of its own for ERR, so lines of it that fail are not noted:"
            " without it they are; LINE || exit 1 ends the job"
        )


def _shown(line: str) -> str:
    """The line, short and on one line; where it has several, the whole is named by its first."""
    first, more, _ = line.strip().partition("\n")
    return f"{first[:WIDTH]} ..." if more or len(first) > WIDTH else first
