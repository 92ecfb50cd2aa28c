"""How a config names a script, and what of its arguments each rank is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check_training
from hpc_train.errors import ConfigError
from tests.config.files import refusal, write

PARSER = "import argparse\nparser = argparse.ArgumentParser()\n"
CONFIG = "script: {path: train.py, may_take_no_steps: true}\n"


def check(folder: Path, argument: str) -> None:
    text = f"{PARSER}parser.add_argument('{argument}', type=int, required=True)\n"
    write(folder, f"{text}args = parser.parse_args()\n", "train.py")
    check_training(load(write(folder, CONFIG)), workdir=folder)


def test_the_local_rank_that_a_script_needs_is_no_argument_to_type(tmp_path: Path) -> None:
    for argument in ("--local_rank", "--local-rank"):
        check(tmp_path, argument)
    with pytest.raises(ConfigError, match="are required: --rank"):
        check(tmp_path, "--rank")


@pytest.mark.parametrize("more", ["", "name: x\n", "seed: 3\n"])
def test_a_script_without_its_key_is_told_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "print(1)\n", "train.py")
    error = refusal(write(tmp_path, f"script: train.py\n{more}"))
    assert error.message == "cfg.yaml:1: script is 'train.py'"
    assert error.hint == "write script: {path: train.py}"
    assert error.others == ()


def test_on_the_command_line_the_fix_is_the_word_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refusal(write(tmp_path, "name: x\n"), "script=my train.py")
    assert error.hint == "write script.path='my train.py'"


def test_what_else_is_wrong_is_told_beside_it(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, "script: train.py\nsedd: 3\n"))
    assert [it.message for it in error.others] == ["cfg.yaml:2: sedd is no key of hpc-train"]
