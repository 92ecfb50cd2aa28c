"""`submit --after RUN|SWEEP`, `--smoke`, `--bench-first`: what is to be complete before a job."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hpc_train import api
from hpc_train.errors import ConfigError, NoSuchRunError, UsageError
from hpc_train.runs.run_word import run_word

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig
    from hpc_train.plan.plan import Plan
    from hpc_train.supervisor.dependents import Prior

F = TypeVar("F", bound=Callable[..., Any])


def order_options(function: F) -> F:
    """`--after`, `--smoke` and `--bench-first`."""
    after = click.option(
        "--after",
        multiple=True,
        metavar="RUN|SWEEP",
        help="Begin once that run, or all points of that sweep, are complete; repeatable.",
    )
    smoke = click.option(
        "--smoke", is_flag=True, help="A few steps on one node first; the job begins if they work."
    )
    bench = click.option(
        "--bench-first",
        is_flag=True,
        help="Measure some steps in this shape first; the job begins if they work.",
    )
    return after(smoke(bench(function)))


def check_prerequisite(
    loaded: LoadedConfig,
    *,
    after: tuple[str, ...],
    smoke: bool,
    bench_first: bool,
    cluster: str | None,
    dry_run: bool = False,
) -> tuple[Prior, ...]:
    """What `--after` names; nothing is submitted.

    Raises:
        UsageError: options that exclude one another, or what only Slurm can wait for.
    """
    given = {"--after": bool(after), "--smoke": smoke, "--bench-first": bench_first}
    chosen = [option for option, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} and {chosen[1]} exclude one another", "give one of them")
    if not chosen:
        return ()
    from hpc_train.backends.submit import detect_cluster

    if after:
        from hpc_train.supervisor.dependents import wait_for

        priors = tuple(map(_one_before, after))
        if dry_run:
            wait_for(priors, loaded.config.slurm.dependency, cluster or detect_cluster())
        return priors
    if (cluster or detect_cluster()) != "slurm":
        fix = "try it: run CFG" if smoke else "measure it: bench CFG"
        raise UsageError(f"{chosen[0]} is for Slurm, whose jobs wait for one another", fix)
    return ()


# sbatch(1), --dependency.
_OF_SLURM = re.compile(r"(?:after(?:any|burstbuffer|corr|notok|ok)?:|singleton\Z)")


def _one_before(first: str) -> Prior:
    """A run or sweep that `--after` names; it is followed from job to job."""
    from hpc_train.cli.finding import run_to_read
    from hpc_train.sweeps import find_sweep

    try:
        return find_sweep(first) or run_to_read(first)
    except NoSuchRunError as error:
        if _OF_SLURM.match(first):
            fix = (
                f"after a run: --after RUN; after other jobs: slurm.dependency={shlex.quote(first)}"
            )
            raise UsageError(f"--after {first}: that is how sbatch is told", fix) from error
        if not first.isdigit():
            raise
        raise NoSuchRunError(*_of_a_job(first)) from error


def _of_a_job(job: str) -> tuple[str, str]:
    """What is wrong with a job that is none of a run, and what is typed to wait for it."""
    from hpc_train.slurm.dependencies import why_not_after  # on the way to an error

    message = f"--after {job}: {job} is no job of a run"
    why_not, fix = why_not_after("afterok", job)
    if why_not:
        return f"{message}, and {why_not}", fix.replace("afterany", "slurm.dependency=afterany")
    return message, f"of another job of Slurm's: slurm.dependency=afterok:{job}"


def prerequisite(
    loaded: LoadedConfig,
    *,
    after: tuple[str, ...],
    smoke: bool,
    bench_first: bool,
    cluster: str | None,
    err: bool,
) -> tuple[Prior, ...]:
    """The runs and sweeps to wait for, submitted here where it is the smoke test or the bench."""
    priors = check_prerequisite(
        loaded, after=after, smoke=smoke, bench_first=bench_first, cluster=cluster
    )
    if priors or not (smoke or bench_first):
        return priors
    plan = api.plan(loaded)
    return (_smoke_test(loaded, plan, err=err) if smoke else _bench(loaded, plan, err=err),)


def _smoke_test(loaded: LoadedConfig, plan: Plan, *, err: bool) -> Prior:
    from hpc_train.backends.smoke import SMOKE_STEPS, smoke_config

    short = smoke_config(loaded, plan)
    api.test_only(loaded)  # what Slurm refuses shall not leave a smoke test behind
    run = api.submit(short, cluster="slurm")
    name = run_word(run.directory.path)
    click.echo(f"smoke test {name}: {SMOKE_STEPS} steps on one node come first", err=err)
    return run


def _bench(loaded: LoadedConfig, plan: Plan, *, err: bool) -> Prior:
    from hpc_train.benches import submit_bench

    if plan.script is not None:
        raise ConfigError(
            f"--bench-first makes the Trainer take few steps, and that of {plan.script.path} is its"
            " own",
            "hpc-train bench SCRIPT with arguments for a short training, then --after BENCH",
        )
    api.test_only(loaded)
    bench = submit_bench(loaded, cluster="slurm")
    name = run_word(bench.directory.path)
    click.echo(f"bench {name}: its steps come first, hpc-train bench {name} --show", err=err)
    return bench
