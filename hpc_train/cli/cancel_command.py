"""`hpc-train cancel`: end a run for good."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train import api
from hpc_train.cli.common import json_option, print_json, run_argument, runs_dir_option, shell_word

__all__ = ["command"]


@click.command("cancel")
@run_argument
@runs_dir_option
@json_option
def command(run: str, runs_dir: Path | None, as_json: bool) -> int:
    """End RUN; what it has saved stays, and `resume` brings it back."""
    found = api.Run.find(run, runs_dir)
    status = found.cancel()
    if as_json:
        print_json({"schema_version": 1, "run": status.run, "job_id": status.job_id})
        return 0
    click.echo(f"cancelling {status.name} (job {status.job_id}); its ranks save if there is time")
    click.echo(f"go on with: hpc-train resume {shell_word(status.run)}", err=True)
    return 0
