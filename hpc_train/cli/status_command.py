"""`hpc-train status`: a run and its history."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from hpc_train import api
from hpc_train.backends.glance import newest_run
from hpc_train.cli.common import json_option, print_json, runs_dir_option
from hpc_train.errors import NoSuchRunError
from hpc_train.report.diary import diary_lines
from hpc_train.store.layout import RunDir
from hpc_train.store.runs import roots

__all__ = ["command"]


@click.command("status")
@click.argument("run", metavar="[RUN]", required=False)
@runs_dir_option
@json_option
def command(run: str | None, runs_dir: Path | None, as_json: bool) -> int:
    """Show RUN (a name, a run id, a run directory or a job id) and what happened to it."""
    if run is None:
        folders = [runs_dir.absolute()] if runs_dir else roots(os.environ, Path.cwd())
        newest = newest_run(os.environ, [str(folder) for folder in folders])
        if newest is None:
            raise NoSuchRunError("there are no runs yet", "hpc-train submit CFG makes one")
        status = api.Run(RunDir(Path(newest))).status()
    else:
        status = api.Run.find(run, runs_dir).status()
    if as_json:
        print_json(status.to_json())
        return 0
    first, *rest = diary_lines(status, time.time())
    click.secho(first, bold=True)
    for line in rest:
        click.echo(line)
    return 0
