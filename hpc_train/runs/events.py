"""The history of a run: `events.jsonl`, append only, one JSON document a line.

One writer at a time (an advisory lock), one `write` call a line, and a reader that passes over a
torn last line: a node may die in the middle of a word. What came first is told by the order of the
lines and not by their times: the clocks of a login node and of a job's may be minutes apart (munge
refuses 5 of them, munged(8) --max-ttl), and one may be set back.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from hpc_train.plan.states import Outcome, RunState
from hpc_train.runs.lock import flock


class EventKind(str, Enum):
    """What can be told of a run; the fields that each carries are listed beside it."""

    SUBMITTED = "submitted"  # job_id, backend (slurm | local | foreground), left_out, clusters
    ATTEMPT_STARTED = "attempt_started"  # attempt, job_id, nodes, host, pid, unused
    PREFLIGHT = "preflight"  # attempt, verdict, bad_nodes, summary (lines)
    RANKS_STARTED = "ranks_started"  # attempt, nodes
    RANKS_BEGAN = "ranks_began"  # attempt, first_step: where the ranks say that they go on
    CHECKPOINT_DAMAGED = "checkpoint_damaged"  # attempt, step, reason, first_step
    ATTEMPT_ENDED = "attempt_ended"  # attempt, outcome, reason, …; ended: if not `time`
    DECIDED = "decided"  # attempt, action, reason, exclude
    WENT_ON = "went_on"  # attempt, action, job_id: the decision was carried out
    DEPENDENT = "dependent"  # job_id that waits for this run, dependency: its own, others: folders
    WAITS_FOR = "waits_for"  # run, folder: has to be complete before this one begins
    CANCEL_REQUESTED = "cancel_requested"  # by
    RUN_ENDED = "run_ended"  # state, reason
    SEEN = "seen"  # state, reason, beginnings: what Slurm said last, kept for when it is silent
    NOTE = "note"  # attempt, text


# With each of these the run has something to do again.
BEGINNINGS = (EventKind.SUBMITTED, EventKind.ATTEMPT_STARTED, EventKind.WENT_ON)

# Where they are, they are counted with.
_INTEGERS = ("attempt", "first_step", "last_step", "saved_step")


@dataclass(frozen=True)
class Event:
    """One line of the history; `time` is in seconds since the epoch."""

    time: float
    kind: EventKind
    data: dict[str, Any] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """A field of the event."""
        return self.data.get(key, default)


def append_event(path: Path, event: Event) -> None:
    """Add one line, durably, after whatever a torn writer left."""
    line = event_line(event)
    with path.open("a+b") as stream:
        flock(stream.fileno(), fcntl.LOCK_EX)
        size = stream.seek(0, os.SEEK_END)
        if size and _last_byte(stream.fileno(), size) != b"\n":
            line = "\n" + line
        stream.write(line.encode())
        stream.flush()
        os.fsync(stream.fileno())


def event_line(event: Event) -> str:
    """The event as a line of the file."""
    return json.dumps({"time": event.time, "event": event.kind.value, **event.data}) + "\n"


def read_events(path: Path) -> list[Event]:
    """All whole lines, in order, without those that are no event: torn, damaged, or newer.

    A job may begin before its submission is written down; that stands before it here.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return _in_order([event for event in map(_parse, text.splitlines()) if event is not None])


def since_last(events: Sequence[Event], *kinds: EventKind) -> Sequence[Event]:
    """The last event of these kinds and all that follow it; all there are where there is none."""
    places = [place for place, event in enumerate(events) if event.kind in kinds]
    return events[places[-1] :] if places else events


def is_cancel_asked(events: Sequence[Event]) -> bool:
    """Whether a cancel was asked for since somebody submitted the run, and it has not ended since.

    A job of which nobody has told is such a submission: it may begin before that is written down.
    """
    asked, known = False, set()
    for event in events:
        if event.kind is EventKind.CANCEL_REQUESTED:
            asked = True
        if event.kind in (EventKind.SUBMITTED, EventKind.RUN_ENDED):
            asked = False
        if event.kind is EventKind.ATTEMPT_STARTED and event.get("job_id") not in known:
            asked = False
        if event.kind in BEGINNINGS:
            known.add(event.get("job_id"))
    return asked


def end_of(events: Sequence[Event]) -> Event | None:
    """The run's end; None where there is none, or something has begun after it."""
    recent = since_last(events, *BEGINNINGS)
    return next((it for it in reversed(recent) if it.kind is EventKind.RUN_ENDED), None)


def seen(events: Sequence[Event], state: RunState, reason: str, now: float) -> Event:
    """What Slurm has just told, of the run as it is by these events."""
    count = sum(event.kind in BEGINNINGS for event in events)
    data = {"state": state.value, "reason": reason, "beginnings": count}
    return Event(now, EventKind.SEEN, data)


def last_seen(events: Sequence[Event]) -> Event | None:
    """What Slurm told last; None where something has begun since, told before this or after."""
    count = sum(event.kind in BEGINNINGS for event in events)
    told = [event for event in events if event.kind is EventKind.SEEN]
    return told[-1] if told and told[-1].get("beginnings") == count else None


def cancels(path: Path) -> int:
    """How often somebody has asked for a cancel."""
    return sum(event.kind is EventKind.CANCEL_REQUESTED for event in read_events(path))


def has_begun(events: Sequence[Event]) -> bool:
    """Whether an attempt is the newest thing that began; else a job is waited for."""
    recent = since_last(events, *BEGINNINGS)
    return bool(recent) and recent[0].kind is EventKind.ATTEMPT_STARTED


def _in_order(lines: Sequence[Event]) -> list[Event]:
    events: list[Event] = []
    for event in lines:
        of_submission = event.kind is EventKind.SUBMITTED
        events.insert(_beginning(events, event) if of_submission else len(events), event)
    return events


def _beginning(events: Sequence[Event], submitted: Event) -> int:
    """Where the submission of a job belongs: before the job's first word, if that came first."""
    of_job = [event for event in events if event.get("job_id") == submitted.get("job_id") != ""]
    if not of_job or of_job[0].kind is not EventKind.ATTEMPT_STARTED:
        return len(events)  # usually; or it is another job of the same number
    return events.index(of_job[0])


def _last_byte(descriptor: int, size: int) -> bytes:
    return os.pread(descriptor, 1, size - 1)


def _parse(line: str) -> Event | None:
    try:
        document = json.loads(line)
        event = Event(float(document.pop("time")), EventKind(document.pop("event")), document)
        if event.kind is EventKind.ATTEMPT_STARTED:
            event.data["attempt"]  # without its number it is no attempt
        elif event.kind is EventKind.ATTEMPT_ENDED:
            Outcome(event.get("outcome"))
        elif event.kind in (EventKind.RUN_ENDED, EventKind.SEEN):
            RunState(event.get("state"))
        return event if all(type(event.get(key, 0)) is int for key in _INTEGERS) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
