"""More nodes or memory than Slurm's nodes have: what is proposed is not refused next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_asked_of_slurm import project
from tests.cli.test_shapes_given import NODES, SINFO

__all__ = ["project"]


@pytest.mark.parametrize("how", [[], ["--test-only"]])
@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        # The batch is 8.
        ("--nodes 4", "slurm.nodes is 4", "--nodes 2: global_batch_size 8 cannot be split over mo"),
        ("--nodes 4 global_batch_size=12", "slurm.nodes is 4", "--nodes 3 or fewer, or another"),
        (
            "--nodes 3 slurm.spares=1 global_batch_size=12",
            "slurm.nodes (slurm.spares among them) is 4",
            "--nodes 3 or fewer, --spares too, or another",
        ),
    ],
)
def test_the_nodes_that_are_named_are_those_that_the_batch_can_be_split_over(
    hpc, taken, project: Path, how: list[str], words: str, message: str, fix: str
) -> None:
    taken.has("sinfo", SINFO.format(nodes=3, most="infinite", gpus="gpu:4"))
    said = hpc("submit", "cfg.yaml", "--gpus", 1, *words.split(), *how)
    assert said.code == 4
    error, hint = said.err.splitlines()[-2:]
    assert f"{message}, {NODES}" in error
    assert f"fix: write {fix}" in hint
    fewer = hint.partition("--nodes ")[2][0]
    again = [it for it in words.split()[2:] if "spares" not in it]
    assert hpc("submit", "cfg.yaml", "--gpus", 1, "--nodes", fewer, *again, "--dry-run").code == 0


@pytest.mark.parametrize("how", [[], ["--dry-run"], ["--test-only"]])
@pytest.mark.parametrize("in_file", [True, False])
def test_a_memory_without_its_unit_is_told_with_what_nodes_have(
    hpc, taken, project: Path, how: list[str], in_file: bool
) -> None:
    """The unit was named first, and the number refused with it."""
    taken.has("sinfo", SINFO.format(nodes=3, most="infinite", gpus="gpu:4"))
    config = project / "cfg.yaml"
    if in_file:
        config.write_text(config.read_text().replace("slurm:", "slurm:\n  mem: 2000000"))
    words = [] if in_file else ["slurm.mem=2000000"]
    said = hpc("submit", "cfg.yaml", *how, *words)
    assert said.code == 3
    error, hint = said.err.splitlines()
    assert "and as 2000000M no node of the partition has so much (train 16000M), so" in error
    assert hint == "  fix: write slurm.mem=15G or less"
    assert hpc("submit", "cfg.yaml", *how, "slurm.mem=15G", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("sinfo", "words", "fix"),
    [
        (SINFO, ["slurm.mem=2000"], "write slurm.mem=2000M"),
        (SINFO, ["slurm.mem=2000000", "--cluster", "local"], "write slurm.mem=2000000M"),
        ("exit 1", ["slurm.mem=2000000"], "write slurm.mem=2000000M"),
        (SINFO, ["slurm.mem=lots"], ""),
    ],
)
def test_a_memory_that_nodes_have_or_of_which_nothing_is_known_is_told_its_unit(
    hpc, taken, project: Path, sinfo: str, words: list[str], fix: str
) -> None:
    taken.has("sinfo", sinfo.format(nodes=3, most="infinite", gpus="gpu:4"))
    said = hpc("submit", "cfg.yaml", *words)
    assert said.code == 3
    assert "has so much" not in said.err
    assert fix in said.err.splitlines()[1]
