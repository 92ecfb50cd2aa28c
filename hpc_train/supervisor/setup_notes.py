"""Lines of env.setup that failed, and the job went on: a note each in the run's history."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from hpc_train.plan.plan import ShellPlan
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir

WIDTH = 120  # of a line as it is shown


def tell_failed_setup(
    run: RunDir,
    attempt: int,
    shell: ShellPlan,
    failed: Mapping[int, int],
    say: Callable[[str], None],
) -> None:
    """Note what failed, unless the attempt's history has it.

    Args:
        failed: Items of env.setup, and their exit codes.
    """
    if not failed:
        return
    told = next(it.notes for it in attempts_in(read_events(run.events)) if it.attempt == attempt)
    for item, code in failed.items():
        note = f"env.setup.{item} (`{_shown(shell.own_line(item))}`) exited with {code}"
        if note not in told:
            data = {"attempt": attempt, "text": note}
            append_event(run.events, Event(time.time(), EventKind.NOTE, data))
            say(f"note: {note}; the run goes on")


def _shown(line: str) -> str:
    """The line, short and on one line; where it has several, the whole is named by its first."""
    first, more, _ = line.strip().partition("\n")
    return f"{first[:WIDTH]} ..." if more or len(first) > WIDTH else first
