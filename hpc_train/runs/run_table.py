"""Runs as rows of a table: what the columns say, in which order runs stand, what fits a width."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from hpc_train.plan.states import RunState
from hpc_train.runs.history_text import clock, duration, pace_text, printable
from hpc_train.runs.status import RunStatus

_LOSS = re.compile(r"loss", re.IGNORECASE)
_FEWEST = 4  # characters of a name that is cut: one, and the sign

COLUMNS: dict[str, Callable[[RunStatus], str]] = {
    "NAME": lambda run: printable(run.name),
    "RUN": lambda run: run.run,
    "STATE": lambda run: run.state.value,
    "JOB": lambda run: run.job_id or "-",
    "ATTEMPTS": lambda run: str(len(run.attempts)),
    "STEP": lambda run: _step(run),
    "RATE": lambda run: pace_text(run.beat.steps_per_s) if run.beat else "",
    "LOSS": lambda run: _loss(run),
    "LEFT": lambda run: "-" if _left_s(run) is None else duration(_left_s(run) or 0),
    "LIMIT": lambda run: duration(run.forecast.limit_in_s) if run.forecast else "-",
    "SUBMITTED": lambda run: clock(run.submitted) if run.submitted else "-",
    "WHY": lambda run: _why(run),
}
SORT_KEYS: dict[str, Callable[[RunStatus], Any]] = {
    "newest": lambda _run: 0,  # as they come
    "name": lambda run: run.name,
    "state": lambda run: list(RunState).index(run.state),
    "step": lambda run: -run.step,
    "left": lambda run: (_left_s(run) is None, _left_s(run)),
}


def fitted_widths(
    header: Sequence[str],
    widths: Sequence[int],
    columns: int,
    least_needed: Sequence[str],
    *,
    good: tuple[int, int] = (30, 30),
    least: int = 14,
) -> list[int]:
    """The widths of a table that fits into so many columns, two apart; 0 leaves a column out.

    Args:
        widths: As its cells need them.
        least_needed: Left out first, in this order; then the first and the last one are cut. Where
            that is not enough, all but the first three go, from the last one on.
        good: Of these two, before any other is left out.
        least: Of each of them in the end; the first has less where three are left.
    """
    widths = list(widths)
    first, last = widths[0], widths[-1]

    def too_wide(first: int, last: int) -> int:
        shown = [width for width in (first, *widths[1:-1], last) if width]
        return max(0, sum(shown) + 2 * (len(shown) - 1) - columns)

    for name in least_needed:
        if too_wide(min(first, good[0]), min(last, good[1])):
            widths[header.index(name)] = 0
    widths[-1] = max(min(last, least), last - too_wide(min(first, least), last))
    for place in reversed(range(3, len(widths))):
        if too_wide(min(first, least), widths[-1]):
            widths[place] = 0
    widths[0] = max(min(first, _FEWEST), first - too_wide(first, widths[-1]))
    return widths


def _why(run: RunStatus) -> str:
    """What a narrow cell has room for: the error, and not which node it was on."""
    if run.state is RunState.COMPLETED:
        return run.early_end
    if run.waiting:
        return run.waiting
    if run.forecast and run.forecast.warning:
        return run.forecast.warning
    starts = f"; starts {run.start_estimate}" if run.start_estimate else ""
    meaning = f"; {run.meant}" if run.meant else ""
    why = re.sub(r"^(rank \d+) on \S+ failed(?: at step \d+)?: ", r"\1: ", run.reason)
    return f"{why}{starts}{meaning}"


def _step(run: RunStatus) -> str:
    if run.evaluates:
        return "-"
    return f"{run.step}/{run.beat.steps}" if run.beat and run.beat.steps else str(run.step)


def _loss(run: RunStatus) -> str:
    """The newest loss of the training, else of the validation."""
    told = run.beat.metrics if run.beat else {}
    names = sorted(filter(_LOSS.search, told), key=lambda name: name.startswith("val"))
    return f"{told[names[0]]:.4g}" if names else ""


def _left_s(run: RunStatus) -> float | None:
    """None where it does not train on, too."""
    return run.beat.eta_s if run.beat and not run.waiting else None
