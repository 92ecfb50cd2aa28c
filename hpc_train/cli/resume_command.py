"""`hpc-train resume`: bring a stopped run back, in the same shape or another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hpc_train import api
from hpc_train.cli.common import (
    flag_options,
    json_option,
    print_json,
    run_argument,
    runs_dir_option,
    shell_word,
)

__all__ = ["command"]


@click.command("resume")
@run_argument
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@flag_options("nodes", "gpus", "spares", "time", "partition")
@click.option("--cluster", type=click.Choice(["slurm", "local"]), help="As it was, by default.")
@click.option("--follow", is_flag=True, help="Stay and show the progress; Ctrl-C leaves the job.")
@click.option("--wait", is_flag=True, help="Stay; the exit code is the run's.")
@runs_dir_option
@json_option
def command(
    run: str,
    overrides: tuple[str, ...],
    cluster: str | None,
    follow: bool,
    wait: bool,
    runs_dir: Path | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Go on with RUN from its newest valid checkpoint.

    The global batch stays, so another shape gives the same training; keys of model and data
    cannot change.
    """
    found = api.Run.find(run, runs_dir)
    job_id = found.resume(*overrides, cluster=cluster, **flags)
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "run": found.directory.run_id,
                "run_dir": str(found.directory.path),
                "job_id": job_id,
            }
        )
    else:
        click.echo(f"resumed    as job {job_id}")
        click.echo(f"watch      hpc-train status {shell_word(found.directory.run_id)}")
    if not (follow or wait):
        return 0
    from hpc_train.cli.following import follow_run

    return follow_run(found, show=follow or sys.stderr.isatty(), as_json=as_json)
