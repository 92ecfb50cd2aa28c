"""One row of the live page, and which rows are shown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hpc_train.plan.states import RunState
from hpc_train.plan.sweep_plan import point_text
from hpc_train.runs.history_text import history_lines, printable, shortened
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_table import COLUMNS, fitted_widths
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir
from hpc_train.runs.sweep_status import SweepStatus

HEADER = ("NAME", "STATE", "STEP", "RATE", "LOSS", "LEFT", "LIMIT", "GPU", "RUN", "WHY")
# Left out first where there is no room; WHY is told below the table as well.
LEAST_NEEDED = ("RUN", "LIMIT", "RATE", "LOSS", "GPU", "LEFT", "STEP")
LOG_LINES = 200  # of a log, the last ones
GOOD_WIDTHS = (14, 20)  # of NAME and WHY
NARROW = 60
# What is left out of a run that trains stands in WHY, by these words.
_MOVED = {"RATE": "{}", "LOSS": "loss {}", "GPU": "GPU {}", "LEFT": "{} left", "STEP": "step {}"}


@dataclass(frozen=True)
class WatchedRun:
    """A run or a sweep, and what is known of it.

    Attributes:
        sweep: Its points, of a sweep.
        gpu_percent: How busy its GPUs are now; None where nobody tells.
    """

    entry: RunDir | SweepDir
    status: RunStatus
    sweep: SweepStatus | None = None
    gpu_percent: float | None = None

    @cached_property
    def words(self) -> str:
        """What a filter looks through."""
        of = self.status
        return f"{of.name} {of.run} {of.job_id} {of.state.value} {of.reason}".lower()

    @cached_property
    def cells(self) -> list[str]:
        """As the header names them."""
        gpu = "" if self.gpu_percent is None else f"{self.gpu_percent:.0f}%"
        found = (gpu if name == "GPU" else printable(COLUMNS[name](self.status)) for name in HEADER)
        return ["" if cell == "-" else cell for cell in found]

    def cells_in(self, widths: Sequence[int]) -> list[str]:
        """The same, each in its width; what has none is told in the last one."""
        whole = dict(zip(HEADER, self.cells, strict=True))
        room = dict(zip(HEADER, widths, strict=True))
        if self.status.state is RunState.RUNNING:
            moved = [_MOVED[it].format(whole[it]) for it in _MOVED if whole[it] and not room[it]]
            whole["WHY"] = "  ".join(filter(None, (whole["WHY"], *moved)))
        return [shortened(whole[name], room[name]) for name in HEADER]


@dataclass(frozen=True)
class RunsSnapshot:
    """All runs at one time.

    Attributes:
        active: What waits or trains, the newest first.
        ended: The others, the newest first.
        unread: Runs that are there and have not been read yet.
        notes: What a person should know beside them, a line each.
    """

    active: tuple[WatchedRun, ...] = ()
    ended: tuple[WatchedRun, ...] = ()
    unread: int = 0
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """`3 running, 2 pending, 9,995 ended`."""
        states = [row.status.state for row in self.active]
        active = [f"{states.count(it):,} {it.value}" for it in (RunState.RUNNING, RunState.PENDING)]
        unread = [f"reading {self.unread:,} more"] if self.unread else []
        return ", ".join([*active, f"{len(self.ended):,} ended", *unread])

    @property
    def rows(self) -> tuple[WatchedRun, ...]:
        """All of them."""
        return self.active + self.ended


def chosen(runs: RunsSnapshot, text: str = "", *, active: bool = False) -> list[WatchedRun]:
    """The rows that are wanted: what waits or trains first.

    Args:
        text: Each of its words is part of a run's name, id, job, state or reason.
        active: Only what waits or trains.
    """
    wanted = text.lower().split()
    rows = runs.active if active else runs.rows
    return [row for row in rows if all(word in row.words for word in wanted)]


def widths_for(rows: Sequence[WatchedRun], columns: int) -> list[int]:
    """How wide each column is, two apart; 0 leaves it out."""
    lines = [HEADER, *(row.cells for row in rows)]
    needed = [max(map(len, column)) for column in zip(*lines, strict=True)]
    least = 14 if columns >= NARROW else 9
    return fitted_widths(HEADER, needed, columns, LEAST_NEEDED, good=GOOD_WIDTHS, least=least)


def full_text(row: WatchedRun, now: float) -> list[str]:
    """The history of a run, or the points of a sweep: lines of plain text."""
    if row.sweep is None:
        return [printable(line) for line in history_lines(row.status, now)]
    points = [
        f"  {point.run.run}  {point.run.state.value:<9}  step {point.run.step}"
        f"  {point_text(point.overrides)}"
        for point in row.sweep.points
    ]
    head = f"{row.sweep.name}  sweep {row.sweep.sweep}  {row.sweep.summary}"
    return [printable(line) for line in (head, f"  folder     {row.sweep.sweep_dir}", *points)]


def brief_text(row: WatchedRun) -> list[str]:
    """The lines of the history that tell where a run stands."""
    first, *lines = full_text(row, time.time())
    rest = [line.strip() for line in lines if line.startswith(("  job ", "  starts ", "  limit "))]
    return [first, f"run        {row.status.run}", *rest]


def log_files(row: WatchedRun) -> list[Path]:
    """The logs of the newest attempt, rank 0 first, and of its job."""
    if not isinstance(row.entry, RunDir):
        return []
    attempt = row.entry.latest_attempt
    by_rank = sorted(attempt.path.glob("rank-*.log"), key=lambda it: (len(it.name), it.name))
    others = [attempt.supervisor_log, row.entry.job_log(row.status.job_id)]
    return [*by_rank, *(path for path in others if path.is_file())]


def unreadable(entry: RunDir | SweepDir, error: Exception) -> WatchedRun:
    """The row of a run that cannot be read, with the reason."""
    why = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
    status = RunStatus(
        run=entry.path.name,
        name=entry.name,
        run_dir=str(entry.path),
        state=RunState.LOST,
        job_id="",
        backend="",
        reason=f"cannot be read: {why}",
    )
    return WatchedRun(entry, status)
