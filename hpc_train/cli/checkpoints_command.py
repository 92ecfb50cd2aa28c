"""`hpc-train checkpoints`: what a run has saved, and whether it is whole."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train import api
from hpc_train.cli.common import (
    json_option,
    print_json,
    print_table,
    run_argument,
    runs_dir_option,
)

__all__ = ["command"]

HEADER = ("STEP", "VALID", "PATH", "WHY")


@click.command("checkpoints")
@run_argument
@click.option("--verify", is_flag=True, help="Read every file and compare its hash.")
@runs_dir_option
@json_option
def command(run: str, verify: bool, runs_dir: Path | None, as_json: bool) -> int:
    """List the checkpoints of RUN, the newest first; broken ones are named and passed over.

    Without --verify the sizes are compared, and the files are not read.
    """
    found = api.Run.find(run, runs_dir).checkpoints(verify=verify)
    rows = [
        {"step": one.step, "path": str(one.path), "valid": one.valid, "reason": one.reason or ""}
        for one in found
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("no checkpoints yet", err=True)
    else:
        cells = [
            (
                str(row["step"]),
                "yes" if row["valid"] else "no",
                str(row["path"]),
                str(row["reason"]),
            )
            for row in rows
        ]
        print_table(HEADER, cells)
    return 0
