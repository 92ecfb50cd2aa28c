"""An option and its value as one item of a script's arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError

SCRIPT = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--name", default="")
parser.add_argument("--layers", type=int, nargs="+")
parser.add_argument("--tags", nargs="*")
MORE
print(parser.parse_args())
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refusal(folder: Path, args: str, more: str = "") -> tuple[str, str]:
    (folder / "train.py").write_text(SCRIPT.replace("MORE", more))
    (folder / "cfg.yaml").write_text(f"script:\n  path: train.py\n  args: {args}\n")
    try:
        api.load(folder / "cfg.yaml")
    except ConfigError as error:
        return error.message, error.hint
    return "", ""


@pytest.mark.parametrize(
    ("args", "said", "write"),
    [
        (
            '["--lr 0.1", "--epochs 3"]',
            "unrecognized arguments: '--lr 0.1' '--epochs 3'",
            "[--lr, '0.1', --epochs, '3']",
        ),
        ('["--lr 0.1", --epochs, 3]', "'--lr 0.1'", "[--lr, '0.1', --epochs, '3']"),
        ('["--lr=0.1 --epochs 3"]', "'0.1 --epochs 3'", "[--lr=0.1, --epochs, '3']"),
        ('["--name my run"]', "'--name my run'", "[--name, my run]"),
        ("[\"--name 'my run'\"]", "--name", "[--name, my run]"),
        ('["--layers 64 32"]', "'--layers 64 32'", "[--layers, '64', '32']"),
        ('["--tags a b", --name, "my run"]', "'--tags a b'", "[--tags, a, b, --name, my run]"),
        ('["--lr fast"]', "'--lr fast'", "[--lr, fast]"),
    ],
)
def test_all_are_taken_apart_at_once(tmp_path: Path, args: str, said: str, write: str) -> None:
    message, hint = refusal(tmp_path, args)
    assert said in message
    assert hint == f"an item is one argument: write args: {write}"
    if "fast" not in args:
        assert refusal(tmp_path, write) == ("", "")


@pytest.mark.parametrize(
    ("args", "more"),
    [
        ("[--lr=0.1, --epochs=3]", ""),
        ('[--name, "my run"]', ""),
        ('["--name=my run"]', ""),
        ('["--lr 0.1"]', 'parser.add_argument("words", nargs="*")'),
        ('["-w 3"]', 'parser.add_argument("-w", type=int)'),
    ],
)
def test_what_the_parser_takes_stays_whole(tmp_path: Path, args: str, more: str) -> None:
    assert refusal(tmp_path, args, more) == ("", "")


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        ("[--lr]", "correct it: script.args are the script's own arguments"),
        ("[--gpus, 3]", "--gpus is hpc-train's: type it behind the file instead"),
        ("[lr=0.1]", "write args: [--lr=0.1]"),
        ('["--epoch_s 0.1"]', "did you mean '--epochs'?"),
    ],
)
def test_a_file_is_told_in_its_own_words(tmp_path: Path, args: str, hint: str) -> None:
    assert refusal(tmp_path, args)[1] == hint


def test_typed_in_quotes_it_is_told_for_the_command_line(tmp_path: Path) -> None:
    refusal(tmp_path, "[]")
    with pytest.raises(ConfigError) as caught:
        api.load(tmp_path / "train.py", arguments=["--lr 0.1"])
    assert "unrecognized arguments: '--lr 0.1'" in caught.value.message
    fix = "what stands in quotes is one argument: write --lr 0.1 behind --"
    assert caught.value.hint == fix
