"""`hpc-train launch`: a training on machines without a scheduler, started over ssh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpc_train.cli.common import ConfigCommand, config_arguments, flag_options, load_config
from hpc_train.cli.run_command import run_in_foreground
from hpc_train.config.hosts import split_hosts
from hpc_train.errors import UsageError


@click.command("launch", cls=ConfigCommand)
@config_arguments
@flag_options("hosts")
def command(cfg: Path, overrides: tuple[str, ...], **flags: Any) -> int:
    """Train CFG, or a script as it is, on HOSTS, which ssh reaches without a password.

    One rank a GPU on each host (--gpus). Stay with it: it shows where the training stands and what
    rank 0 prints. Ctrl-C saves at the next step and leaves; a second one kills.

    Example: hpc-train launch --hosts a,b,me@c --gpus 4 configs/digits.yaml
    """
    loaded = load_config(cfg, overrides, with_nodes(flags), cluster="local")
    if not loaded.config.hosts:
        raise UsageError("no hosts are named", "hpc-train launch --hosts a,b,c CFG")
    return run_in_foreground(loaded)


def with_nodes(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with all hosts as nodes, where neither a number nor a reserve was typed."""
    if flags.get("hosts") and flags.get("nodes") is None:
        count = len(split_hosts(flags["hosts"])) - (flags.get("spares") or 0)
        return {**flags, "nodes": count}
    return flags
