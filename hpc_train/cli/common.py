"""Options and ways of printing that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "config_arguments",
    "json_option",
    "print_json",
    "print_table",
    "run_argument",
    "runs_dir_option",
    "shell_word",
]

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
runs_dir_option = click.option(
    "--runs-dir",
    type=click.Path(path_type=Path),
    help="Where to look for runs (also HPC_TRAIN_RUNS_DIR).",
)
run_argument = click.argument("run", metavar="RUN")


def config_arguments(function: F) -> F:
    """CFG, `key=value` overrides, and the options that are short for a key."""
    for decorate in reversed(
        (
            click.argument("cfg", type=click.Path(path_type=Path)),
            click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]..."),
            click.option("--nodes", type=int, help="Nodes (slurm.nodes)."),
            click.option("--gpus", type=int, help="GPUs, so ranks, a node (slurm.gpus_per_node)."),
            click.option("--spares", type=int, help="Nodes in reserve (slurm.spares)."),
            click.option("--time", help="Time limit of one job, like 2:00:00 (slurm.time)."),
            click.option("--partition", help="Partition (slurm.partition)."),
            click.option("--account", help="Account (slurm.account)."),
            click.option("--qos", help="Quality of service (slurm.qos)."),
            click.option("--name", help="Name of the run (name)."),
            click.option("--runs-dir", help="Folder of all runs (runs_dir)."),
        )
    ):
        function = decorate(function)
    return function


def print_json(document: Any) -> None:
    """One document on standard output."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns of plain text; the last one is as long as it likes, so no line is wrapped."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header) - 1)]
    for number, line in enumerate(lines):
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        text = "  ".join([*cells, line[-1]]).rstrip()
        click.secho(text, bold=number == 0)


def shell_word(text: str) -> str:
    """A word as it can be typed."""
    import shlex

    return shlex.quote(text)
