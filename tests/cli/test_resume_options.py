"""An option behind `resume` that is a key of the config: the command that is printed is taken."""

from __future__ import annotations

import re
import shlex

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import project, run

__all__ = ["project", "run"]

KEEPS = "resume keeps the training that the run has; another one: "


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("x --lr 0.001", "model.init_args.lr=0.001"),
        ("x --lr=0.001", "model.init_args.lr=0.001"),
        ("--lr 0.001 x", "model.init_args.lr=0.001"),
        ("x --model.lr 0.001", "model.init_args.lr=0.001"),
        ("x --learning-rate 0.001", "model.init_args.lr=0.001"),
        ("x --seed 3", "seed=3"),
    ],
)
def test_what_a_run_keeps_is_told_with_the_submission_of_another_training(
    hpc, run: RunDir, typed: str, key: str
) -> None:
    said = hpc("resume", *shlex.split(typed))
    hint = said.err.partition("  fix: ")[2].strip()
    assert hint == f"{KEEPS}hpc-train submit cfg.yaml {key}"
    again = hpc(*shlex.split(hint.removeprefix(f"{KEEPS}hpc-train ")), "--dry-run")
    assert again.code == 0, again


def test_without_a_run_that_is_known_the_config_stands_for_it(hpc, run: RunDir) -> None:
    fix = f"{KEEPS}hpc-train submit CFG model.init_args.lr=0.1"
    assert hpc("resume", "nobody", "--lr", "0.1").err.partition("  fix: ")[2].strip() == fix
    assert hpc("resume", "--lr", "0.1").err.partition("  fix: ")[2].strip() == fix


@pytest.mark.parametrize("typed", ["--max-epochs 9", "--mem 4G", "--checkpoint.keep-last 3"])
def test_what_may_change_within_a_run_is_told_as_its_key(hpc, run: RunDir, typed: str) -> None:
    said = hpc("resume", "x", *shlex.split(typed))
    assert "resume keeps" not in said.err
    assert re.search(r"fix: (a key of the config has no dashes: |)", said.err)


def test_behind_submit_the_key_stands_as_before(hpc, run: RunDir) -> None:
    said = hpc("submit", "cfg.yaml", "--lr", "0.001")
    assert "a key of the config has no dashes: model.init_args.lr=0.001" in said.err
