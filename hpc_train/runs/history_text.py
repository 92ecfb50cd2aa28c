"""The history of a run as a person reads it: lines of plain text, the same in a pipe."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Sequence

from hpc_train.plan.hostlist import folded
from hpc_train.plan.states import RunState
from hpc_train.runs.status import RunStatus
from hpc_train.runs.history import AttemptRecord

__all__ = ["LIST_HEADER", "clock", "history_lines", "duration", "list_row", "metrics_text"]

LIST_HEADER = ("NAME", "RUN", "STATE", "JOB", "ATTEMPTS", "STEP", "SUBMITTED", "WHY")


WIDTH = 200
MOST_LINES = 3
INDENT = " " * 13


def history_lines(status: RunStatus, now: float) -> Iterator[str]:
    """When, where, what happened, what was decided and why, steps lost."""
    why = f": {status.reason}" if status.reason else ""
    yield _shortened(f"{status.name}  {status.state.value}{why}")
    yield f"  run        {status.run}"
    yield f"  folder     {status.run_dir}"
    yield f"  job        {status.job_id or '-'} ({status.backend or 'not submitted'})"
    if status.start_estimate:
        yield f"  starts     {status.start_estimate} (Slurm's estimate)"
    yield f"  step       {status.step}"
    if status.metrics:
        yield _shortened(f"  metrics    {metrics_text(status)}")
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
    yield from _told("nodes", [folded(attempt.nodes)])
    if attempt.preflight:
        yield from _told("network", _network(attempt))
    for item in attempt.damaged:
        text = f"step {item.step} is damaged ({item.reason}): goes on from {attempt.first_step}"
        yield from _told("damaged", textwrap.wrap(text, WIDTH - len(INDENT)))
    if attempt.reason:
        yield from _told("what", textwrap.wrap(attempt.reason, WIDTH - len(INDENT)))
    if attempt.ended is not None:
        yield (
            f"    steps    {attempt.first_step} to {attempt.last_step}, {attempt.steps_lost} lost"
        )
    if attempt.decision:
        why = f"{attempt.decision}: {attempt.decision_reason}"
        yield from _told("decided", textwrap.wrap(why, WIDTH - len(INDENT)))
    if attempt.went_on_as and attempt.went_on_as != attempt.job_id:
        yield f"    went on  as job {attempt.went_on_as}"


def _network(attempt: AttemptRecord) -> list[str]:
    lines = attempt.preflight.splitlines()
    if len(lines) <= MOST_LINES and max(map(len, lines)) <= WIDTH - len(INDENT):
        return lines
    more = f"all of it: hpc-train preflight RUN --attempt {attempt.attempt}"
    return [*lines[: MOST_LINES - 1], more]


def _told(what: str, lines: Sequence[str]) -> Iterator[str]:
    """At most three lines, none of them longer than a person reads."""
    for number, line in enumerate(lines[:MOST_LINES]):
        label = f"    {what:<9}" if number == 0 else INDENT
        cut = number == MOST_LINES - 1 and len(lines) > MOST_LINES
        yield _shortened(f"{label}{line} ..." if cut else f"{label}{line}")


def _shortened(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..."
