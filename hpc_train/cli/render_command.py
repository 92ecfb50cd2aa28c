"""`hpc-train render`: the training as a script that plain `sbatch` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpc_train import api
from hpc_train.cli.common import (
    ConfigCommand,
    config_arguments,
    flag_options,
    load_config,
    shell_word,
    sweep_options,
)
from hpc_train.cli.join_by_hand import lines_for, master_option
from hpc_train.cli.launch_command import with_nodes
from hpc_train.cli.submission_notes import note_refusal, note_script
from hpc_train.errors import UsageError

_UNFIT = "this machine's Slurm would not run it"


@click.command("render", cls=ConfigCommand)
@config_arguments
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write to FILE, not to stdout."
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@sweep_options
@flag_options("hosts")
@click.option(
    "--launcher",
    type=click.Choice(["env", "torchrun"]),
    help="In place of a script for sbatch: a line for each of --hosts, to be typed there.",
)
@master_option
def command(
    cfg: Path,
    overrides: tuple[str, ...],
    output: Path | None,
    force: bool,
    sweep: tuple[str, ...],
    at_most: int | None,
    launcher: str | None,
    master: str | None,
    **flags: Any,
) -> int:
    """Print the training in CFG as an sbatch script; no Slurm is needed here.

    With --launcher: a command for each machine, where there is neither a scheduler nor ssh.

    Example: hpc-train render --nodes 3 --gpus 4 configs/digits.yaml -o job.sbatch
    """
    loaded = load_config(cfg, overrides, with_nodes(flags), sweep=sweep)
    if loaded.config.snapshot.mode != "none":
        hint = "hpc-train submit takes it; or render with snapshot=none"
        raise loaded.origins.error("snapshot", "needs a run, and a script makes its own", hint)
    if launcher is not None:
        script = lines_for(loaded, launcher, master, cfg, overrides, flags)
    elif flags["hosts"] or master:
        raise UsageError("--hosts and --master are for lines to be typed", "--launcher env")
    elif loaded.config.sweep:
        from hpc_train.sweeps import first_point, render_sweep

        script = render_sweep(loaded, at_most=at_most)
        note_refusal(api.plan(first_point(loaded)), _UNFIT)
    else:
        script = api.render(loaded)
        note_script("slurm", loaded)
        note_refusal(api.plan(loaded), _UNFIT)
    if output is None or str(output) == "-":  # as other programs have it
        click.echo(script, nl=False)
        return 0
    _write(output, script, cfg, force=force)
    by_sbatch = f"submit it in this folder: sbatch {shell_word(str(output))}"
    click.echo(f"written; {'type each line on its machine' if launcher else by_sbatch}", err=True)
    if not launcher:
        click.echo(
            f"it keeps the values that {cfg} has now: render it again after a change", err=True
        )
    return 0


def _write(output: Path, script: str, cfg: Path, *, force: bool) -> None:
    if output.exists() and output.samefile(cfg):
        raise UsageError(f"{output} is the config itself", "give another name to -o")
    try:
        with output.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(script)
    except FileExistsError as error:
        hint = "name a file in it" if output.is_dir() else "give --force, or another name to -o"
        raise UsageError(f"{output} is there already", hint) from error
    except OSError as error:
        hint = "name a file to -o, in a folder that is there and where you may write"
        raise UsageError(f"{output} cannot be written: {error.strerror}", hint) from error
