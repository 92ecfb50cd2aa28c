"""The history of a run as a person reads it: lines of plain text, the same in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from hpc_train.plan.states import RunState
from hpc_train.report.status import RunStatus
from hpc_train.store.history import AttemptRecord

__all__ = ["LIST_HEADER", "clock", "diary_lines", "duration", "list_row", "metrics_text"]

LIST_HEADER = ("NAME", "RUN", "STATE", "JOB", "ATTEMPTS", "STEP", "SUBMITTED", "WHY")


def diary_lines(status: RunStatus, now: float) -> Iterator[str]:
    """When, where, what happened, what was decided and why, steps lost."""
    yield f"{status.name}  {status.state.value}" + (f": {status.reason}" if status.reason else "")
    yield f"  run        {status.run}"
    yield f"  folder     {status.run_dir}"
    yield f"  job        {status.job_id or '-'} ({status.backend or 'not submitted'})"
    if status.start_estimate:
        yield f"  starts     {status.start_estimate} (Slurm's estimate)"
    yield f"  step       {status.step}"
    if status.metrics:
        yield f"  metrics    {metrics_text(status)}"
    for attempt in status.attempts:
        yield from _attempt_lines(attempt, status.state, now)


def list_row(status: RunStatus) -> tuple[str, ...]:
    """One line of `hpc-train list`, by the columns of LIST_HEADER."""
    return (
        status.name,
        status.run,
        status.state.value,
        status.job_id or "-",
        str(len(status.attempts)),
        str(status.step),
        clock(status.submitted) if status.submitted else "-",
        "" if status.state is RunState.COMPLETED else status.reason,
    )


def metrics_text(status: RunStatus) -> str:
    """The metrics as `name value` pairs, four digits."""
    pairs = (
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in status.metrics.items()
    )
    return "  ".join(pairs)


def clock(seconds: float) -> str:
    """Local date and time to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def duration(seconds: float) -> str:
    """`42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _attempt_lines(attempt: AttemptRecord, state: RunState, now: float) -> Iterator[str]:
    ended = attempt.ended if attempt.ended is not None else now
    running = attempt.ended is None and not state.ended
    how = attempt.outcome.value.replace("_", " ") if attempt.outcome else ""
    yield (
        f"  attempt {attempt.attempt}  {clock(attempt.started)}  "
        f"{'running for' if running else how + ' after' if how else 'left no end,'}"
        f" {duration(ended - attempt.started)}  job {attempt.job_id}"
    )
    yield f"    nodes    {_shortened(attempt.nodes)}"
    if attempt.preflight:
        yield f"    network  {attempt.preflight}"
    for item in attempt.damaged:
        yield (
            f"    damaged  step {item.step} is damaged ({item.reason}):"
            f" goes on from {attempt.first_step}"
        )
    if attempt.reason:
        yield f"    what     {attempt.reason}"
    if attempt.ended is not None:
        yield (
            f"    steps    {attempt.first_step} to {attempt.last_step}, {attempt.steps_lost} lost"
        )
    if attempt.decision:
        yield f"    decided  {attempt.decision}: {attempt.decision_reason}"
    if attempt.went_on_as and attempt.went_on_as != attempt.job_id:
        yield f"    went on  as job {attempt.went_on_as}"


def _shortened(nodes: Sequence[str]) -> str:
    return ", ".join(nodes[:8]) + (f" and {len(nodes) - 8} more" if len(nodes) > 8 else "")
