"""A verdict of the preflight as a person reads it: of now, or of a past attempt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.cli.common import print_json

if TYPE_CHECKING:
    from hpc_train.preflight.verdict import Verdict


def show_verdict(verdict: Verdict) -> None:
    """The answer, what is not right, and what was chosen."""
    from hpc_train.preflight.verdict import measured

    colors = {"go": "green", "go-degraded": "yellow", "no-go": "red"}
    first, *rest = verdict.summary
    click.secho(first, fg=colors[verdict.verdict], bold=True)
    for line in rest:
        click.echo(f"  {line}")
    click.secho("measured", bold=True)
    for line in measured(verdict.pairs) or ["nothing between nodes: no pair was tested"]:
        click.echo(f"  {line}")
    if verdict.environment:
        click.secho("environment", bold=True)
    for item in verdict.environment:
        click.echo(f"  {item.name}={item.value}  # {item.reason}")
    for node, variables in verdict.per_node.items():
        for name, value in variables.items():
            click.echo(f"  {name}={value}  # on {node}")


def show_past_verdict(reference: str, attempt: int | None, *, as_json: bool) -> None:
    """What the preflight of an attempt said, the newest one's by default.

    Raises:
        NoSuchRunError: there is no such run.
        HpcTrainError: the attempt has left no verdict.
    """
    from hpc_train.cli.finding import run_to_read
    from hpc_train.errors import HpcTrainError
    from hpc_train.plan.hostlist import folded
    from hpc_train.preflight.verdict import Verdict

    run = run_to_read(reference).directory
    found = {int(path.parent.name): path for path in run.attempts.glob("*/preflight.json")}
    numbers = [int(path.name) for path in run.attempts.iterdir() if path.name.isdigit()]
    number = max(numbers, default=0) if attempt is None else attempt
    try:
        document = json.loads(found.get(number, Path()).read_text(encoding="utf-8"))
        verdict = Verdict.from_json(document)
    except (OSError, ValueError) as error:
        known = ", ".join(map(str, sorted(found)))
        raise HpcTrainError(
            f"attempt {number} of {run.run_id} has no verdict of a preflight that can be read",
            f"--attempt K, of {known}" if known else "an attempt on Slurm has one once it began",
        ) from error
    if as_json:
        print_json({"run": run.run_id, "attempt": number, **document})
        return
    click.echo(f"{run.name} {run.run_id}, attempt {number}: {folded(document.get('nodes', []))}")
    show_verdict(verdict)
