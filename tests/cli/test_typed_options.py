"""A fix that names a key where the option that stands for it was typed."""

from __future__ import annotations

import pytest

from hpc_train.cli.typed_options import as_options


@pytest.mark.parametrize(
    ("words", "hint", "told"),
    [
        ("--partition short", "write slurm.partition=long, or", "write --partition long, or"),
        ("--partition=short", "write slurm.partition=long", "write --partition long"),
        ("slurm.partition=short", "write slurm.partition=long", "write slurm.partition=long"),
        ("--time 9:00", "slurm.time=5:00 or less", "--time 5:00 or less"),
        ("--nodes 3 --gpus 2", "slurm.gpus_per_node=4", "--gpus 4"),
        ("--runs-dir /x", "write runs_dir=/scratch/me", "write --runs-dir /scratch/me"),
        ("--name a", "write model.init_args.name=b", "write model.init_args.name=b"),
        ("--partition short", "slurm.partition={name}", "slurm.partition={name}"),
        ("--qos a", "slurm.partition=long", "slurm.partition=long"),
    ],
)
def test_a_key_in_a_fix_is_the_option_that_was_typed(words: str, hint: str, told: str) -> None:
    assert as_options(hint, ["submit", *words.split(), "cfg.yaml"]) == told
