"""`hpc-train submit`: put a training on the cluster, or on this machine."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hpc_train import api
from hpc_train.backends.memory_given import memory_of_slurm
from hpc_train.cli.common import (
    ConfigCommand,
    config_arguments,
    devices_option,
    json_option,
    load_config,
    print_notes,
    sweep_options,
    tell_unchecked,
)
from hpc_train.cli.prerequisites import check_prerequisite, order_options, prerequisite
from hpc_train.cli.staying import stay_options, tell_and_stay
from hpc_train.cli.submission_notes import (
    note_allocation,
    note_refusal,
    note_script,
    note_stopped_twin,
    note_submission_to,
    note_this_machine,
    note_tools,
    note_torch,
    note_twin,
    note_twin_sweep,
    note_variables,
)
from hpc_train.errors import UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.run_word import run_word

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

F = TypeVar("F", bound=Callable[..., Any])
_TO_ASK = "; --test-only asks Slurm whether and when it would start"


def _tells_memory(function: F) -> F:
    """A memory that the command refuses for want of its unit is told with what nodes have."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        with memory_of_slurm(keywords["cluster"]):
            return function(*arguments, **keywords)

    return cast("F", wrapped)


@click.command("submit", cls=ConfigCommand)
@config_arguments
@click.option(
    "--cluster",
    type=click.Choice(["slurm", "local"]),
    help="Where to; found by itself: Slurm where sbatch is, else this machine.",
)
@devices_option
@click.option("--dry-run", is_flag=True, help="Print what would be submitted; touch nothing.")
@click.option("-v", "--verbose", is_flag=True, help="The whole plan, with --dry-run.")
@click.option("--test-only", is_flag=True, help="Ask Slurm whether and when it would start.")
@stay_options
@sweep_options
@order_options
@click.option(
    "--partitions",
    metavar="A,B,...",
    help="With --test-only: the start in each, the earliest first.",
)
@json_option
@_tells_memory
def command(
    cfg: Path,
    overrides: tuple[str, ...],
    sweep: tuple[str, ...],
    at_most: int | None,
    after: tuple[str, ...],
    smoke: bool,
    bench_first: bool,
    partitions: str | None,
    cluster: str | None,
    devices: str | None,
    dry_run: bool,
    verbose: bool,
    test_only: bool,
    follow: bool,
    wait: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Submit the training in CFG, or a script as it is: train.py -- --lr 0.1.

    Example: hpc-train submit --nodes 3 --gpus 4 configs/digits.yaml model.init_args.lr=0.01
    """
    order: dict[str, Any] = {"after": after, "smoke": smoke, "bench_first": bench_first}
    where = _asked_cluster(cluster, test_only)
    loaded = load_config(cfg, overrides, flags, sweep=sweep, devices=devices, cluster=where)
    if loaded.config.sweep:
        only = {"--follow": follow, "--wait": wait, "--test-only": test_only}
        only["--cluster local"] = cluster == "local"
        return _submit_sweep(loaded, at_most, order, dry_run=dry_run, only=only, as_json=as_json)
    if at_most is not None:
        raise UsageError("--at-most is for a sweep, and there is none", "give --sweep KEY=VALUES")
    if dry_run:
        check_prerequisite(loaded, **order, cluster=cluster, dry_run=True)
        return _dry_run(loaded, cluster, verbose=verbose, as_json=as_json)
    if test_only:
        from hpc_train.cli.start_estimates import print_starts

        return print_starts(loaded, partitions, as_json=as_json)
    if partitions:
        raise UsageError("--partitions is for --test-only", "--partition takes several, by commas")
    first = prerequisite(loaded, **order, cluster=cluster, err=as_json)
    run = api.submit(loaded, cluster=cluster, after=first)
    return _stay(run, loaded, cluster, follow=follow, wait=wait, as_json=as_json)


def _asked_cluster(cluster: str | None, test_only: bool) -> str | None:
    if test_only and cluster == "local":
        raise UsageError("--test-only asks Slurm, and --cluster is local", "leave one of them out")
    return "slurm" if test_only else cluster


def _dry_run(loaded: LoadedConfig, cluster: str | None, *, verbose: bool, as_json: bool) -> int:
    note_submission_to(cluster, loaded)
    from hpc_train.backends.check_environment import check_environment, check_image
    from hpc_train.backends.code_copy import code_for
    from hpc_train.backends.local_devices import check_gpus_here, notes_here
    from hpc_train.backends.shapes_given import shapes_of_slurm
    from hpc_train.backends.submit import detect_cluster
    from hpc_train.cli.plan_text import print_dry_run
    from hpc_train.runs.registry import check_root

    check_environment(loaded.config.env, Path.cwd(), os.environ, loaded.origins)
    check_image(loaded.config.container, Path.cwd(), loaded.origins)
    check_root(Path(loaded.config.runs_dir).expanduser().absolute())
    with shapes_of_slurm(loaded.config, cluster):
        plan = api.plan(loaded)
    code_for(loaded, Path.cwd(), Path(plan.runs_dir).expanduser())
    if (cluster or detect_cluster()) == "local":
        check_gpus_here(plan)
        print_notes(notes_here(plan, os.environ))
        note_this_machine(loaded, is_asked=cluster == "local")
    script = api.render(loaded)
    note_torch(cluster, loaded)
    note_tools(cluster, loaded)
    note_script(cluster, loaded)
    note_stopped_twin(plan)
    with_script = cluster != "local"
    more = _TO_ASK if with_script and note_refusal(plan) else ""
    print_dry_run(
        plan, script, with_script=with_script, verbose=verbose, as_json=as_json, more=more
    )
    return 0


def _stay(
    run: api.Run,
    loaded: LoadedConfig,
    cluster: str | None,
    *,
    follow: bool,
    wait: bool,
    as_json: bool,
) -> int:
    """The history says where the job went; `cluster` is what was asked for."""
    from hpc_train.backends.local_devices import notes_here
    from hpc_train.runs.events import read_events
    from hpc_train.runs.read_plan import read_plan

    (submitted,) = read_events(run.directory.events)[:1]
    job_id, backend = str(submitted.get("job_id")), str(submitted.get("backend"))

    def say() -> None:
        if backend == "local":  # first: a cluster may have been meant
            note_this_machine(loaded, is_asked=cluster == "local")
        _tell(run, job_id, backend, err=as_json)
        if backend == "local":
            plan = read_plan(run.directory)
            print_notes(notes_here(plan, os.environ, is_followed=follow or wait))
        on_slurm = backend == "slurm" and not follow  # who follows is told by that
        tell_unchecked(submitted)
        note_submission_to(backend, read_plan(run.directory))
        if backend == "slurm":
            note_allocation(os.environ)
            note_variables(read_plan(run.directory), os.environ)
        note_twin(run.directory)
        note_torch(backend, loaded)
        note_tools(backend, loaded)
        note_script(backend, loaded)
        _warn(run, submitted.get("left_out", []), on_slurm=on_slurm, err=as_json)

    document = {"job_id": job_id, "cluster": backend}
    return tell_and_stay(run, document, say, follow=follow, wait=wait, as_json=as_json)


def _submit_sweep(
    loaded: LoadedConfig,
    at_most: int | None,
    order: dict[str, Any],
    *,
    dry_run: bool,
    only: dict[str, bool],
    as_json: bool,
) -> int:
    from hpc_train import sweeps
    from hpc_train.backends.code_copy import code_for
    from hpc_train.cli.sweep_text import print_dry_sweep, tell_submitted

    sweeps.check_keys(loaded)
    for option in (option for option, given in only.items() if given):
        fix = f"; or {sweeps.check_no_array(loaded)}" if option == "--cluster local" else ""
        raise UsageError(f"{option} is for one training, not for a sweep", f"leave it out{fix}")
    note_submission_to("slurm", loaded)
    if dry_run:
        check_prerequisite(loaded, **order, cluster="slurm", dry_run=True)
        plan, configs = sweeps.plan_sweep(loaded, at_most=at_most, cluster="slurm")
        print_notes(sweeps.notes_on_first(loaded))
        code_for(loaded, Path.cwd(), Path(plan.plan.runs_dir).expanduser(), configs)
        note_torch("slurm", loaded)
        note_tools("slurm", loaded)
        note_refusal(plan.plan)
        print_dry_sweep(plan, as_json=as_json)
        return 0
    one = sweeps.first_point(loaded) if order["smoke"] or order["bench_first"] else loaded
    first = prerequisite(one, **order, cluster="slurm", err=as_json)
    submitted = sweeps.submit_sweep(loaded, at_most=at_most, after=first)
    print_notes(sweeps.notes_on_first(loaded))
    note_torch("slurm", loaded)
    note_tools("slurm", loaded)
    tell_submitted(submitted, as_json=as_json)
    note_twin_sweep(submitted.directory)
    return 0


def _tell(run: api.Run, job_id: str, backend: str, *, err: bool) -> None:
    name = run_word(run.directory.path)
    where = f"job {job_id}" if backend == "slurm" else f"on this machine (process {job_id})"
    click.echo(f"submitted  {where}", err=err)
    click.echo(f"run        {run.directory.path}", err=err)
    click.echo(f"watch      hpc-train status {name}", err=err)
    click.echo(f"logs       hpc-train logs -f {name}", err=err)
    click.echo(f"end        hpc-train cancel {name}", err=err)


def _warn(run: api.Run, left_out: list[str], *, on_slurm: bool, err: bool) -> None:
    """What a person should know at once: nodes left out, and a job that cannot start."""
    if left_out:
        click.echo(f"left out   {', '.join(left_out)} (hpc-train nodes says why)", err=err)
    if not on_slurm:
        return
    status = run.status()
    if status.state is RunState.PENDING and status.trouble:
        click.secho("warning: ", err=True, fg="yellow", nl=False)
        click.echo(f"the job does not start: {status.trouble}", err=True)
    if status.state is RunState.PENDING:
        from hpc_train.runs.read_plan import read_plan
        from hpc_train.slurm.nodes import down_for

        options = dict(read_plan(run.directory).slurm.options)
        # One more question of Slurm only where somebody has named the nodes.
        told = down_for(options) if options.get("nodelist") else ""
        print_notes([told] if told else [])
