"""The same look at each node of an allocation, by one step of srun; equal answers are one line."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hpc_train.codec import decode
from hpc_train.doctor.examine_folder import existing_parent
from hpc_train.doctor.torch_and_driver import TORCH_LIMIT_S
from hpc_train.errors import CheckError, ConfigError
from hpc_train.plan.hostlist import expand
from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.inventory.collect_inventory import node_name
from hpc_train.slurm.command import run
from hpc_train.slurm.inherit import for_step
from hpc_train.slurm.srun_words import launch_failures
from hpc_train.slurm.step import one_a_node

MARK = "hpc-train-doctor"  # before an answer: a node's shell may print as well
# slurmstepd sends whole lines, but of a longer one the first 1,024 bytes by themselves, and another
# node's words come between (SLURM_IO_MAX_MSG_LEN in src/common/io_hdr.h).
PART = 400
_LINE = re.compile(rf"{MARK} (\S+) (\d+)/(\d+) (.*)")
STEP_LIMIT_S = TORCH_LIMIT_S + 60.0


def examine_nodes(folder: Path, count: int, environ: Mapping[str, str]) -> list[Finding]:
    """Look at the first `count` nodes of the allocation that this process is in.

    Raises:
        CheckError: the allocation has fewer nodes.
        SlurmError: srun is silent.
        ConfigError: nothing can be written beside the runs.
    """
    nodes = expand(environ["SLURM_JOB_NODELIST"])[:count]
    if len(nodes) < count:
        fix = f"--nodes {len(nodes)}, or leave the allocation to ask for {count}"
        raise CheckError(
            f"this allocation has {len(nodes)} nodes, and --nodes asks for {count}", fix
        )
    parent = existing_parent(folder)
    try:
        made = tempfile.TemporaryDirectory(prefix=".hpc-train-doctor-", dir=parent)
    except OSError as error:
        raise ConfigError(
            f"{parent} cannot be written: {error.strerror}", "--runs-dir FOLDER, of yours"
        ) from error
    with made as seen_from_here:
        again = [sys.executable, "-m", "hpc_train.doctor", str(folder.absolute()), seen_from_here]
        said = run([*one_a_node(nodes), *again], timeout_s=STEP_LIMIT_S, env=for_step(environ))
    return findings_of_nodes(nodes, said.stdout, said.stderr)


def report_node(folder: Path, seen_from_first: Path) -> str:
    """On a node: the lines of its answer.

    Args:
        folder: Of the runs.
        seen_from_first: A folder beside the runs that whoever asks has made.
    """
    from hpc_train.doctor.examine_machine import examine_machine

    findings = examine_machine(folder, os.environ)
    if seen_from_first.is_dir():
        findings.append(Finding("", "", "shared", "ok", "a folder made beside the runs is seen"))
    else:
        text = f"{seen_from_first.parent} is another folder here than where this was started"
        fix = "set runs_dir to a folder on the shared file system"
        findings.append(Finding("", "", "shared", "fail", text, fix))
    return answer_lines(node_name(os.environ), findings)


def answer_lines(node: str, findings: Sequence[Finding]) -> str:
    """The answer of a node in lines that srun does not tear."""
    text = json.dumps([vars(item) for item in findings])
    parts = [text[at : at + PART] for at in range(0, len(text), PART)]
    lines = [f"{MARK} {node} {n}/{len(parts)} {part}" for n, part in enumerate(parts, start=1)]
    return "\n".join(lines)


def _answers(stdout: str) -> dict[str, list[Finding]]:
    """What each node has found; without those that are not whole."""
    parts: dict[str, dict[int, str]] = {}
    for line in stdout.splitlines():
        if match := _LINE.fullmatch(line):
            node, number, count, part = match.groups()
            parts.setdefault(node, dict.fromkeys(range(1, int(count) + 1), ""))[int(number)] = part
    return {
        node: [decode(Finding, item) for item in json.loads("".join(found.values()))]
        for node, found in parts.items()
        if all(found.values())
    }


def findings_of_nodes(nodes: Sequence[str], stdout: str, stderr: str) -> list[Finding]:
    """What the nodes said, check by check; a node without an answer has failed. Pure."""
    answers = _answers(stdout)
    order = list(dict.fromkeys(item.check for found in answers.values() for item in found))
    said = [
        replace(item, node=node)
        for check in order
        for node in nodes
        for item in answers.get(node, ())
        if item.check == check
    ]
    refused = launch_failures(stderr, nodes)
    last = (stderr.strip().splitlines() or ["srun said nothing"])[-1]
    silent = [
        Finding(node, "", "answer", "fail", f"none: {refused.get(node, last)}", _SILENT)
        for node in nodes
        if node not in answers
    ]
    return [*said, *silent]


_SILENT = "is the node up, and is this Python there? hpc-train preflight --nodes N names the node"
