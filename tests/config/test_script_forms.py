"""How a config names a script, and what of its arguments each rank is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check_training
from hpc_train.errors import ConfigError
from tests.config.files import refusal, write
from tests.config.test_several_refusals import told

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


def test_a_script_without_its_key_is_told_with_what_to_write_and_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "print(1)\n", "train.py")
    alone = "cfg:1: script is 'train.py'"
    for more in ("", "name: x\n"):  # no model and no data are missed beside a script
        assert told(tmp_path, f"script: train.py\n{more}") == [alone]
    assert told(tmp_path, "script: train.py\nsedd: 3\n") == [
        alone,
        "cfg:2: sedd is no key of hpc-train",
    ]


def test_the_fix_is_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = refusal(write(tmp_path, "script: train.py\n"))
    assert error.hint == "write script: {path: train.py}"


@pytest.mark.parametrize("image", ["/images/torch.sif", "torch.sqsh", "docker://nvcr.io/torch:1"])
def test_a_container_without_its_key_is_told_with_what_to_write(tmp_path: Path, image: str) -> None:
    error = refusal(write(tmp_path, f"name: x\ncontainer: {image}\n"))
    assert error.hint == f"write container: {{image: {image}}}"
    error = refusal(write(tmp_path, "name: x\ncontainer: yes please\n"))
    assert error.hint.startswith("it is a section: ")


def test_on_the_command_line_the_fix_is_the_word_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refusal(write(tmp_path, "name: x\n"), "script=sub/train.py")
    assert error.hint == "write script.path=sub/train.py"
