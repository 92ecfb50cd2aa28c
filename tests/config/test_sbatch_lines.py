"""Lines of #SBATCH in a script of Python's, a config or env.setup are comments, and noted."""

from __future__ import annotations

import json
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


SETUP = "cfg.yaml:2: env.setup has lines of #SBATCH, which are comments here: "


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (["#SBATCH --mem=4G"], "write slurm.mem=4G"),
        (
            ["export A=1", "#SBATCH --mem=4G", "  #SBATCH --exclusive  # alone"],
            "write slurm.mem=4G slurm.exclusive=true",
        ),
        (
            ["#SBATCH -p long -N 2", "#SBATCH --gres=gpu:2"],
            "write slurm.partition=long slurm.nodes=2 slurm.gpus_per_node=2",
        ),
        (["#SBATCH --nice=100"], "write slurm.extra.nice=100"),
        (["#SBATCH --mem=4G", "#SBATCH -o a.log"], "write slurm.mem=4G; --output=a.log: logs are"),
        (["#SBATCH --nice 1 2"], "hpc-train translate 'sbatch --nice 1 2' shows them"),
    ],
)
def test_those_in_env_setup_are_told_as_keys(tmp_path: Path, lines: list[str], keys: str) -> None:
    for setup in (
        "setup: " + json.dumps(lines),
        "setup: |\n    " + "\n    ".join(["export B=2", *lines]),
    ):
        (told,) = notes(tmp_path, "print(1)\n", f"env:\n  {setup}\n")
        assert told.startswith(f"{SETUP}{keys}")


def test_what_the_config_says_already_is_not_told_again(tmp_path: Path) -> None:
    lines = "['#SBATCH --mem=4G --time=01:00:00', '#SBATCH --no-requeue --nice=1 --output=a.log']"
    slurm = "slurm: {mem: 4G, time: '1:00:00', extra: {nice: 1}}\n"
    (told,) = notes(tmp_path, "print(1)\n", f"{slurm}env: {{setup: {lines}}}\n")
    assert "write requeue.enabled=false; --output=a.log" in told
    more = f"{slurm}requeue: {{enabled: false}}\n"
    assert notes(tmp_path, "print(1)\n", f"{more}env: {{setup: {lines}}}\n") == []


@pytest.mark.parametrize(
    "lines",
    [
        ["# SBATCH --mem=4G", "##SBATCH --mem=4G", "echo '#SBATCH --mem=4G'"],
        ["cat > other.sh <<END", "#SBATCH --mem=4G", "END"],
        ["export SBATCH_MEM=4G"],
    ],
)
def test_no_lines_of_sbatch_in_env_setup(tmp_path: Path, lines: list[str]) -> None:
    assert notes(tmp_path, "print(1)\n", f"env: {{setup: {json.dumps(lines)}}}\n") == []
