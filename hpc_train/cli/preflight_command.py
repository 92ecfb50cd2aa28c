"""`hpc-train preflight`: network and GPUs, checked as before a training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from hpc_train.cli.common import json_option, print_json, salloc_options, shell_word
from hpc_train.cli.verdicts import show_past_verdict, show_verdict
from hpc_train.config.schema import PreflightConfig
from hpc_train.errors import CheckError, UsageError


@click.command("preflight")
@click.argument("words", nargs=-1, metavar="[RUN]")  # or more logs, behind --explain LOG
@click.option("--attempt", type=click.IntRange(min=0), help="Of RUN; the newest by default.")
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
@json_option
def command(
    words: tuple[str, ...],
    attempt: int | None,
    nodes: int | None,
    gpus: int | None,
    partition: str | None,
    account: str | None,
    full: bool,
    strict: bool,
    budget: float,
    thresholds: tuple[str, ...],
    explain: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check network and GPUs: of this host, of the allocation at hand, or of --nodes N.

    The exit code is 3 where a training must not start, or where nothing could be checked.

    With RUN (a name, a run id, a run directory or a job id): show what the preflight of one of its
    attempts said; nothing is checked now.
    """
    if explain:
        return _explain([*explain, *words], as_json=as_json)
    _refuse_what_contradicts(words, attempt, nodes)
    _refuse_options_of_others(words, nodes, anew=full or strict, of_a_job=partition or account)
    if words:
        show_past_verdict(words[0], attempt, as_json=as_json)
        return 0
    from hpc_train.preflight.run_preflight import check_sections
    from hpc_train.preflight.standalone_preflight import preflight_here

    config = PreflightConfig(
        mode="full" if full else "quick",
        strict=strict,
        budget_s=budget,
        thresholds=_thresholds(thresholds),
    )
    check_sections(config)
    if nodes is not None:
        salloc = salloc_options(nodes, gpus, partition, account)
        return _in_new_allocation(config, nodes, salloc, gpus=gpus, as_json=as_json)
    verdict = preflight_here(config, os.environ, gpus_per_node=gpus)
    if as_json:
        print_json(verdict.to_json())
    else:
        show_verdict(verdict)
    return CheckError.exit_code if verdict.verdict == "no-go" else 0


def _explain(logs: Sequence[str], *, as_json: bool) -> int:
    from hpc_train.diagnose.nccl.nccl_log import read_nccl_logs
    from hpc_train.diagnose.nccl.nccl_text import explain, report_json

    if any(log.startswith("--") for log in logs):
        raise UsageError("--explain has no log behind it", "--explain LOG, other options before it")
    report = read_nccl_logs(logs)
    if as_json:
        print_json({"logs": list(logs), **report_json(report)})
    else:
        click.echo("\n".join(explain(report)))
    return CheckError.exit_code if report.failures else 0


def _refuse_what_contradicts(words: Sequence[str], attempt: int | None, nodes: int | None) -> None:
    """RUN and --attempt are of a past verdict, --nodes of a new one."""
    if len(words) > 1:
        raise UsageError(f"{words[1]!r} is one RUN too many", "several logs: --explain LOG LOG ...")
    if words and Path(words[0]).is_file():
        fix = f"an NCCL log: hpc-train preflight --explain {shell_word(words[0])}"
        if words[0].endswith((".yaml", ".yml")):
            fix = f"leave it out; hpc-train submit --dry-run {shell_word(words[0])} checks a config"
        raise UsageError(f"{words[0]!r} is a file and no RUN", fix)
    if words and nodes is not None:
        raise UsageError("RUN shows a past verdict, --nodes asks for a new one", "leave one out")
    if attempt is not None and not words:
        raise UsageError(
            "--attempt is of a RUN, and none is named", "hpc-train list shows the runs"
        )


def _refuse_options_of_others(
    words: Sequence[str], nodes: int | None, *, anew: bool, of_a_job: str | None
) -> None:
    """What a past verdict, and a check of this host, would leave without a word."""
    if words and anew:
        raise UsageError("RUN shows a past verdict, and --full checks anew", "leave one out")
    if nodes is None and of_a_job:
        hint = "add --nodes N, or leave them out to check this host"
        raise UsageError("--partition and --account are of the job that --nodes asks for", hint)


def _in_new_allocation(
    config: PreflightConfig, nodes: int, salloc: list[str], *, gpus: int | None, as_json: bool
) -> int:
    """Run this command again inside, with its other options."""
    from hpc_train.preflight.standalone_preflight import in_new_allocation

    flags = {"--full": config.mode == "full", "--strict": config.strict, "--json": as_json}
    again = [name for name, wanted in flags.items() if wanted]
    again += [f"--gpus={gpus or 0}", f"--budget={config.budget_s!r}"]
    again += [f"--threshold={name}={value!r}" for name, value in config.thresholds.items()]

    def say(line: str) -> None:
        click.echo(line, err=True)

    return in_new_allocation(["preflight", *again], nodes, salloc, say=say)


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
