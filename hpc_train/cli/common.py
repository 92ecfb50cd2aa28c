"""Options and ways of printing that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from hpc_train.config.flags import FLAGS

__all__ = [
    "config_arguments",
    "flag_options",
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
    decorators = (
        click.argument("cfg", type=click.Path(path_type=Path)),
        click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]..."),
        flag_options(*FLAGS),
    )
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def flag_options(*names: str) -> Callable[[F], F]:
    """The options of these names that are short for a key."""

    def decorate(function: F) -> F:
        for flag in (FLAGS[name] for name in reversed(names)):
            said = f"{flag.help} ({flag.key})."
            function = click.option(flag.option, type=flag.type, help=said)(function)
        return function

    return decorate


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
