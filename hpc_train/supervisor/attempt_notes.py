"""Notes in the run's history: of env.setup, edited code, job arrays, and what the ranks leave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from hpc_train.plan.plan import Plan, ShellPlan
from hpc_train.plan.setup_watch import SetupTold
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import imported_edits, named_files, read_state, state_before
from hpc_train.runs.snapshot import copy_at
from hpc_train.runs.sweep_dir import sweep_of

WIDTH = 120  # of a line as it is shown
KEEP_CODE = "; a run that was submitted with snapshot=git keeps its code"


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


def beginning_notes(
    run: RunDir, attempt: int, plan: Plan, environ: Mapping[str, str]
) -> Iterator[str]:
    """What is known before the ranks start."""
    yield from array_notes(run, environ)
    yield from code_notes(run, attempt, plan)


def code_notes(run: RunDir, attempt: int, plan: Plan) -> Iterator[str]:
    """That it trains with other code than the attempt before, or than what was submitted."""
    before, state = state_before(run, attempt)
    if files := imported_edits(run, state, read_state(run, attempt)):
        than = "that of the submission" if before is None else f"that of attempt {before}"
        keep = "" if copy_at(Path(plan.workdir)) else KEEP_CODE
        yield f"the code is not {than}: {named_files(files)}{keep}"


def array_notes(run: RunDir, environ: Mapping[str, str]) -> Iterator[str]:
    """That `sbatch --array` of one training's script trains that one again and again."""
    task, count = (environ.get(f"SLURM_ARRAY_TASK_{it}", "") for it in ("ID", "COUNT"))
    # A run of a config has been started by a command of its own, with words of its own.
    if task and count not in ("", "1") and not run.config.is_file() and sweep_of(run) is None:
        yield (
            f"task {task} of array {environ.get('SLURM_ARRAY_JOB_ID', '')}: each of its {count}"
            " tasks trains the same, with the same seed, unless the code reads SLURM_ARRAY_TASK_ID;"
            " for a sweep: hpc-train render CFG --sweep KEY=VALUES"
        )


def _shown(line: str) -> str:
    """The line, short and on one line; where it has several, the whole is named by its first."""
    first, more, _ = line.strip().partition("\n")
    return f"{first[:WIDTH]} ..." if more or len(first) > WIDTH else first
