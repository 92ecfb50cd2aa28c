"""`hpc-train preflight`: network and GPUs, checked as before a training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hpc_train.cli.common import json_option, print_json
from hpc_train.config.schema import PreflightConfig
from hpc_train.errors import CheckError, UsageError

if TYPE_CHECKING:
    from hpc_train.network.verdict import Verdict

__all__ = ["command"]


@click.command("preflight")
@click.option("--nodes", type=click.IntRange(min=1), help="Ask Slurm for so many nodes, and check.")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs a node.")
@click.option("--partition", help="Partition, with --nodes.")
@click.option("--account", help="Account, with --nodes.")
@click.option("--full", is_flag=True, help="Measure longer.")
@click.option("--strict", is_flag=True, help="What could not be checked counts as failed.")
@click.option(
    "--budget",
    type=float,
    default=PreflightConfig.budget_s,
    metavar="SECONDS",
    show_default=True,
    help="Time for the pairs of nodes.",
)
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Where a number becomes a finding, such as min_gbps=10; repeatable.",
)
@click.option(
    "--explain",
    multiple=True,
    metavar="NCCL_LOG",
    help="Read logs written with NCCL_DEBUG=INFO (files, folders, patterns, -) and say why it"
    " failed: exit code 3; 0 where nothing did, 1 where nothing is of NCCL's.",
)
@click.argument("more_logs", nargs=-1, metavar="[NCCL_LOG]...")
@json_option
def command(
    nodes: int | None,
    gpus: int | None,
    partition: str | None,
    account: str | None,
    full: bool,
    strict: bool,
    budget: float,
    thresholds: tuple[str, ...],
    explain: tuple[str, ...],
    more_logs: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check network and GPUs: of this host, of the allocation at hand, or of --nodes N.

    The exit code is 3 where a training must not start.
    """
    if explain:
        return _explain([*explain, *more_logs], as_json=as_json)
    if more_logs:
        raise UsageError(f"{more_logs[0]!r} belongs to no option", "--explain reads logs")
    from hpc_train.backends.preflight import preflight_here, preflight_in_new_allocation
    from hpc_train.supervise.probes import check_sections

    config = PreflightConfig(
        mode="full" if full else "quick",
        strict=strict,
        budget_s=budget,
        thresholds=_thresholds(thresholds),
    )
    check_sections(config)
    if nodes is not None:
        flags = [("--full", full), ("--strict", strict), ("--json", as_json)]
        click.echo(f"asking Slurm for {nodes} nodes", err=True)
        again = [name for name, wanted in flags if wanted]
        again += [
            f"--gpus={gpus or 0}",
            f"--budget={budget:g}",
            *(f"--threshold={item}" for item in thresholds),
        ]
        return preflight_in_new_allocation(
            again,
            _salloc(nodes, gpus, partition, account),
        )
    verdict = preflight_here(config, os.environ, None, gpus_per_node=gpus)
    if as_json:
        print_json(verdict.to_json())
    else:
        _show(verdict)
    return CheckError.exit_code if verdict.verdict == "no-go" else 0


def _explain(logs: Sequence[str], *, as_json: bool) -> int:
    from hpc_train.network.nccl_log import read_nccl_logs
    from hpc_train.network.nccl_text import explain, report_json

    report = read_nccl_logs(logs)
    if as_json:
        print_json({"logs": list(logs), **report_json(report)})
    else:
        click.echo("\n".join(explain(report)))
    return CheckError.exit_code if report.failures else 0


def _thresholds(words: Sequence[str]) -> dict[str, float]:
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise UsageError(
                f"--threshold {word!r} is no NAME=NUMBER", "such as min_gbps=10"
            ) from None
    return found


def _salloc(nodes: int, gpus: int | None, partition: str | None, account: str | None) -> list[str]:
    options = [f"--nodes={nodes}", "--ntasks-per-node=1", "--time=0:10:00"]
    options += [f"--gres=gpu:{gpus}"] if gpus else []
    options += [f"--partition={partition}"] if partition else []
    return options + ([f"--account={account}"] if account else [])


def _show(verdict: Verdict) -> None:
    colors = {"go": "green", "go-degraded": "yellow", "no-go": "red"}
    first, *rest = verdict.summary
    click.secho(first, fg=colors[verdict.verdict], bold=True)
    for line in rest:
        click.echo(f"  {line}")
    if verdict.environment:
        click.secho("environment", bold=True)
    for item in verdict.environment:
        click.echo(f"  {item.name}={item.value}  # {item.reason}")
    for node, variables in verdict.per_node.items():
        for name, value in variables.items():
            click.echo(f"  {name}={value}  # on {node}")
