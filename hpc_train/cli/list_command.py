"""`hpc-train list`: the newest runs, by one query of Slurm."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train import api
from hpc_train.cli.common import json_option, print_json, print_table, runs_dir_option
from hpc_train.runs.history_text import LIST_HEADER, list_row

__all__ = ["command"]


@click.command("list")
@click.option(
    "-n",
    "number",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="How many, the newest first.",
)
@click.option("--all", "everything", is_flag=True, help="All of them, however many.")
@click.option("--active", is_flag=True, help="Only runs that wait or train.")
@runs_dir_option
@json_option
def command(
    number: int, everything: bool, active: bool, runs_dir: Path | None, as_json: bool
) -> int:
    """List the newest runs."""
    known = api.Run.all(runs_dir)
    # Whether a run is active is known once its events are read.
    found = api.statuses(known if active or everything else known[:number])
    if active:
        found = [status for status in found if not status.state.ended]
    total = len(found) if active else len(known)
    shown = found if everything else found[:number]
    if as_json:
        print_json({"schema_version": 1, "runs": [status.to_json() for status in shown]})
    elif shown:
        print_table(LIST_HEADER, [list_row(status) for status in shown])
    else:
        click.echo("no runs; hpc-train submit CFG makes one", err=True)
    if len(shown) < total:
        what = "active runs" if active else "runs"
        click.echo(f"{len(shown)} of {total:,} {what}; --all shows them", err=True)
    return 0
