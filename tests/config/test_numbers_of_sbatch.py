"""Numbers of sbatch's in `slurm`: told with the key and the number to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

CONFIG = """\
name: x
script: {{path: train.py}}
slurm: {{time: 10, nodes: {nodes}{more}}}
"""
OF_EACH = " (of each node; {} of sbatch counts all 2)"
REST = "write gpus_per_node, of each node: 3 over 2 nodes leave a rest, and each node has as"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def hint(folder: Path, nodes: int, more: str, *words: str) -> str:
    write(folder, "print(1)\n", "train.py")
    write(folder, CONFIG.format(nodes=nodes, more=more), "cfg.yaml")
    with pytest.raises(ConfigError) as caught:
        api.load("cfg.yaml", *words)
    return caught.value.hint or ""


@pytest.mark.parametrize(
    ("written", "nodes", "meant"),
    [
        ("gpus: 4", 2, "write gpus_per_node: 2" + OF_EACH.format("gpus")),
        ("gpus: 2", 2, "write gpus_per_node: 1" + OF_EACH.format("gpus")),
        ("gpus: 4", 1, "write gpus_per_node: 4"),
        ("gpus: 3", 2, REST),
        ("gpus: 'a100:4'", 2, "write gpus_per_node: 2 and gpu_type: a100 (of each"),
        ("ntasks: 4", 2, "write gpus_per_node: 2" + OF_EACH.format("ntasks")),
        ("ntasks: 1", 1, "write gpus_per_node: 1 (of each node: a rank a GPU)"),
        ("ntasks_per_node: 4", 2, "write gpus_per_node: 4"),
        ("ntasks-per-node: 4", 3, "write gpus_per_node: 4"),
        ("cpus_per_task: 8", 2, "write cpus_per_gpu: 8"),
        ("gpus: all", 2, "write gpus_per_node"),
        ("gpus: 0", 2, "write gpus_per_node"),
        ("cpus_per_task: true", 2, "write cpus_per_gpu"),
    ],
)
def test_a_number_of_sbatch_is_told_as_that_of_the_key(
    tmp_path: Path, written: str, nodes: int, meant: str
) -> None:
    found = hint(tmp_path, nodes, f", {written}")
    assert found.startswith(meant)
    if meant.endswith(("node", "gpu")):
        assert ": 0" not in found
        assert "True" not in found


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("slurm.gpus=4", "write slurm.gpus_per_node=2" + OF_EACH.format("gpus")),
        ("slurm.cpus-per-task=8", "write slurm.cpus_per_gpu=8"),
    ],
)
def test_one_that_was_typed_as_it_is_typed(tmp_path: Path, typed: str, meant: str) -> None:
    assert hint(tmp_path, 2, "", typed) == meant
