"""`hpc-train submit`: put a training on the cluster, or on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hpc_train import api
from hpc_train.cli.common import config_arguments, json_option, print_json, shell_word
from hpc_train.plan.states import RunState

__all__ = ["command"]


@click.command("submit")
@config_arguments
@click.option(
    "--cluster",
    type=click.Choice(["slurm", "local"]),
    help="Where to; found by itself: Slurm where sbatch is, else this machine.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and the script; touch nothing.")
@click.option("--test-only", is_flag=True, help="Ask Slurm whether and when it would start.")
@click.option("--follow", is_flag=True, help="Stay and show the progress; Ctrl-C leaves the job.")
@click.option("--wait", is_flag=True, help="Stay; the exit code is the run's.")
@json_option
def command(
    cfg: Path,
    overrides: tuple[str, ...],
    cluster: str | None,
    dry_run: bool,
    test_only: bool,
    follow: bool,
    wait: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Submit the training in CFG.

    Example: hpc-train submit --nodes 3 --gpus 4 configs/digits.yaml model.init_args.lr=0.01
    """
    loaded = api.load(cfg, *overrides, **flags)
    if dry_run:
        return _dry_run(loaded, as_json=as_json)
    if test_only:
        return _test_only(loaded, as_json=as_json)
    run = api.submit(loaded, cluster=cluster)
    # The history says where the job went.
    from hpc_train.runs.events import read_events

    (submitted,) = read_events(run.directory.events)[:1]
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "run": run.directory.run_id,
                "run_dir": str(run.directory.path),
                "job_id": submitted.get("job_id"),
                "cluster": submitted.get("backend"),
            }
        )
    else:
        job_id, backend = str(submitted.get("job_id")), str(submitted.get("backend"))
        _tell(run, job_id, backend)
        _warn(run, submitted.get("left_out", []), on_slurm=backend == "slurm")
    if not (follow or wait):
        return 0
    from hpc_train.cli.following import follow_run

    return follow_run(run, show=follow or sys.stderr.isatty(), as_json=as_json)


def _tell(run: api.Run, job_id: str, backend: str) -> None:
    name = shell_word(run.directory.run_id)
    where = f"job {job_id}" if backend == "slurm" else f"on this machine (process {job_id})"
    click.echo(f"submitted  {where}")
    click.echo(f"run        {run.directory.path}")
    click.echo(f"watch      hpc-train status {name}")
    click.echo(f"logs       hpc-train logs -f {name}")
    click.echo(f"end        hpc-train cancel {name}")


def _warn(run: api.Run, left_out: list[str], *, on_slurm: bool) -> None:
    """What a person should know at once: nodes left out, and a job that will wait for ever."""
    if left_out:
        click.echo(f"left out   {', '.join(left_out)} (hpc-train nodes says why)")
    if not on_slurm:
        return
    status = run.status()
    if status.state is RunState.PENDING and status.trouble:
        click.secho("warning: ", err=True, fg="yellow", nl=False)
        click.echo(f"the job will wait for ever: {status.trouble}", err=True)


def _dry_run(loaded: Any, *, as_json: bool) -> int:
    plan, script = api.plan(loaded), api.render(loaded)
    if as_json:
        import dataclasses

        document = {"schema_version": 1, "plan": dataclasses.asdict(plan), "script": script}
        print_json(document)
        return 0
    click.secho("# plan.json", bold=True)
    click.echo(plan.to_json())
    click.secho("# job.sbatch", bold=True)
    click.echo(script)
    click.echo("nothing was submitted and nothing was written (--dry-run)", err=True)
    return 0


def _test_only(loaded: Any, *, as_json: bool) -> int:
    estimate = api.test_only(loaded)
    if as_json:
        import dataclasses

        print_json({"schema_version": 1, **dataclasses.asdict(estimate)})
    else:
        click.echo(f"Slurm would take it: {estimate.text}")
        click.echo("nothing was submitted (--test-only)", err=True)
    return 0
