"""Where the time of a run went, from its submission to its end. Pure.

Every second is in one part. The ranks count what they spend in training, evaluating and saving, by
their own monotonic clocks; the supervisor tells when an attempt began and ended. What is between is
the start-up: Python, torch, Lightning, the meeting of the ranks, reading the checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hpc_train.runs.events import Event, EventKind, since_last
from hpc_train.runs.history import AttemptRecord, attempts_in, ended_at
from hpc_train.runs.left_open import is_followed, last_sign
from hpc_train.runs.ranks import Heartbeat

# In the order in which they are shown; what each is, in words.
PARTS = {
    "training": "training: steps that were kept",
    "evaluation": "validation and test",
    "saving": "training stood still for a save",
    "lost": "steps that had to be taken again, and time without a step",
    "startup": "start of Python and the ranks, reading the checkpoint",
    "preflight": "checking nodes and network",
    "ending": "from the last sign of life to the attempt's end",
    "queue": "waiting for nodes",
}
GOOD = ("training", "evaluation")
TOLERANCE = 0.01  # of the wall time; a larger difference between clocks is told


@dataclass(frozen=True, kw_only=True)
class AttemptTime:
    """One attempt's seconds by part, the queue before it included.

    Attributes:
        began: When it was submitted or put back into the queue, in seconds since the epoch.
        started: When its supervisor began; None while it waits.
        devices: GPUs it held; the nodes of a run without GPUs.
        steps: Optimizer steps it took.
        exact: Its ranks have counted; else the training's time is an estimate.
    """

    attempt: int
    began: float
    started: float | None
    ended: float
    seconds: dict[str, float]
    devices: int = 0
    ranks: int = 0
    steps: int = 0
    exact: bool = True

    @property
    def steps_per_s(self) -> float | None:
        """While it trained, lost steps included; None without a step."""
        trained_s = self.seconds.get("training", 0.0) + self.seconds.get("lost", 0.0)
        return self.steps / trained_s if self.steps > 0 and trained_s > 0 else None


@dataclass(frozen=True, kw_only=True)
class Goodput:
    """The seconds of a run by part, in wall time and times the devices that were held."""

    attempts: tuple[AttemptTime, ...]
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> dict[str, float]:
        """Wall time by part."""
        return {part: sum(it.seconds.get(part, 0.0) for it in self.attempts) for part in PARTS}

    @property
    def device_seconds(self) -> dict[str, float]:
        """The same times the devices; nothing is held in the queue."""
        return {
            part: sum(it.devices * it.seconds.get(part, 0.0) for it in self.attempts)
            for part in PARTS
            if part != "queue"
        }

    @property
    def wall_s(self) -> float:
        """From submission to end, without the time between an end and a person's `resume`."""
        return sum(self.seconds.values())

    @property
    def share(self) -> float | None:
        """The part of the wall time that was worth something; None before there is any."""
        return sum(self.seconds[part] for part in GOOD) / self.wall_s if self.wall_s > 0 else None

    @property
    def device_share(self) -> float | None:
        """The same of what the devices were held for."""
        held = self.device_seconds
        total = sum(held.values())
        return sum(held[part] for part in GOOD) / total if total > 0 else None


@dataclass(frozen=True, kw_only=True)
class AttemptFacts:
    """What the run directory tells of an attempt beside its history.

    Attributes:
        beat: The newest sign of life of rank 0, or of another where it gave none.
        ranks: That gave one.
    """

    beat: Heartbeat | None = None
    ranks: int = 0


def goodput(
    events: Sequence[Event],
    facts: dict[int, AttemptFacts],
    *,
    gpus_per_node: int,
    until: float,
    is_open: bool,
) -> Goodput:
    """Share the time of a run out.

    Args:
        facts: By attempt.
        until: Now, for a run that goes on; for one that left no end, its last sign of life.
        is_open: Whether it goes on, so that it may be waiting now.
    """
    records, times, notes = attempts_in(events), [], []
    for record in records:
        fact = facts.get(record.attempt, AttemptFacts())
        ended = _end_of(record, fact, records, events, until)
        began = _waiting_since(events, record.started)
        time = _attempt_time(record, fact, events, began=began, ended=ended)
        per_node = time.ranks // max(1, len(record.nodes)) or gpus_per_node
        held = len(_started(events, record.attempt).get("nodes", ())) or len(record.nodes) or 1
        devices = held * (per_node if gpus_per_node else 1)
        times.append(replace(time, devices=devices))
        if ended < record.started:
            notes.append(f"attempt {record.attempt} ends before it begins: a clock was changed")
    if any(not it.exact for it in times):
        notes.append("some ranks did not count their phases: training includes saves there")
    waits = _waits_now(events, records, until, is_open=is_open)
    if waits is not None:
        times.append(waits)
    return Goodput(attempts=tuple(times), notes=(*notes, *_disagreement(events, times, until)))


