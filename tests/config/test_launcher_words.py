"""Other launchers in the place of `script.launcher`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.meant_words.launcher_words import launcher_hint
from hpc_train.errors import ConfigError


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("accelerate", "leave it out: an accelerate script needs no launcher"),
        ("deepspeed", "leave it out: a script that calls deepspeed.initialize() needs no launcher"),
        ("mpirun", "leave it out: the ranks are started without MPI, and RANK and WORLD_SIZE tell"),
        ("python", "leave it out: python is started for each rank"),
        ("DDP", "leave it out: DistributedDataParallel needs no launcher"),
        ("slurm", "leave it out: srun starts the ranks, or what stands for it without Slurm"),
        ("lightning", "leave it out: a Trainer needs no launcher"),
        ("fabric", "leave it out: a Fabric needs no launcher"),
        ("torch.distributed.launch", "write script.launcher=torchrun, or leave it out"),
        ("spawn", "write script.launcher=none, where the script starts the ranks of a node itself"),
        ("screen", "write one of 'srun', 'torchrun', 'none'"),
    ],
)
def test_each_is_told_what_it_is_here(tmp_path: Path, word: str, hint: str) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "cfg.yaml").write_text("script: {path: train.py}\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "cfg.yaml", [f"script.launcher={word}"])
    assert caught.value.message.endswith(f"script.launcher is '{word}'")
    assert caught.value.hint.startswith(hint)


def test_those_that_there_are_are_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "cfg.yaml").write_text("script: {path: train.py}\n")
    for word in ("srun", "torchrun", "none"):
        assert load(tmp_path / "cfg.yaml", [f"script.launcher={word}"])
    assert launcher_hint("srun") == ""
