"""`hpc-train preflight --nodes N`: where Slurm can never give so many, it does not wait."""

from __future__ import annotations

import time

import pytest

from hpc_train.slurm.pending import never_starts
from tests.cli.conftest import Slurm


@pytest.fixture
def asked(slurm: Slurm) -> Slurm:
    """A salloc that waits until it is ended, and says so."""
    ends = f"kill $!; echo > {slurm.folder}/ended; exit 1"
    slurm.has("salloc", f"trap '{ends}' TERM\nsleep 600 &\nwait")
    slurm.has("scontrol", "exit 0")
    slurm.has("sbatch", "exit 0")
    rest = "8|gpu:4|n[1-3]|N/A"
    rows = f"train*|infinite|3|1-infinite|{rest}", f"small|infinite|3|1-2|{rest}"
    slurm.has("sinfo", "; ".join(f"echo '{row}'" for row in rows))
    return slurm


@pytest.mark.parametrize(
    ("words", "most"),
    [(["--nodes", "9"], "train 3"), (["--nodes", "3", "--partition", "small"], "small 2")],
)
def test_more_nodes_than_there_are_are_refused_before_slurm_is_asked(
    hpc, asked: Slurm, words: list[str], most: str
) -> None:
    said = hpc("preflight", *words)
    assert said.code == 4, said
    assert f"is {words[1]}, more than the partition gives a job ({most})" in said.err
    assert said.err.startswith(f"error: --nodes is {words[1]}, ")
    fix = f"write --nodes {most[-1]} or fewer, or another --partition (`sinfo -s` lists them)"
    assert said.err.endswith(f"  fix: {fix}\n")
    assert asked.asked() == 0
    assert not (asked.folder / "ended").exists()


def test_a_controller_that_does_not_answer_is_told_before_nodes_are_asked_for(
    hpc, asked: Slurm
) -> None:
    asked.has("scontrol", "echo 'Slurmctld(primary) at head is DOWN'; exit 1")
    said = hpc("preflight", "--nodes", "2")
    assert said.code == 4, said
    assert said.err.splitlines() == [
        "error: Slurm's controller does not answer: Slurmctld(primary) at head is DOWN",
        "  fix: `scontrol ping` tells when it is back; leave --nodes out to look at this host",
    ]
    assert not (asked.folder / "ended").exists()


NOT_AVAILABLE = (
    "echo 'allocation failure: Requested node configuration is not available' >&2; exit 1"
)


@pytest.mark.parametrize("command", ["preflight", "doctor"])
@pytest.mark.parametrize(
    ("states", "nodes", "told"),
    [
        (["drained|disk swap"] * 3, 2, 'n[1-3] are drained ("disk swap")'),
        (["drained|a", "down*|b", "idle|none"], 2, 'n1 is drained ("a"); n2 is down ("b")'),
        (["idle|none"] * 3, 2, ""),
        (["drained|a", "idle|none", "idle|none"], 2, ""),
    ],
)
def test_nodes_that_are_drained_are_told_and_no_key_is_blamed(
    hpc, asked: Slurm, command: str, states: list[str], nodes: int, told: str
) -> None:
    asked.has("sbatch", NOT_AVAILABLE)
    rows = "; ".join(f"echo 'train*|n{n}|{state}'" for n, state in enumerate(states, start=1))
    partition = "echo 'train*|infinite|3|1-infinite|8|gpu:4|n[1-3]|N/A'"
    asked.has("sinfo", f'case "$*" in *%E*) {rows};; *) {partition};; esac')
    said = hpc(command, "--nodes", str(nodes))
    assert said.code == 4, said
    if not told:
        assert "Requested node configuration is not available" in said.err
        return
    error, hint = said.err.splitlines()
    assert error == f"error: Slurm has no {nodes} nodes to look at now: {told}"
    assert "nothing has to be changed: once an administrator has resumed them, the same" in hint
    assert f"hpc-train {command} alone looks at this host" in hint


@pytest.mark.parametrize(
    ("reason", "never"),
    [
        ("PartitionNodeLimit", True),
        ("(PartitionConfig)", True),
        ("BadConstraints", True),
        ("InvalidQOS", True),
        ("QOSMaxNodePerJobLimit", True),
        ("Priority", False),
        ("Resources", False),
        ("PartitionDown", False),
        ("ReqNodeNotAvail, UnavailableNodes:node3", False),
        ("", False),
    ],
)
def test_only_what_the_job_asks_for_keeps_it_from_ever_starting(reason: str, never: bool) -> None:
    assert never_starts(reason) is never


def test_a_reason_that_nothing_ends_ends_the_wait(hpc, asked: Slurm) -> None:
    reason = "BadConstraints"
    asked.says(f"7|{reason}|2026-11-21T10:00:00|N/A")
    began = time.monotonic()
    said = hpc("preflight", "--nodes", "3")
    assert time.monotonic() - began < 60
    assert said.code == 4, said
    assert f"job 7 waits since 2026-11-21T10:00:00: {reason}" in said.err
    assert "Slurm would never start it" in said.err
    assert (asked.folder / "ended").exists()


def test_a_reason_that_may_pass_is_waited_out(hpc, asked: Slurm) -> None:
    asked.has("salloc", "sleep 3; exit 0")
    asked.says("7|PartitionDown|2026-11-21T10:00:00|N/A")
    said = hpc("preflight", "--nodes", "3")
    assert said.code == 0, said
    assert "waits since 2026-11-21T10:00:00: PartitionDown" in said.err