def _attempt_time(
    record: AttemptRecord,
    facts: AttemptFacts,
    events: Sequence[Event],
    *,
    began: float,
    ended: float,
) -> AttemptTime:
    wall_s, beat = max(0.0, ended - record.started), facts.beat
    own = _of(events, record.attempt)
    checks = (event for event in own if event.kind is EventKind.PREFLIGHT)
    preflight_s = sum(_number(event.get("seconds")) for event in checks)
    exact = beat is None or bool(beat.seconds)
    counted = _counted(beat, record, wall_s, preflight_s, ended)
    ranks_began = [event.time for event in own if event.kind in _BEGAN]
    if not exact and ranks_began:
        counted["training"] = max(0.0, ended - max(ranks_began))
    counted["preflight"] = preflight_s
    known_s = sum(counted.values())
    scale = wall_s / known_s if known_s > wall_s else 1.0  # clocks that do not agree
    seconds = {part: spent * scale for part, spent in counted.items()}
    seconds["startup"] = max(0.0, wall_s - known_s)
    last_step = max(record.last_step, beat.step if beat else 0)
    steps = max(0, last_step - record.first_step)
    if record.ended is not None:
        lost_s = seconds["training"] * (record.steps_lost / steps if steps else 1.0)
        seconds["training"] -= lost_s
        seconds["lost"] += lost_s
    return AttemptTime(
        attempt=record.attempt,
        began=began,
        started=record.started,
        ended=max(ended, record.started),
        seconds=seconds | {"queue": max(0.0, record.started - began)},
        ranks=facts.ranks,
        steps=steps,
        exact=exact,
    )


_BEGAN = (EventKind.RANKS_STARTED, EventKind.RANKS_BEGAN)


def _counted(
    beat: Heartbeat | None, record: AttemptRecord, wall_s: float, preflight_s: float, ended: float
) -> dict[str, float]:
    """What the ranks tell of an attempt, without its start-up."""
    told = beat.seconds if beat else {}
    counted = {
        "training": told.get("train", 0.0),
        "evaluation": told.get("validate", 0.0),
        "saving": told.get("save", 0.0),
        "lost": 0.0,
        "ending": told.get("end", 0.0),
    }
    if beat is None or not told:
        return counted
    if record.ended is not None and beat.phase == "train":  # it hung, or was killed in a step
        still_s = min(counted["training"], max(0.0, beat.time - beat.moved))
        counted["training"] -= still_s
        counted["lost"] = still_s
    # A clock that goes wrong on the node must not take more than what nobody has counted.
    room_s = wall_s - preflight_s - sum(counted.values()) - told.get("start", 0.0)
    counted["ending"] += min(max(0.0, room_s), max(0.0, ended - beat.time))
    return counted


def _end_of(
    record: AttemptRecord,
    facts: AttemptFacts,
    records: Sequence[AttemptRecord],
    events: Sequence[Event],
    until: float,
) -> float:
    """Its end; of one that left none the last that is known of it, or now."""
    if record.ended is not None:
        return record.ended
    later = [other.started for other in records if other.attempt > record.attempt]
    if later or not is_followed(events):
        return min([until, *later])
    return last_sign(events, [facts.beat.time] if facts.beat else [], until)


def _waiting_since(events: Sequence[Event], started: float) -> float:
    """When the wait for this start began: submission, or the end of the attempt before."""
    kinds = (EventKind.SUBMITTED, EventKind.ATTEMPT_ENDED)
    times = (_time(event) for event in events if event.kind in kinds)
    return max((time for time in times if time <= started), default=started)


def _time(event: Event) -> float:
    return ended_at(event) if event.kind is EventKind.ATTEMPT_ENDED else event.time


def _waits_now(
    events: Sequence[Event], records: Sequence[AttemptRecord], until: float, *, is_open: bool
) -> AttemptTime | None:
    """The wait of a run whose next attempt has not begun, or that was ended before it did."""
    kinds = (EventKind.SUBMITTED, EventKind.ATTEMPT_STARTED, EventKind.ATTEMPT_ENDED)
    recent = since_last(events, *kinds)
    newest = recent[0] if recent and recent[0].kind in kinds else None
    if newest is None or newest.kind is EventKind.ATTEMPT_STARTED:
        return None
    over = [e.time for e in recent if e.kind is EventKind.RUN_ENDED]
    if not over and not is_open and newest.kind is EventKind.ATTEMPT_ENDED:
        return None
    ended = over[-1] if over else until
    waited_s = max(0.0, ended - _time(newest))
    if waited_s < 1.0:
        return None
    number = max((record.attempt for record in records), default=-1) + 1
    return AttemptTime(
        attempt=number,
        began=_time(newest),
        started=None,
        ended=ended,
        seconds={"queue": waited_s},
    )


def _disagreement(events: Sequence[Event], times: Sequence[AttemptTime], until: float) -> list[str]:
    """Whether the parts are not what lies between the first and the last line of the history."""
    submissions = [event.time for event in events if event.kind is EventKind.SUBMITTED]
    if not times or len(submissions) != 1:
        return []
    ends = [event.time for event in events if event.kind is EventKind.RUN_ENDED]
    elapsed_s = (ends[-1] if ends else until) - submissions[0]
    total_s = sum(sum(it.seconds.values()) for it in times)
    if abs(elapsed_s - total_s) <= max(2.0, TOLERANCE * abs(elapsed_s)):
        return []
    return [
        (
            f"the parts add up to {total_s:.0f} s, and the history lasts {elapsed_s:.0f} s:"
            " clocks of the nodes differ, or one was changed"
        )
    ]


def _started(events: Sequence[Event], attempt: int) -> Event:
    kind = EventKind.ATTEMPT_STARTED
    return next(event for event in _of(events, attempt) if event.kind is kind)


def _of(events: Sequence[Event], attempt: int) -> list[Event]:
    return [event for event in events if event.get("attempt") == attempt]


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
