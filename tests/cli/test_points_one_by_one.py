"""A sweep whose key is none, and one where there is no Slurm: what is told of its first point."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.mistaken import project, refused

__all__ = ["project"]

SCRIPT = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
print(parser.parse_args().lr)
"""


@pytest.mark.parametrize("where", [[], ["--cluster", "local"], ["--wait"], ["--dry-run"]])
@pytest.mark.parametrize("has_slurm", [True, False])
def test_a_key_is_checked_before_anything_else_is_said_of_a_sweep(
    hpc, project: Path, request: pytest.FixtureRequest, where: list[str], has_slurm: bool
) -> None:
    if not has_slurm:
        request.getfixturevalue("without_slurm")
    (project / "train.py").write_text(SCRIPT)
    (project / "vary.yaml").write_text("base: cfg.yaml\nsweep: {lr: [0.1, 0.2]}\n")
    typed = ["submit", "cfg.yaml", "--sweep", "lr=0.1,0.2", *where]
    refused(hpc, project, typed, 3, "lr is no key of hpc-train", "model.init_args.lr")
    refused(hpc, project, ["submit", "vary.yaml", *where], 3, "vary.yaml:2: lr is no key", "lr: [")
    typed = ["submit", "train.py", "--sweep", "lr=0.1,0.2", *where, "--", "--lr", "0.1"]
    fix = "write {lr} where the value belongs: -- --lr {lr}"
    refused(hpc, project, typed, 3, "lr has no place in the arguments of train.py", fix)
    file = 'script:\n  path: train.py\n  args: [--lr, "0.1", --n, "2"]\n'
    (project / "array.yaml").write_text(file)
    fix = "write {lr} where the value belongs, at array.yaml:3: args: [--lr, '{lr}', --n, '2']"
    typed = ["submit", "array.yaml", "--sweep", "lr=0.1,0.2", *where]
    refused(hpc, project, typed, 3, "lr has no place in the arguments of train.py", fix)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (
            "cfg.yaml --nodes 1 --sweep model.init_args.lr=0.1,0.2 seed=3",
            "cfg.yaml --nodes 1 seed=3 model.init_args.lr=0.1",
        ),
        (
            "cfg.yaml --sweep model.init_args.lr=0.1,0.2 --sweep seed=1,2",
            "cfg.yaml model.init_args.lr=0.1 seed=1",
        ),
        ("vary.yaml", "vary.yaml 'sweep={}' seed=4"),
        ("train.py --sweep lr=0.1,0.2 -- --lr {lr}", "train.py -- --lr 0.1"),
        ("train.py --sweep lr=0.1,0.2 --gpus 2 -- --lr={lr}", "train.py --gpus 2 -- --lr=0.1"),
        ("train.py --sweep seed=1,2 -- --lr 3", "train.py seed=1 -- --lr 3"),
        ("script.yaml", "script.yaml 'sweep={}' 'script.args=[--lr, 0.1]'"),
    ],
)
def test_the_line_for_one_point_without_slurm_is_taken(
    hpc, project: Path, without_slurm: None, typed: str, line: str
) -> None:
    (project / "train.py").write_text(SCRIPT)
    (project / "vary.yaml").write_text("base: cfg.yaml\nsweep: {seed: [4, 5]}\n")
    script = "script: {path: train.py, args: [--lr, '{lr}']}\nsweep: {lr: [0.1, 0.2]}\n"
    (project / "script.yaml").write_text(script)
    words = typed.split()
    fix = f"the first with: hpc-train run {line}"
    refused(hpc, project, ["submit", *words], 4, "there is no Slurm here", fix)
    words[1:1] = ["--cluster", "local"]
    refused(hpc, project, ["submit", *words], 2, "is for one training", fix)
    said = hpc("submit", "--dry-run", *shlex.split(line))
    assert said.code == 0, said


def test_the_line_for_one_point_is_not_offered_where_the_point_is_refused(
    hpc, project: Path, without_slurm: None
) -> None:
    typed = ["submit", "cfg.yaml", "--sweep", "model.init_args.lrr=0.1,0.2"]
    refused(hpc, project, typed, 3, "nets.Net takes no such argument", "did you mean 'lr'?")
