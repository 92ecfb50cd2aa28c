"""A batch that the shape cannot split, where Slurm is: no shape is named that it would refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_asked_of_slurm import project

__all__ = ["project"]
SINFO = "echo 'train*|infinite|{nodes}|1-{most}|8|{gpus}|n[1-9]|N/A|16000'"
NODES = "more than the partition gives a job (train 3), so the job would never start"


@pytest.mark.parametrize("how", [[], ["--dry-run"], ["--test-only"], ["--sweep", "seed=1,2"]])
def test_more_nodes_than_there_are_are_told_with_shapes_of_those_there_are(
    hpc, taken, project: Path, how: list[str]
) -> None:
    taken.has("sinfo", SINFO.format(nodes=3, most="infinite", gpus="gpu:4"))
    said = hpc("submit", "cfg.yaml", "--nodes", 5, "--gpus", 1, *how)
    assert said.code == 3
    assert "global_batch_size 8 cannot be split over 5 ranks (5 nodes x 1), and " in said.err
    assert NODES in said.err
    assert "nearest shapes: --nodes 2 --gpus 1 or --nodes 1 --gpus 1\n" in said.err
    assert "nearest global_batch_size" not in said.err, "of 5 ranks, which are not to be had"
    assert hpc("submit", "cfg.yaml", "--nodes", 2, "--gpus", 1, "--dry-run").code == 0


@pytest.mark.parametrize(
    ("there", "asked", "told"),
    [
        # A partition that has them all, or of which nothing is known.
        ({"nodes": 9}, (5, 1), "10; nearest shapes: --nodes 4 --gpus 1 or --nodes 2 --gpus 1 or"),
        ({}, (5, 1), "10; nearest shapes: --nodes 4 --gpus 1 or --nodes 2 --gpus 1 or"),
        ({"nodes": 3}, (3, 1), "9; nearest shapes: --nodes 2 --gpus 1 or --nodes 1 --gpus 1\n"),
        ({"nodes": 1}, (1, 3), "9; nearest shapes: --nodes 1 --gpus 2 or --nodes 1 --gpus 4 or"),
        ({"nodes": 9, "most": 4}, (5, 1), "fix: nearest shapes: --nodes 4 --gpus 1 or --nodes 2"),
        # Eight CPUs a node, and each rank needs one.
        ({"nodes": 1}, (1, 9), "fix: nearest shapes: --nodes 1 --gpus 8 or --nodes 1 --gpus 4 or"),
    ],
)
def test_the_shapes_are_those_that_the_partition_gives(
    hpc, taken, project: Path, there: dict[str, int], asked: tuple[int, int], told: str
) -> None:
    known = SINFO.format(**{"most": "infinite", "gpus": "(null)", **there}) if there else "exit 1"
    taken.has("sinfo", known)
    said = hpc("submit", "cfg.yaml", "--nodes", asked[0], "--gpus", asked[1])
    assert said.code == 3
    assert told in said.err


def test_a_node_has_not_more_gpus_than_it_has(hpc, taken, project: Path) -> None:
    taken.has("sinfo", SINFO.format(nodes=2, most="infinite", gpus="gpu:3"))
    said = hpc("submit", "cfg.yaml", "--gpus", 3, "trainer.accelerator=gpu")
    told = "nearest shapes: --nodes 1 --gpus 2 or --nodes 1 --gpus 1\n"
    assert told in said.err, "of four GPUs there is no node"


@pytest.mark.parametrize("words", [["--cluster", "local"], []])
def test_without_slurm_nothing_is_asked(
    hpc, taken, project: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken.has("sinfo", f"touch {project}/asked_of_it; exit 1")
    if not words:
        monkeypatch.setenv("PATH", "/nowhere")
    said = hpc("submit", "cfg.yaml", "--nodes", 5, "--gpus", 1, *words)
    assert "10; nearest shapes: --nodes 4 --gpus 1 or --nodes 2 --gpus 1 or" in said.err
    assert not (project / "asked_of_it").exists()
