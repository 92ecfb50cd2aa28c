"""`hpc-train doctor`: what this machine, or this cluster, allows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.cli.common import json_option, print_json, salloc_options
from hpc_train.errors import CheckError, UsageError
from hpc_train.runs.known_places import RUNS_DIR_VARIABLE

if TYPE_CHECKING:
    from hpc_train.preflight.checks.findings import Finding

# A check that could not tell is no pass.
WORDS = {"ok": "pass", "note": "pass", "unknown": "warn", "warn": "warn", "fail": "fail"}
COLORS = {"pass": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@click.option("--nodes", type=click.IntRange(min=1), help="Ask Slurm for so many, and look there.")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs a node, with --nodes.")
@click.option("--partition", help="Partition, with --nodes.")
@click.option("--account", help="Account, with --nodes.")
@click.option("--runs-dir", type=click.Path(path_type=Path), help="The folder of runs to try.")
@json_option
def command(
    nodes: int | None,
    gpus: int | None,
    partition: str | None,
    account: str | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Look at this machine and its Slurm: a line each, pass, warn or fail with the fix.

    The exit code is 3 where a line says fail.
    """
    from hpc_train.doctor.examine_slurm import check_slurm

    folder = runs_dir or Path(os.environ.get(RUNS_DIR_VARIABLE, "runs"))
    if nodes is None:
        if gpus is not None or partition or account:
            why = "--gpus, --partition and --account are of the job that --nodes asks for"
            raise UsageError(why, "add --nodes N, or leave them out to look at this machine")
        from hpc_train.doctor.examine_machine import examine_with_slurm

        found = examine_with_slurm(folder, os.environ)
    elif "SLURM_JOB_ID" in os.environ:
        from hpc_train.doctor.on_nodes import examine_nodes

        found = [*examine_nodes(folder, nodes, os.environ), *check_slurm(os.environ)]
    else:
        again = ["doctor", f"--nodes={nodes}", f"--runs-dir={folder}", *["--json"] * as_json]
        return _in_new_allocation(again, nodes, salloc_options(nodes, gpus, partition, account))
    return _show(found, as_json=as_json)


def _in_new_allocation(again: list[str], nodes: int, salloc: list[str]) -> int:
    from hpc_train.preflight.standalone_preflight import in_new_allocation

    return in_new_allocation(again, nodes, salloc, say=lambda line: click.echo(line, err=True))


def _show(found: list[Finding], *, as_json: bool) -> int:
    from hpc_train.preflight.verdict import together

    lines = [(where, WORDS[item.level], item) for where, item in together(found)]
    if as_json:
        keys = ("nodes", "check", "level", "text", "fix")
        rows = [(where, item.check, word, item.evidence, item.fix) for where, word, item in lines]
        answers = [dict(zip(keys, row, strict=True)) for row in rows]
        print_json({"schema_version": 1, "checks": answers})
    else:
        width = max(len(item.check) for _, _, item in lines)
        for where, word, item in lines:
            click.secho(word, fg=COLORS[word], nl=False)
            of = f"{where}: " if where else ""
            fix = f" -> {item.fix}" if item.fix else ""
            click.echo(f"  {item.check.ljust(width)}  {of}{item.evidence}{fix}")
    return CheckError.exit_code if any(word == "fail" for _, word, _ in lines) else 0
