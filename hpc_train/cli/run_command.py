"""`hpc-train run`: the supervisor in the foreground."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train import api
from hpc_train.cli.common import (
    ConfigCommand,
    config_arguments,
    devices_option,
    load_config,
    print_notes,
    shell_word,
)
from hpc_train.cli.join_by_hand import Place, join_options, run_joined
from hpc_train.cli.main import INTERRUPTED
from hpc_train.cli.submission_notes import note_cluster, note_twin
from hpc_train.config.flags import FLAGS
from hpc_train.plan.states import RunState
from hpc_train.runs.events import EventKind, read_events, since_last
from hpc_train.runs.lost_output import survive_lost_output
from hpc_train.supervisor.exitcodes import EXIT_CODES

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig


@click.command("run", cls=ConfigCommand)
@config_arguments
@devices_option
@join_options
def command(
    cfg: Path,
    overrides: tuple[str, ...],
    devices: str | None,
    node_rank: int | None,
    master: str | None,
    **flags: Any,
) -> int:
    """Train CFG in the foreground: on this machine, or in the allocation of an salloc.

    On machines without a scheduler and without ssh: type it on each, with --node-rank 0, 1, ...,
    --nodes and --master; they meet in the folder of runs, which they share.

    It shows where the training stands and what rank 0 prints. Ctrl-C saves at the next step and
    leaves, as a closed terminal does; a second one kills.
    """
    where = "slurm" if "SLURM_JOB_ID" in os.environ else "local"
    place = Place.of(node_rank, flags["nodes"], master, os.environ)
    if place is not None:
        flags["nodes"] = place.nodes
    loaded = load_config(cfg, overrides, flags, devices=devices, cluster=where)
    if place is not None:
        return run_joined(loaded, place, run_in_foreground)
    if where == "local" and not loaded.config.hosts:
        note_cluster(" ".join(_typed(cfg, overrides, flags)))
    return run_in_foreground(loaded)


def _typed(cfg: Path, overrides: Sequence[str], flags: Mapping[str, Any]) -> Iterator[str]:
    """What was typed behind `run`, for another command; without --devices, which are of here."""
    yield shell_word(str(cfg))
    for name, flag in FLAGS.items():
        if flags.get(name) is not None:
            yield from (flag.option, shell_word(str(flags[name])))
    yield from map(shell_word, overrides)
    behind = click.get_current_context().params.get("arguments")
    yield from ["--", *map(shell_word, behind)] if behind else []


def run_in_foreground(loaded: LoadedConfig) -> int:
    """Train and show it, to its end."""
    from hpc_train.backends.local_devices import notes_here
    from hpc_train.cli.following import print_end
    from hpc_train.cli.foreground import shown, words_of_culprit

    survive_lost_output()  # the run shall not end with `| head`, nor with its terminal
    if "SLURM_JOB_ID" not in os.environ:
        print_notes(notes_here(api.plan(loaded), os.environ, is_followed=True))

    @contextlib.contextmanager
    def shown_beside_others(run: api.Run) -> Iterator[None]:
        note_twin(run.directory, in_foreground=True)
        with shown(run):
            yield

    run, code = api.run_here(loaded, shown_beside_others)
    status = run.status()
    if words := words_of_culprit(run.directory, status):
        click.echo(words)
    print_end(status)
    if status.state is not RunState.CANCELLED:
        return code
    return EXIT_CODES[status.state] if _is_asked_to_end(run) else INTERRUPTED


def _is_asked_to_end(run: api.Run) -> bool:
    """Whether `hpc-train cancel` ended it, and not a Ctrl-C here."""
    events = since_last(read_events(run.directory.events), EventKind.SUBMITTED)
    return any(event.kind is EventKind.CANCEL_REQUESTED for event in events)
