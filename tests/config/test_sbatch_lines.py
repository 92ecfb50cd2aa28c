"""Lines of #SBATCH in a script of Python's or in a config are comments, and noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load

LINES = "#SBATCH --gres=gpu:2\n#SBATCH --time=1:00:00  # an hour\n"
SAID = "has lines of #SBATCH, which are comments here: hpc-train translate"


def notes(folder: Path, script: str, config: str = "") -> list[str]:
    (folder / "train.py").write_text(script)
    (folder / "cfg.yaml").write_text(f"{config}script: {{path: train.py}}\n")
    return [it for it in notes_on_code(load("cfg.yaml"), workdir=folder) if "#SBATCH" in it]


@pytest.fixture(autouse=True)
def _in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_those_of_a_script_are_told_with_the_command_that_reads_them(tmp_path: Path) -> None:
    said = f"{SAID} train.py shows them as options and keys"
    assert notes(tmp_path, f"{LINES}import torch\n") == [f"train.py:1 {said}"]
    head = f"#!/usr/bin/env python\n\n{LINES}print(1)\n"
    assert notes(tmp_path, head) == [f"train.py:3 {said}"]


def test_those_of_a_config_are_told_as_words_for_it(tmp_path: Path) -> None:
    words = "'sbatch --gres=gpu:2 --time=1:00:00'"
    assert notes(tmp_path, "print(1)\n", LINES) == [
        f"cfg.yaml:1 {SAID} {words} shows them as options and keys"
    ]


def test_a_script_that_is_submitted_by_itself_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LINES)
    told = [it for it in notes_on_code(load("train.py"), workdir=tmp_path) if "#SBATCH" in it]
    assert len(told) == 1


@pytest.mark.parametrize(
    "text", ["print(1)\n#SBATCH --time=1\n", "# SBATCH --time=1\n", "#\n", "", '"""#SBATCH"""\n']
)
def test_what_sbatch_does_not_read_is_said_nothing_of(tmp_path: Path, text: str) -> None:
    assert notes(tmp_path, text) == []
