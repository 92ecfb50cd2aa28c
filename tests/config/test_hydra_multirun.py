"""Several trainings of a Hydra app in one job are noted, with a sweep to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.test_hydra_overrides import SCRIPT


def notes(folder: Path, *words: str, text: str = SCRIPT) -> list[str]:
    (folder / "app.py").write_text(text)
    loaded = api.load("app.py", "script.may_take_no_steps=true", arguments=words)
    return [it for it in loaded.notes if "one after another" in it]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("switch", ["-m", "--multirun"])
def test_a_multirun_is_noted_with_its_sweep(tmp_path: Path, switch: str) -> None:
    (said,) = notes(tmp_path, switch, "lr=0.1,0.01", "seed=3")
    assert said.startswith(f"app.py is given {switch}: Hydra runs 2 trainings one after another in")
    assert said.endswith(f"leave {switch} out and write --sweep lr=0.1,0.01 -- lr={{lr}}")


def test_several_keys_are_one_sweep(tmp_path: Path) -> None:
    (said,) = notes(tmp_path, "model.lr=1,2", "model=small,big", "-m")
    assert "runs 4 trainings" in said
    assert said.endswith("--sweep lr=1,2 --sweep model=small,big -- model.lr={lr} model={model}")
    (said,) = notes(tmp_path, "a.lr=1,2", "b.lr=3,4", "-m")
    assert said.endswith("--sweep a_lr=1,2 --sweep b_lr=3,4 -- a.lr={a_lr} b.lr={b_lr}")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["lr=0.1,0.01"], SCRIPT),  # Hydra refuses it without -m
        (["-m", "lr=0.1"], SCRIPT),
        (["-m", "lr=[1,2]"], SCRIPT),
        (["-m", "lr=1,2", "hydra/launcher=submitit_slurm"], SCRIPT),
        (["-m", "lr=1,2"], "import sys\nprint(sys.argv)\n"),
    ],
)
def test_others_are_told_nothing(tmp_path: Path, words: list[str], text: str) -> None:
    assert notes(tmp_path, *words, text=text) == []
