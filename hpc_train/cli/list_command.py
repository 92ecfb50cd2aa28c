"""`hpc-train list`: all runs, newest first, by one query of Slurm."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hpc_train import api
from hpc_train.backends.glance import rows
from hpc_train.cli.common import json_option, print_json, print_table, runs_dir_option
from hpc_train.plan.states import RunState
from hpc_train.report.columns import LIST_HEADER
from hpc_train.store.runs import roots

__all__ = ["command"]

STATE = LIST_HEADER.index("STATE")


@click.command("list")
@click.option("--active", is_flag=True, help="Only runs that wait or train.")
@runs_dir_option
@json_option
def command(active: bool, runs_dir: Path | None, as_json: bool) -> int:
    """List all runs, the newest first."""
    if as_json:
        known = sorted(api.runs(runs_dir), key=lambda run: run.submitted or 0.0, reverse=True)
        shown = [run.to_json() for run in known if not (active and run.state.ended)]
        print_json({"schema_version": 1, "runs": shown})
        return 0
    folders = [runs_dir.absolute()] if runs_dir else roots(os.environ, Path.cwd())
    lines = rows(os.environ, [str(folder) for folder in folders])
    lines = [line for line in lines if not (active and RunState(line[STATE]).ended)]
    if lines:
        print_table(LIST_HEADER, lines)
    else:
        click.echo("no runs; hpc-train submit CFG makes one", err=True)
    return 0
