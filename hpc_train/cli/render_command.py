"""`hpc-train render`: the training as a script that plain `sbatch` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpc_train import api
from hpc_train.cli.common import config_arguments, shell_word
from hpc_train.errors import UsageError

__all__ = ["command"]


@click.command("render")
@config_arguments
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write to FILE, not to stdout."
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(
    cfg: Path, overrides: tuple[str, ...], output: Path | None, force: bool, **flags: Any
) -> int:
    """Print the training in CFG as an sbatch script; no Slurm is needed here.

    Example: hpc-train render --nodes 3 --gpus 4 configs/digits.yaml -o job.sbatch
    """
    script = api.render(api.load(cfg, *overrides, **flags))
    if output is None:
        click.echo(script, nl=False)
        return 0
    try:
        with output.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(script)
    except FileExistsError as error:
        raise UsageError(
            f"{output} is there already", "give --force, or another name to -o"
        ) from error
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from error
    click.echo(f"written; submit it with: sbatch {shell_word(str(output))}", err=True)
    return 0
