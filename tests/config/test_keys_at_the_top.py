"""Keys of a section at the top of a file, or with points in a site profile: one fix, its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from tests.config.files import MINIMAL, refusal, write

LINES = MINIMAL.count("\n")
THERE = (
    f"there is slurm on line {LINES + 3}: write in its braces partition: train; there is"
    f" slurm.nodes on line {LINES + 3}: write 3 there"
)
PLAIN = "partition: train\naccount: hydro\n"


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        (PLAIN, "write slurm: {partition: train, account: hydro}"),
        ("partition: train\n", "write slurm: {partition: train}"),
        (
            "queue: train\ngres: gpu:2\ntime: 1:00:00\n",
            "write slurm: {partition: train, gpus_per_node: 2, time: '1:00:00'}",
        ),
        ("ntasks-per-node: 2\nmem: 4G\n", "write slurm: {gpus_per_node: 2, mem: 4G}"),
        (
            "partition: train\nnodes: 3\nslurm: {nodes: 2}\n",
            THERE,
        ),
        ("keep_last: 3\nkeep_best: 1\n", "write checkpoint: {keep_last: 3}"),
    ],
)
def test_one_fix_has_all_of_them(tmp_path: Path, lines: str, fix: str) -> None:
    assert refusal(write(tmp_path, f"{MINIMAL}{lines}")).hint == fix


def test_keys_of_another_section_have_their_own(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, f"{MINIMAL}partition: a\nkeep_last: 3\nfoo: 1\nqos: b\n"))
    assert error.message.endswith("partition is no key of hpc-train, and qos is none")
    assert error.hint == "write slurm: {partition: a, qos: b}"


def profile(folder: Path, text: str) -> Path:
    (folder / "clusters").mkdir()
    write(folder, text, "clusters/site.yaml")
    return write(folder, f"cluster_profile: site\n{MINIMAL}slurm: {{nodes: 2}}\n")


def test_a_profile_of_sbatch_options_is_mended_at_once(tmp_path: Path) -> None:
    error = refusal(profile(tmp_path, PLAIN))
    assert "clusters/site.yaml:1: partition is no key" in error.message
    write(tmp_path, error.hint.removeprefix("write ") + "\n", "clusters/site.yaml")
    slurm = load(tmp_path / "cfg.yaml").config.slurm
    assert (slurm.partition, slurm.account, slurm.nodes) == ("train", "hydro", 2)


def test_keys_with_points_in_a_profile_name_its_lines(tmp_path: Path) -> None:
    """The config has the section as well, and was named."""
    error = refusal(profile(tmp_path, "slurm.partition: train\nslurm.account: hydro\n"))
    assert "clusters/site.yaml:1: slurm.partition is one key with a point" in error.message
    assert error.hint.startswith("write slurm: {partition: train, account: hydro};")
