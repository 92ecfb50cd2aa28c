"""`submit --after RUN|SWEEP` and `submit --smoke`: what has to be complete before a job begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hpc_train import api
from hpc_train.cli.common import shell_word
from hpc_train.errors import UsageError

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig
    from hpc_train.supervisor.dependents import Prior

__all__ = ["order_options", "prerequisite"]

F = TypeVar("F", bound=Callable[..., Any])


def order_options(function: F) -> F:
    """`--after` and `--smoke`."""
    after = click.option(
        "--after",
        metavar="RUN|SWEEP",
        help="Begin once that run, or all points of that sweep, are complete.",
    )
    smoke = click.option(
        "--smoke", is_flag=True, help="A few steps on one node first; the job begins if they work."
    )
    return after(smoke(function))


def prerequisite(
    loaded: LoadedConfig, *, after: str | None, smoke: bool, cluster: str | None, err: bool
) -> Prior | None:
    """The run or sweep to wait for, submitted here where it is the smoke test."""
    if after and smoke:
        raise UsageError("--after and --smoke exclude one another", "give one of them")
    if after:
        from hpc_train.sweeps import find_sweep

        return find_sweep(after) or api.Run.find(after)
    if not smoke:
        return None
    from hpc_train.backends.smoke import SMOKE_STEPS, smoke_config
    from hpc_train.backends.submit import detect_cluster

    plan = api.plan(loaded)
    if (cluster or detect_cluster()) != "slurm":
        raise UsageError("--smoke is for Slurm, whose jobs wait for one another", "try it: run CFG")
    short = smoke_config(loaded, plan)
    api.test_only(loaded)  # what Slurm refuses shall not leave a smoke test behind
    run = api.submit(short, cluster=cluster)
    name = shell_word(run.directory.run_id)
    click.echo(f"smoke test {name}: {SMOKE_STEPS} steps on one node come first", err=err)
    return run
