"""`hpc-train cancel`: end a run for good."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from hpc_train.cli.common import (
    json_option,
    print_json,
    print_notes,
    run_argument,
    runs_dir_option,
)
from hpc_train.cli.finding import runs_to_change
from hpc_train.cli.going_on import goes_on
from hpc_train.cli.sweep_text import tell_cancelled
from hpc_train.config.words import NEWEST
from hpc_train.errors import UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.disk_use import entry_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import folders
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import SESSION, RunStatus
from hpc_train.runs.sweep_dir import SweepDir, others_of_name, sweep_of
from hpc_train.sweeps import find_sweep


def _refuse_several(sweep: SweepDir, where: Sequence[Path]) -> None:
    """Refuse the name of a sweep that means other runs as well that could be cancelled."""
    from hpc_train.backends.sweep_jobs import observe_all

    others = others_of_name(sweep, where)
    seen = zip(others, observe_all(others, time.time()), strict=True) if others else ()
    going = [other for other, status in seen if not status.state.ended]
    if going:
        ids = ", ".join(map(entry_id, going[:5])) + (" ..." if going[5:] else "")
        each = [f"hpc-train cancel {run_word(it.path)}" for it in (sweep, *going[:5])]
        raise UsageError(
            f"{sweep.name} is the name of the sweep {sweep.sweep_id} and of what has not ended"
            f" either: {ids}",
            f"name the one that is meant by its id: {', or '.join(each)}",
        )


def _others_go_on(run: RunDir) -> list[str]:
    """A note where a word for the newest run has meant one point, and others of its sweep go on."""
    from hpc_train.backends.sweep_jobs import observe_sweep

    sweep = sweep_of(run)
    if sweep is None:
        return []
    points = observe_sweep(sweep, time.time()).points
    count = sum(it.run.run != run.run_id and not it.run.state.ended for it in points)
    if not count:
        return []
    others = "1 other point" if count == 1 else f"{count} other points"
    end = f"hpc-train cancel {run_word(sweep.path)} ends the whole sweep"
    return [f"{others} of the sweep {'goes' if count == 1 else 'go'} on: {end}"]


def _goes_on(status: RunStatus) -> str:
    """What brings it back, and when: a resume is refused while its ranks save."""
    if status.backend == SESSION:
        return f"to go on: {goes_on(status)}"
    saves = status.state is RunState.RUNNING
    shown = f"hpc-train status {run_word(status.run_dir)}"
    return f"{f'once {shown} says cancelled, ' if saves else ''}go on with: {goes_on(status)}"


@click.command("cancel")
@run_argument
@runs_dir_option
@json_option
def command(run: str, runs_dir: Path | None, as_json: bool) -> int:
    """End RUN, or all points of a sweep; what was saved stays, and `resume` brings it back.

    Where several runs of a name have not ended, none is cancelled, and their ids are listed.
    """
    from hpc_train.backends.cancel import cancel_one

    if sweep := find_sweep(run, runs_dir, to_change=True):
        if run == sweep.directory.name:
            _refuse_several(sweep.directory, folders(runs_dir))
        tell_cancelled(sweep, as_json=as_json)
        return 0
    meant = runs_to_change(run, runs_dir)
    status, done = cancel_one(meant)
    if run in NEWEST:
        print_notes([note for it in meant if it.run_id == status.run for note in _others_go_on(it)])
    if as_json:
        print_json(
            {"schema_version": 1, "run": status.run, "job_id": status.job_id, "done": done},
        )
        return 0
    click.echo(f"{status.name} ({status.run}): {done}")
    click.echo(_goes_on(status), err=True)
    return 0
