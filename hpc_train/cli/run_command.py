"""`hpc-train run`: the supervisor in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpc_train import api
from hpc_train.cli.common import config_arguments, shell_word
from hpc_train.cli.main import INTERRUPTED
from hpc_train.plan.states import RunState

__all__ = ["command"]


@click.command("run")
@config_arguments
def command(cfg: Path, overrides: tuple[str, ...], **flags: Any) -> int:
    """Train CFG in the foreground: on this machine, or in the allocation of an salloc.

    Ctrl-C saves at the next step and leaves; a second one kills.
    """
    run, code = api.run_here(api.load(cfg, *overrides, **flags))
    status = run.status()
    click.echo(f"run        {run.directory.path}")
    click.echo(f"history    hpc-train status {shell_word(run.directory.run_id)}")
    if status.state is RunState.CANCELLED:
        click.echo(f"go on      hpc-train resume {shell_word(run.directory.run_id)}")
        return INTERRUPTED
    return code
