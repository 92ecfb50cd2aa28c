"""Several of Slurm's short options on one line get one fix."""

from __future__ import annotations

import click
import pytest

from hpc_train.cli.main import cli
from hpc_train.cli.short_options import hint_for_all


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("-p train -N 2 -t 10", "write --partition train --nodes 2 --time 10"),
        ("-N2 -ptrain", "write --nodes 2 --partition train"),
        ("-J peaks -N 2", "write --name peaks --nodes 2"),
        ("-A hydro -q long -N 2", "write --account hydro --qos long --nodes 2"),
        ("-N 2", ""),  # one alone has its own
        ("-N 2 -n 4", ""),  # of all nodes
        ("-N 2 -- -p 3", ""),  # of the script
    ],
)
def test_all_are_told_at_once(typed: str, fix: str) -> None:
    command = cli.get_command(click.Context(cli), "submit")
    assert command is not None
    context = click.Context(command, info_name="submit", parent=click.Context(cli))
    assert hint_for_all(context, ["submit", "cfg.yaml", *typed.split()]) == fix
