"""The attempts of a run, put together from its history. Pure over the events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hpc_train.plan.plan import Verb
from hpc_train.plan.policy import AttemptSummary, Refused
from hpc_train.plan.states import Outcome, RunState
from hpc_train.runs.events import (
    BEGINNINGS,
    Event,
    EventKind,
    end_of,
    has_begun,
    is_cancel_asked,
    last_seen,
    since_last,
)
from hpc_train.runs.ranks import Damaged

# Fields of the event at an attempt's end that its record takes as they are.
OF_THE_END = (
    *("reason", "rank", "node", "error", "where", "failed_step", "refused"),
    *("first_step", "last_step", "saved_step", "failed_saves"),
)


@dataclass(frozen=True, kw_only=True)
class AttemptRecord:
    """One attempt as the history tells it; what has not happened yet is None or empty.

    Times are in seconds since the epoch, steps are optimizer steps since the run began.
    `first_step` is where the ranks say that they began; until they say so, the newest checkpoint's.
    `damaged` are checkpoints that they found broken. `saved_step` is what the attempt left on disk,
    `kept_step` what of it a later attempt really went on from.
    """

    attempt: int
    job_id: str
    nodes: tuple[str, ...] = ()
    host: str = ""
    pid: int = 0
    started: float
    ended: float | None = None
    outcome: Outcome | None = None
    reason: str = ""
    decision: str = ""
    decision_reason: str = ""
    went_on_as: str = ""
    preflight: str = ""
    unused: str = ""  # what the job has, and the plan does not use
    verb: Verb = "fit"
    weights: str = ""  # what its model begins with, where the run has kept no step
    weights_left_out: tuple[str, ...] = ()  # layers that took none of them
    blamed: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    rank: int | None = None
    node: str = ""
    error: str = ""
    where: str = ""
    failed_step: int | None = None
    damaged: tuple[Damaged, ...] = ()
    refused: Refused = ""
    first_step: int = 0
    last_step: int = 0
    saved_step: int = 0
    kept_step: int = 0
    notes: tuple[str, ...] = ()  # what the run went on in spite of
    failed_saves: str = ""  # at its end, where its newest saves had failed

    @property
    def steps_lost(self) -> int:
        """Steps to be taken again: never saved, or found damaged by a later attempt."""
        return max(0, self.last_step - self.kept_step) if self.ended is not None else 0


def attempts_in(events: Sequence[Event]) -> list[AttemptRecord]:
    """All attempts, oldest first."""
    records: dict[int, AttemptRecord] = {}
    for event in events:
        number = event.get("attempt")
        if event.kind is EventKind.ATTEMPT_STARTED:
            records[number] = AttemptRecord(
                attempt=number,
                job_id=str(event.get("job_id", "")),
                nodes=tuple(event.get("nodes", ())),
                host=event.get("host", ""),
                pid=event.get("pid", 0),
                unused=event.get("unused", ""),
                verb=event.get("verb", "fit"),
                weights=event.get("weights", ""),
                weights_left_out=tuple(event.get("weights_left_out", ())),
                started=event.time,
                first_step=event.get("first_step", 0),
                saved_step=event.get("first_step", 0),
                kept_step=event.get("first_step", 0),
            )
        elif number in records:
            records[number] = replace(records[number], **_told_by(event, records[number]))
            if event.kind is EventKind.RANKS_BEGAN:
                _count_damage(records, number)
    return [records[number] for number in sorted(records)]


def _count_damage(records: dict[int, AttemptRecord], number: int) -> None:
    """What an attempt does not go on from is lost to those that took these steps."""
    first = records[number].first_step
    for earlier, record in records.items():
        if earlier < number and record.kept_step > first:
            records[earlier] = replace(record, kept_step=max(first, record.first_step))
    before = records.get(number - 1)  # what nobody had named may be there all the same
    if before is not None and before.kept_step < first <= before.last_step:
        records[number - 1] = replace(before, kept_step=first)


def summaries(attempts: Sequence[AttemptRecord]) -> list[AttemptSummary]:
    """What `decide` wants to know of the attempts that have ended."""
    return [
        AttemptSummary(
            attempt=record.attempt,
            outcome=record.outcome,
            ended=record.ended,
            reason=record.reason,
            blamed=record.blamed,
            first_step=record.first_step,
            saved_step=record.saved_step,
            error=record.error,
            failed_step=record.failed_step,
            refused=record.refused,
        )
        for record in attempts
        if record.outcome is not None and record.ended is not None
    ]


def ended_at(event: Event) -> float:
    """When an attempt ended, by the event that tells it: a later one may have had to write that."""
    told = event.get("ended")
    return float(told) if isinstance(told, (int, float)) else event.time


def since_submission(events: Sequence[Event]) -> list[AttemptRecord]:
    """The attempts since a person last submitted or resumed the run: budgets count from there."""
    later = since_last(events, EventKind.SUBMITTED)
    begun = {event.get("attempt") for event in later if event.kind is EventKind.ATTEMPT_STARTED}
    return [record for record in attempts_in(events) if record.attempt in begun]


def job_ids(events: Sequence[Event]) -> list[str]:
    """The jobs that have carried the run, in the order in which they are told of."""
    jobs = (event.get("job_id") for event in events if event.kind in BEGINNINGS)
    return [str(job) for job in jobs if job]


def newest_job_id(events: Sequence[Event]) -> str:
    """The job that carries the run now; empty for one that was never submitted."""
    return next(reversed(job_ids(events)), "")


def _told_by(event: Event, record: AttemptRecord) -> dict[str, Any]:
    if event.kind is EventKind.ATTEMPT_ENDED:
        told = {key: event.data[key] for key in OF_THE_END if key in event.data}
        return told | {
            "kept_step": event.get("saved_step", record.saved_step),
            "ended": ended_at(event),
            "outcome": Outcome(event.get("outcome")),
            "blamed": tuple(event.get("blamed", ())),
        }
    if event.kind is EventKind.DECIDED:
        return {
            "decision": event.get("action", ""),
            "decision_reason": event.get("reason", ""),
            "excluded": tuple(event.get("exclude", ())),
        }
    if event.kind is EventKind.WENT_ON:
        return {"went_on_as": str(event.get("job_id", ""))}
    if event.kind is EventKind.PREFLIGHT:
        return {"preflight": event.get("summary", "")}
    if event.kind is EventKind.RANKS_STARTED:
        return {"nodes": tuple(event.get("nodes", ()))}
    if event.kind is EventKind.RANKS_BEGAN:
        first = event.get("first_step", 0)
        return {"first_step": first, "saved_step": first, "kept_step": first}
    if event.kind is EventKind.CHECKPOINT_DAMAGED:
        damaged = Damaged(event.get("step", 0), event.get("reason", ""))
        return {"damaged": (*record.damaged, damaged)}
    if event.kind is EventKind.NOTE:
        return {"notes": (*record.notes, str(event.get("text", "")))}
    return {}


def has_ended(events: Sequence[Event]) -> bool:
    """Whether the history itself tells that a run has ended; Slurm may know it of others."""
    if end_of(events) or (is_cancel_asked(events) and not has_begun(events)):
        return True
    told = last_seen(events)
    return told is not None and RunState(told.get("state")).ended
