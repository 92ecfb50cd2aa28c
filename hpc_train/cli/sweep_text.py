"""What the commands say of a sweep: submitted, its table, ended, resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from hpc_train import sweeps
from hpc_train.cli.common import print_json, print_notes, print_table, tell_unchecked
from hpc_train.cli.plan_text import plan_lines
from hpc_train.plan.script import PLAN_IN_SCRIPT, render_sweep
from hpc_train.plan.sweep_plan import SweepPlan, point_text, points_text
from hpc_train.runs.events import end_of, has_begun, read_events
from hpc_train.runs.history_text import clock
from hpc_train.runs.run_word import run_word
from hpc_train.runs.sweep_status import SweepStatus, best_point


def print_dry_sweep(plan: SweepPlan, *, as_json: bool) -> None:
    """Print what would be submitted: the first point's plan, the points, the script."""
    script = render_sweep(plan)
    if as_json:
        document = {"schema_version": 1, "sweep": json.loads(plan.to_json()), "script": script}
        print_json(document)
        return
    for line in plan_lines(plan.plan, os.environ):
        click.echo(line)
    for number, point in enumerate(plan.points):
        click.echo(f"{f'point {number}':<10} {point_text(point.overrides)}")
    click.secho("\n# job.sbatch", bold=True)
    click.echo(PLAN_IN_SCRIPT.sub("(the plan of all points)\n", script))
    click.echo("nothing was submitted and nothing was written (--dry-run)", err=True)


def tell_submitted(sweep: sweeps.Sweep, *, as_json: bool) -> None:
    """Where it is and what can be typed next."""
    directory, job_id = sweep.directory, sweep.job_id
    tell_unchecked(read_events(directory.events)[0])
    name, points = run_word(directory.path), len(directory.plan.points)
    document: dict[str, Any] = {
        "schema_version": 1,
        "sweep": directory.sweep_id,
        "sweep_dir": str(directory.path),
        "job_id": job_id,
        "cluster": "slurm",
        "points": points,
    }
    if as_json:
        print_json(document)
        return
    click.echo(f"submitted  job array {job_id}, {points_text(points)}")
    click.echo(f"sweep      {directory.path}")
    click.echo(f"watch      hpc-train status {name}")
    click.echo(f"a point    hpc-train logs -f {name}-0")
    click.echo(f"end        hpc-train cancel {name}")


def print_sweep(
    status: SweepStatus, best: str | None, *, as_json: bool, notes: Sequence[str] = ()
) -> None:
    """A row a point: what was chosen, its state, step and metrics; and the best of them."""
    found = best_point(status, best) if best else None
    if as_json:
        print_json(status.to_json(found))
        return
    click.secho(f"{status.name}  sweep {status.sweep}  {status.summary}", bold=True)
    click.echo(f"  folder     {status.sweep_dir}")
    if status.job_id:  # of a bench each point has a job of its own
        click.echo(f"  job array  {status.job_id}")
    if status.submitted:
        click.echo(f"  submitted  {clock(status.submitted)}")
    for note in filter(None, notes):
        click.echo(f"  note       {note}")
    keys = list(status.points[0].overrides)
    metrics = sorted({name for point in status.points for name in point.run.metrics})
    rows = [
        [
            str(point.number),
            *(str(point.overrides[key]) for key in keys),
            point.run.state.value,
            str(point.run.step),
            *(_value(point.run.metrics.get(name, "-")) for name in metrics),
            point.run.early_end if point.run.state.value == "completed" else point.run.reason,
        ]
        for point in status.points
    ]
    short = [key.rpartition(".")[2] for key in keys]
    names = short if len(set(short)) == len(short) else keys
    print_table(["POINT", *names, "STATE", "STEP", *metrics, "WHY"], rows)
    if found:
        chosen = point_text(found.point.overrides)
        which = f"{found.metric} {_value(found.value)} ({found.mode})"
        click.echo(f"best       point {found.point.number}  {which}  {chosen}")


def tell_cancelled(sweep: sweeps.Sweep, *, as_json: bool) -> None:
    """End the sweep, and say what that means."""
    points = sweep.cancel()
    name = sweep.directory.sweep_id
    if as_json:
        print_json({"schema_version": 1, "sweep": name, "points": points})
        return
    told, whose = points_text(len(points)), "its" if len(points) == 1 else "their"
    click.echo(f"cancelling {told} of {name}; {whose} ranks save if there is time")
    word = run_word(sweep.directory.path)
    histories = [read_events(sweep.directory.point(number).events) for number in points]
    trains = any(has_begun(events) and not end_of(events) for events in histories)
    when = f"once hpc-train status {word} shows none running, " if trains else ""
    click.echo(f"{when}go on with: hpc-train resume {word}", err=True)


def tell_resumed(
    sweep: sweeps.Sweep, overrides: Sequence[str], options: Mapping[str, Any], *, as_json: bool
) -> None:
    """Go on with what has ended and is not complete."""
    name = sweep.directory.sweep_id
    document: dict[str, Any] = {"schema_version": 1, "sweep": name}
    given = {key: value for key, value in options.items() if value is not None}
    if overrides or given:
        jobs = sweep.resume_each(*overrides, **given)
        document |= {"points": list(jobs), "job_ids": list(jobs.values())}
        said = f"{points_text(len(jobs))}, each as a job of its own: {', '.join(jobs.values())}"
    else:
        job_id, points = sweep.resume()
        document |= {"job_id": job_id, "points": points}
        said = f"{points_text(len(points))} as job array {job_id}"
    _note_config(sweep, document["points"], [it.partition("=")[0] for it in overrides])
    if as_json:
        print_json(document)
        return
    click.echo(f"resumed    {said}")
    click.echo(f"watch      hpc-train status {run_word(sweep.directory.path)}")


def _note_config(sweep: sweeps.Sweep, points: Sequence[int], typed: Sequence[str]) -> None:
    """That the file of a sweep that goes on says something else by now: alike for all points."""
    from hpc_train.backends.kept_in_a_run import config_notes
    from hpc_train.runs.read_plan import read_plan

    run = sweep.run(points[0]).directory
    print_notes(config_notes(run, read_plan(run), typed, in_sweep=True))


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
