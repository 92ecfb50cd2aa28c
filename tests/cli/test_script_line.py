"""A script's arguments in front of `--` are told with the whole line that has to be typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest


@pytest.mark.parametrize("command", ["run", "submit", "render"])
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train.py --lr 0.1", "train.py -- --lr 0.1"),
        ("train.py --lr=0.1", "train.py -- --lr=0.1"),
        ("train.py --lr 0.1 --width 64", "train.py -- --lr 0.1 --width 64"),
        ("train.py --lr -0.5 --dims 1 2", "train.py -- --lr -0.5 --dims 1 2"),
        ("--nodes 2 train.py --lr 0.1", "train.py --nodes 2 -- --lr 0.1"),
        ("train.py --lr 0.1 --nodes=2", "train.py --nodes=2 -- --lr 0.1"),
        ("train.py --lr 0.1 slurm.time=1:00:00", "train.py slurm.time=1:00:00 -- --lr 0.1"),
        ("train.py --fast", "train.py -- --fast"),
        ("train.py --fast --lr 0.1", "train.py -- --fast --lr 0.1"),
        ("train.py fit --lr 0.1 model.lr=2", "train.py -- fit --lr 0.1 model.lr=2"),
        ("train.py --say 'two words'", "train.py -- --say 'two words'"),
        ('train.py --say "it\'s"', "train.py -- --say 'it'\"'\"'s'"),
        ("train.py --lr 0.1 -- --width 8", "train.py -- --lr 0.1 --width 8"),
    ],
)
def test_the_whole_line_is_shown(hpc, tmp_path: Path, command: str, typed: str, meant: str) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    said = hpc(command, *shlex.split(typed))
    assert said.code == 2
    assert f"come behind --: hpc-train {command} {meant}\n" in said.err


def test_what_is_shown_is_taken(hpc, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    said = hpc("render", "--nodes", "2", "train.py", "--lr", "a b", "slurm.time=1:00:00")
    line = said.err.strip().rpartition("come behind --: hpc-train ")[2]
    shown = hpc(*shlex.split(line))
    assert shown.code == 0
    assert '"args": ["--lr", "a b"]' in shown.out
    assert "#SBATCH --time=1:00:00" in shown.out


@pytest.mark.parametrize("command", ["run", "submit", "render"])
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("torchrun --nproc_per_node=2 train.py --lr 1", "train.py --gpus 2 -- --lr 1"),
        ("torchrun --nnodes 3 --nproc-per-node 4 train.py", "train.py --nodes 3 --gpus 4"),
        ("python -m torch.distributed.run --nproc_per_node 2 train.py", "train.py --gpus 2"),
        ("srun -N 2 --ntasks-per-node 4 python train.py", "train.py --nodes 2 --gpus 4"),
        ("accelerate launch --num_processes 4 train.py -a", "train.py --gpus 4 -- -a"),
        ("--gpus 1 torchrun --nproc_per_node=2 train.py", "train.py --gpus 1"),
        ("--nodes=2 torchrun --nproc_per_node=2 train.py", "train.py --gpus 2 --nodes=2"),
        ("torchrun train.py --lr 1", "train.py -- --lr 1"),
        ("torchrun --nproc_per_node=gpu train.py", "train.py"),
        ("python train.py --gpus 2", "train.py --gpus 2"),
    ],
)
def test_the_ranks_of_a_starter_are_in_the_line(
    hpc, tmp_path: Path, command: str, typed: str, meant: str
) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    said = hpc(command, *shlex.split(typed))
    assert said.code == 2
    assert "hpc-train starts the ranks itself\n" in said.err
    line = re.split(r"[;(\n]", said.err.partition("fix: hpc-train ")[2])[0].strip()
    assert line == f"{command} {meant}"


@pytest.mark.parametrize("command", ["run", "submit"])
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train.py -lr 0.1", "train.py -- --lr 0.1"),
        ("train.py -lr=0.1 --nodes 2", "train.py --nodes 2 -- --lr=0.1"),
        ("train.py -width 8", "train.py -- -width 8"),  # the script's own, as it has them
        ("train.py -l 0.1", "train.py -- -l 0.1"),
    ],
)
def test_one_dash_too_few_is_in_the_line(
    hpc, tmp_path: Path, command: str, typed: str, meant: str
) -> None:
    text = "p.add_argument('--lr'); p.add_argument('-width')"
    (tmp_path / "train.py").write_text(f"import argparse\np = argparse.ArgumentParser()\n{text}\n")
    said = hpc(command, *shlex.split(typed))
    assert said.code == 2
    assert f"come behind --: hpc-train {command} {meant}\n" in said.err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("scripts.train", "did you mean 'scripts/train.py'?"),
        ("python -m scripts.train --lr 1", "hpc-train run scripts/train.py -- --lr 1\n"),
        ("torchrun --nproc_per_node=2 -m scripts.train", "run scripts/train.py --gpus 2 ("),
        ("python -m scripts.other --lr 1", "hpc-train run train.py -- ARGUMENTS"),
        ("python train.py -m scripts.train", "hpc-train run train.py -- -m scripts.train\n"),
    ],
)
def test_a_module_is_told_as_its_file(hpc, tmp_path: Path, typed: str, told: str) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").write_text("print(1)\n")
    (tmp_path / "train.py").write_text("print(1)\n")
    said = hpc("run", *shlex.split(typed))
    assert said.code in (2, 3)
    assert told in said.err
