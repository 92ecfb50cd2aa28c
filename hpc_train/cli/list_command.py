"""`hpc-train list`: all runs, newest first, by one query of Slurm."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train import api
from hpc_train.cli.common import json_option, print_json, print_table, runs_dir_option
from hpc_train.report.diary import LIST_HEADER, list_row

__all__ = ["command"]


@click.command("list")
@click.option("--active", is_flag=True, help="Only runs that wait or train.")
@runs_dir_option
@json_option
def command(active: bool, runs_dir: Path | None, as_json: bool) -> int:
    """List all runs, the newest first."""
    known = sorted(api.runs(runs_dir), key=lambda run: run.submitted or 0.0, reverse=True)
    shown = [run for run in known if not (active and run.state.ended)]
    if as_json:
        print_json({"schema_version": 1, "runs": [run.to_json() for run in shown]})
    elif not shown:
        click.echo("no runs; hpc-train submit CFG makes one", err=True)
    else:
        print_table(LIST_HEADER, [list_row(run) for run in shown])
    return 0
