"""The newest attempt where it has no end of its own, since it was killed with its job. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hpc_train.plan.states import CANCEL_ASKED, Outcome, RunState, scancelled
from hpc_train.runs.events import Event, EventKind, is_cancel_asked, since_last
from hpc_train.runs.history import AttemptRecord


@dataclass(frozen=True)
class LastKnown:
    """What is known of a run's ranks from outside.

    Attributes:
        signs: When they gave a sign of life; seconds since the epoch, as `now`.
        step: The newest that any of them has told of.
        saved_step: The run's newest checkpoint.
    """

    now: float
    signs: Sequence[float]
    step: int
    saved_step: int


def lacks_end(events: Sequence[Event]) -> bool:
    """Whether an attempt is open: it goes on, or was killed."""
    kinds = (EventKind.ATTEMPT_STARTED, EventKind.ATTEMPT_ENDED)
    told = [event.kind for event in events if event.kind in kinds]
    return bool(told) and told[-1] is EventKind.ATTEMPT_STARTED


def before_resumed(events: Sequence[Event]) -> Sequence[Event]:
    """What was told up to the submission that followed the newest attempt's start; all without."""
    places = {event.kind: place for place, event in enumerate(events)}
    start = places.get(EventKind.ATTEMPT_STARTED, len(events))
    later = (
        place for place in range(start, len(events)) if events[place].kind is EventKind.SUBMITTED
    )
    return events[: next(later, len(events))]


def is_followed(events: Sequence[Event]) -> bool:
    """Whether somebody has resumed the run since its newest attempt began."""
    return len(before_resumed(events)) < len(events)


def who_cancelled(events: Sequence[Event]) -> str:
    """Who cancelled the run while its newest attempt was the last that had begun; else empty.

    By its history alone, which holds what Slurm has told somebody who asked.
    """
    until_then = before_resumed(events)
    if is_cancel_asked(until_then):
        return CANCEL_ASKED
    told = [
        event
        for event in since_last(until_then, EventKind.ATTEMPT_STARTED)
        if event.kind is EventKind.SEEN
    ]
    return scancelled() if told and told[-1].get("state") == RunState.CANCELLED.value else ""


def last_sign(events: Sequence[Event], ranks: Iterable[float], now: float) -> float:
    """When the newest attempt gave its last sign of life, or was cancelled.

    Args:
        ranks: When its ranks have given theirs.
        now: No clock of a node that is ahead makes it later.
    """
    own = since_last(before_resumed(events), EventKind.ATTEMPT_STARTED)
    told = [event.time for event in own if event.kind is not EventKind.SEEN]
    return max(told[0], min(now, max([*told, *ranks]))) if told else now


def with_known_end(
    attempts: Sequence[AttemptRecord],
    events: Sequence[Event],
    state: RunState,
    known: LastKnown,
) -> list[AttemptRecord]:
    """The attempts, with what is known of the newest one's end where only its supervisor knew.

    An attempt that another submission has followed, or whose run has ended, is over.

    Args:
        state: The run's.
    """
    is_resumed = is_followed(events)
    if not attempts or attempts[-1].ended is not None or not (is_resumed or state.ended):
        return list(attempts)
    newest = attempts[-1]
    is_cancelled = state is RunState.CANCELLED and not is_resumed
    who = who_cancelled(events) or (scancelled() if is_cancelled else "")
    saved = max(newest.first_step, known.saved_step)
    ended = replace(
        newest,
        ended=last_sign(events, known.signs, known.now),
        outcome=Outcome.CANCELLED if who else None,
        reason=who,
        last_step=max(saved, known.step),
        saved_step=saved,
        kept_step=saved,
    )
    return [*attempts[:-1], ended]
