"""What follows a submission: a line or a document that says where it went, and who stays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click

from hpc_train.cli.common import print_json

if TYPE_CHECKING:
    from hpc_train import api

F = TypeVar("F", bound=Callable[..., object])


def stay_options(function: F) -> F:
    """`--follow` and `--wait`."""
    follow = click.option(
        "-f", "--follow", is_flag=True, help="Stay and show the progress; Ctrl-C leaves the job."
    )
    wait = click.option("--wait", is_flag=True, help="Stay; the exit code is the run's.")
    return follow(wait(function))


def tell_and_stay(
    run: api.Run,
    document: Mapping[str, object],
    say: Callable[[], None],
    *,
    follow: bool,
    wait: bool,
    as_json: bool,
) -> int:
    """Say where the run was submitted; with `follow` or `wait` stay until its end.

    Standard output gets one document with `as_json`: this one, or who stays the run's at its end.

    Args:
        document: Beside the run's id and folder.
        say: Says the same for people, on standard error where `as_json`.

    Returns:
        The exit code: 0, or that of the run's state.
    """
    stays = follow or wait
    if as_json and not stays:
        directory = run.directory
        where = {"run": directory.run_id, "run_dir": str(directory.path)}
        print_json({"schema_version": 1, **where, **document})
    else:
        say()
    if not stays:
        return 0
    from hpc_train.cli.following import follow_run

    return follow_run(run, show=follow or sys.stderr.isatty(), as_json=as_json)
