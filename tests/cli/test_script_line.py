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


@pytest.mark.parametrize("command", ["run", "submit"])
@pytest.mark.parametrize(
    ("typed", "said", "meant"),
    [
        ("train.py a.lr=0.1", "'a.lr=0.1' is", "train.py -- a.lr=0.1"),
        ("train.py a.lr=0.1 b=3", "'a.lr=0.1' and 'b=3' are", "train.py -- a.lr=0.1 b=3"),
        (
            "--gpus 1 train.py a=1 slurm.mem=8G 'b=x y' c=3 -- +d=4",
            "'a=1', 'b=x y' and 'c=3' are",
            "train.py --gpus 1 slurm.mem=8G -- a=1 'b=x y' c=3 +d=4",
        ),
        ("./train.py lr=0.1 a=1", "'lr=0.1' and 'a=1' are", "./train.py -- --lr 0.1 a=1"),
        ("train.py seed=3 a=1", "'a=1' is", "train.py seed=3 -- a=1"),
    ],
)
def test_all_key_values_of_the_script_are_in_the_line(
    hpc, tmp_path: Path, command: str, typed: str, said: str, meant: str
) -> None:
    (tmp_path / "train.py").write_text("p.add_argument('--lr')\n")
    told = hpc(command, *shlex.split(typed))
    assert told.code == 3
    assert f"error: {said} nothing that hpc-train takes beside a script\n" in told.err
    assert told.err.endswith(f"train.py come behind --: hpc-train {command} {meant}\n")


@pytest.mark.parametrize(
    ("script", "typed", "noted"),
    [
        ("OmegaConf.from_cli()", "seed=3", "train.py type train.py -- seed=3\n"),
        ("OmegaConf.from_cli()", "seed=3 -- b=1", "train.py type train.py -- seed=3 b=1"),
        ("@hydra.main()\ndef f(cfg): ...", "seed=3", "seed=3 is hpc-train's own, and train.py is"),
        ("OmegaConf.from_cli().name", "name=x", "name=x is hpc-train's own, and train.py is not"),
        ("OmegaConf.from_cli()", "name=x", ""),
        ("OmegaConf.from_cli()", "slurm.nodes=1", ""),
        ("OmegaConf.from_cli()", "seed=3 -- seed=3", ""),
        ("OmegaConf.from_cli()", "seed=3 -- +seed=3", ""),
        ("L.seed_everything()", "seed=3", ""),
    ],
)
def test_a_key_of_ours_beside_a_script_that_reads_key_values_is_noted(
    hpc, tmp_path: Path, script: str, typed: str, noted: str
) -> None:
    (tmp_path / "train.py").write_text(f"{script}\n")
    told = hpc("render", "train.py", *shlex.split(typed))
    assert told.code == 0
    assert ("is hpc-train's own" in told.err) == bool(noted)
    assert noted in told.err


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


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("-m pack.train", "pack/train.py"),
        ("-m pack.train --lr 1", "pack/train.py -- --lr 1"),
        ("--gpus 2 -m pack.train -- --lr 1", "pack/train.py --gpus 2 -- --lr 1"),
        ("-m pack.train slurm.mem=8G a=1", "pack/train.py slurm.mem=8G -- a=1"),
    ],
)
def test_a_module_behind_m_is_told_as_the_line_of_its_file(
    hpc, tmp_path: Path, typed: str, meant: str
) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "train.py").write_text("print(1)\n")
    said = hpc("run", *shlex.split(typed))
    assert said.code == 2
    assert said.err.endswith(f"fix: name the module's file: hpc-train run {meant}\n")
