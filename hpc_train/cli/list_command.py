"""`hpc-train list`: the newest runs, by one query of Slurm."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from hpc_train.cli.common import json_option, most_options, print_json, print_table, runs_dir_option
from hpc_train.cli.state_word import states_option
from hpc_train.runs.history_text import STATE_COLORS
from hpc_train.runs.registry import folders, none_in
from hpc_train.runs.run_table import COLUMNS, SORT_KEYS
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import entries
from hpc_train.runs.sweep_status import SweepStatus

SHOWN = ("NAME", "RUN", "STATE", "JOB", "ATTEMPTS", "STEP", "LEFT", "SUBMITTED", "WHY")
# Left out first where a terminal is too narrow; the run's id begins with when it was submitted.
LEAST_NEEDED = ("SUBMITTED", "ATTEMPTS", "JOB")


@click.command("list")
@most_options("the newest")
@click.option("--active", is_flag=True, help="Only runs that wait or train.")
@states_option("Only runs in this state, by this word or by Slurm's; repeatable.")
@click.option("--name", metavar="PATTERN", help="Only runs of this name, like 'digits*'.")
@click.option(
    "--sort",
    type=click.Choice(list(SORT_KEYS)),
    default="newest",
    show_default=True,
    help="Order of the runs that are shown.",
)
@click.option("--points", is_flag=True, help="Each begun point of a sweep by itself.")
@runs_dir_option
@json_option
def command(
    number: int,
    everything: bool,
    active: bool,
    states: tuple[str, ...],
    name: str | None,
    sort: str,
    points: bool,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """List the newest runs, a sweep as one line.

    LEFT is the training's time to its end at its present pace.
    """
    from hpc_train.backends.gone_folders import AskedForAll, jobs_without_folder
    from hpc_train.backends.sweep_jobs import observe_all

    there = entries(folders(runs_dir), points=points)
    known = [run for run in there if name is None or fnmatchcase(run.name, name)]
    by_state = active or bool(states)  # which is known once a run's events are read
    ask = AskedForAll(known if by_state or everything else known[:number], are_all=not there)
    seen = observe_all(ask.entries, time.time(), ask=ask)
    counts = {one.sweep: one.counts for one in seen if isinstance(one, SweepStatus)}
    runs = [one.as_run() if isinstance(one, SweepStatus) else one for one in seen]
    found = [status for status in runs if _is_asked_for(status, active, states)]
    total = len(found) if by_state else len(known)
    newest = found if everything else found[:number]
    lost = jobs_without_folder(ask.others, {it.path.name for it in there}, runs_dir)
    gone = (it for it in lost if _is_asked_for(it, active, states, name))
    shown = sorted([*gone, *newest], key=SORT_KEYS[sort])
    if as_json:
        rows = [_row_json(status, counts.get(status.run)) for status in shown]
        print_json({"schema_version": 1, "runs": rows})
    elif shown:
        _print(shown)
    elif there:
        _tell_none(name)
    else:
        click.echo("; ".join(none_in(folders(runs_dir))), err=True)
    if len(newest) < total:
        what = "active runs" if active else "such runs" if states or name else "runs"
        click.echo(f"{len(newest)} of {total:,} {what}; --all shows them", err=True)
    return 0


def _is_asked_for(
    status: RunStatus, active: bool, states: Sequence[str], name: str | None = None
) -> bool:
    if name is not None and not fnmatchcase(status.name, name):
        return False
    return not (active and status.state.ended) and (not states or status.state.value in states)


def _tell_none(name: str | None) -> None:
    click.echo("no such runs; hpc-train list --all shows all", err=True)
    if name and Path(name).exists():
        click.echo(f"{name} is a file of this folder: a pattern belongs in quotes", err=True)


def _row_json(status: RunStatus, points: dict[str, int] | None) -> dict[str, Any]:
    """A run as in `status --json`; of a sweep how many points are in each state, too."""
    return status.to_json() | ({} if points is None else {"points": points})


def _print(shown: Sequence[RunStatus]) -> None:
    """On a terminal as wide as it is, coloured by state; in a pipe whole."""
    rows = [[COLUMNS[name](status) for name in SHOWN] for status in shown]
    colors = {state.value: color for state, color in STATE_COLORS.items()}
    print_table(SHOWN, rows, colors=colors, least_needed=LEAST_NEEDED)
