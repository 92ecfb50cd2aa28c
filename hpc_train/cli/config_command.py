"""`hpc-train config`: what a config resolves to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpc_train.cli.common import ConfigCommand, config_arguments, load_config


@click.group("config")
def command() -> None:
    """Show the resolved config and where each value comes from."""


@command.command("show", cls=ConfigCommand)
@config_arguments
@click.option("--plain", is_flag=True, help="Without origins, in one form: to be compared.")
def show(cfg: Path, overrides: tuple[str, ...], plain: bool, **flags: Any) -> int:
    """Print CFG with its bases and overrides, and the origin of each value."""
    from hpc_train.config.show import plain_lines, show_lines

    lines = plain_lines if plain else show_lines
    for line in lines(load_config(cfg, overrides, flags)):
        click.echo(line)
    return 0
