"""`hpc-train init`: a small project to start from."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import click

from hpc_train.cli.common import FILES, print_notes, shell_word


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
def command(folder: Path) -> int:
    """Write a small project that runs into FOLDER, which has to be empty; by default into this one.

    Partition, GPUs a node and time come from Slurm, if it answers within 3 seconds.
    """
    from hpc_train.backends.new_project import new_project, shape_here

    shape = shape_here(os.environ)
    folder = folder.expanduser()  # of a ~ in quotes
    made = new_project(folder, shape)
    if folder.suffix in FILES:
        print_notes([f"{folder} is a folder now: its config is {folder / 'config.yaml'}"])
    click.echo(f"made       {', '.join(path.name for path in made)} in {folder.absolute()}")
    click.echo(f"found      {shape.found}")
    if folder != Path():
        click.echo(f"go there   cd {shell_word(str(folder))}")
    first = "" if find_spec("pytest") else "; before it: pip install pytest"
    click.echo(f"test       python -m pytest{first}")
    click.echo("train      hpc-train run config.yaml")
    click.echo("submit     hpc-train submit config.yaml --follow")
    return 0
