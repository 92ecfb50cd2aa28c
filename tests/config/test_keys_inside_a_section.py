"""A wrong key in a section of a file: the fix is what can stand in that place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from tests.config.files import MINIMAL, refusal, write


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("slurm: {gres: 'gpu:2'}", "write gpus_per_node: 2"),
        ("slurm: {gres: 'gpu:a100:2'}", "write gpus_per_node: 2 and gpu_type: a100"),
        ("slurm: {ntasks_per_node: 2}", "write gpus_per_node: 2"),
        ("slurm: {walltime: 1:00:00}", "write time: ..."),
        ("slurm: {slurm.gpus_per_node: 2}", "write gpus_per_node: 2"),
        ("slurm: {slurm.gres: 'gpu:2'}", "write gpus_per_node: 2"),
        ("slurm: {slurm.gpus_per_nod: 2}", "did you mean 'gpus_per_node'?"),
        ("slurm: {slurm: {nodes: 2}}", "write nodes: 2, without the second slurm:"),
        ("slurm: {extra.nice: 100}", "write extra: {nice: 100}"),
        ("slurm: {sbatch.partition: x}", "write partition: x"),
        ("slurm: {requeue.budget: 2}", "write requeue: {budget: 2}, beside slurm and not below it"),
        ("checkpoint: {checkpoint.keep_last: 3}", "write keep_last: 3"),
        ("checkpoint: {save_steps: 10}", "write every_n_steps: ..."),
        ("env: {FOO: x}", "write variables: {FOO: x}"),
        ("env: {variables: {A: b}, variables.FOO: x}", "write below env.variables: FOO: x"),
    ],
)
def test_the_fix_can_stand_there(tmp_path: Path, line: str, fix: str) -> None:
    """It was `write slurm.gpus_per_node: 2`, which is refused below `slurm`."""
    assert refusal(write(tmp_path, f"{MINIMAL}{line}\n")).hint == fix


def test_what_is_told_is_taken(tmp_path: Path) -> None:
    fix = refusal(write(tmp_path, f"{MINIMAL}slurm: {{gres: 'gpu:2'}}\n")).hint
    path = write(tmp_path, f"{MINIMAL}slurm: {{{fix.removeprefix('write ')}}}\n")
    assert load(path).config.slurm.gpus_per_node == 2
