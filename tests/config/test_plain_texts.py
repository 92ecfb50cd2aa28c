"""Texts without quotes that YAML makes something else of, where a class takes texts."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError
from tests.config.checking import check_in, refusal_in
from tests.config.files import write

TEXTS = """\
from typing import Literal, Optional
from pytorch_lightning import LightningModule
class Net(LightningModule):
    def __init__(self, land: str = "DE", lands: Optional[list[str]] = None, needed: str = "",
                 pair: tuple[str, int] = ("a", 1), many: list[str] | None = None,
                 side: Literal["on", "off", "auto"] = "on", checked="NO"):
        super().__init__()
        if checked not in ("NO", "SE"):
            raise ValueError("which land?")
"""


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    write(tmp_path, TEXTS, "texts.py")
    data = (
        "from pytorch_lightning import LightningDataModule\nclass Data(LightningDataModule): ...\n"
    )
    write(tmp_path, data, "sets.py")
    return tmp_path


def model(arguments: str) -> tuple[str, str]:
    return f"{{class_path: texts.Net, init_args: {{{arguments}}}}}", "{class_path: sets.Data}"


@pytest.mark.parametrize(
    ("argument", "said", "fix"),
    [
        ("lands: [DE, NO, SE]", "has NO, which YAML reads as false", 'put it in quotes: "NO"'),
        ("lands: [on, DE]", "has on, which YAML reads as true", 'put it in quotes: "on"'),
        (
            "many: [1e3, a, no]",
            "has 1e3, which YAML reads as 1000.0 and no, which YAML reads as false",
            'put each in quotes: "1e3", "no"',
        ),
        ("many: [3_000]", "has 3_000, which YAML reads as 3000", 'put it in quotes: "3_000"'),
        ("many: [7]", "has 7, which is no text to YAML", 'put it in quotes: "7"'),
        ("many: [a, null]", "has null, which is no text to YAML", "write a text, or leave it out"),
        ("many: [a, ~]", "has ~, which YAML reads as null", "write a text, or leave it out"),
        ("pair: [yes, 1]", "has yes, which YAML reads as true", 'put it in quotes: "yes"'),
        ("land: NO", "is NO, which YAML reads as false", 'put it in quotes: "NO"'),
        ("land: off", "is off, which YAML reads as false", 'put it in quotes: "off"'),
        ("land: 1e3", "is 1e3, which YAML reads as 1000.0", 'put it in quotes: "1e3"'),
        ("land: 3.10", "is 3.10, which YAML reads as 3.1", 'put it in quotes: "3.10"'),
        ("land: 3_000", "is 3_000, which YAML reads as 3000", 'put it in quotes: "3_000"'),
    ],
)
def test_a_text_that_yaml_reads_as_another_thing_is_told_as_it_was_written(
    argument: str, said: str, fix: str, texts: Path
) -> None:
    error = refusal_in(texts, *model(argument))
    name = argument.partition(":")[0]
    assert f"cfg.yaml:3: model.init_args.{name} {said}" in error.message
    assert "and texts.Net takes " in error.message
    assert error.hint == fix


def test_the_place_of_an_element_in_a_block_is_read_as_well(texts: Path) -> None:
    lines = "\n  class_path: texts.Net\n  init_args:\n    lands:\n      - DE\n      - NO\n"
    error = refusal_in(texts, lines, "{class_path: sets.Data}")
    assert "has NO, which YAML reads as false" in error.message
    assert error.hint == 'put it in quotes: "NO"'
    check_in(texts, lines.replace("NO", '"NO"'), "{class_path: sets.Data}")


@pytest.mark.parametrize(
    "argument", ['lands: [DE, "NO"]', "lands: [DE, y, n]", "land: 2024-01-01", "land: null"]
)
def test_what_is_a_text_to_yaml_is_left_alone(argument: str, texts: Path) -> None:
    check_in(texts, *model(argument))


@pytest.mark.parametrize(
    ("typed", "fixed"),
    [
        ("lands=[DE,NO,SE]", 'lands=[DE, "NO", SE]'),
        ("many=[off,1e3]", 'many=["off", "1e3"]'),
        ("land=NO", 'land="NO"'),
        ("land=012", 'land="012"'),
        ("land=12:30", 'land="12:30"'),
        ("lands=[12:30,a]", 'lands=["12:30", a]'),
    ],
)
def test_on_the_command_line_the_quotes_outlive_the_shell(
    typed: str, fixed: str, texts: Path
) -> None:
    named, data = model("")
    config = write(texts, f"name: x\nglobal_batch_size: 8\nmodel: {named}\ndata: {data}\n")
    with pytest.raises(ConfigError) as caught:
        check(load(config, [f"model.init_args.{typed}"]), workdir=texts)
    assert caught.value.message.startswith("command line: model.init_args.")
    fix = caught.value.hint.partition("put it in quotes: ")[2]
    assert shlex.split(fix) == [f"model.init_args.{fixed}"]
    check(load(config, shlex.split(fix)), workdir=texts)


def test_the_choices_of_a_class_are_told_as_yaml_reads_them(texts: Path) -> None:
    assert refusal_in(texts, *model("side: off")).hint == 'write "on" or "off" or auto'
    assert refusal_in(texts, *model("checked: NO")).hint == 'write "NO" or SE'
    check_in(texts, *model('side: "on", checked: "NO"'))


def test_a_value_that_is_taken_from_elsewhere_is_told_without_its_text(texts: Path) -> None:
    error = refusal_in(texts, *model("lands: ['${x-land}']"), "x-land: NO\n")
    assert "put the word in quotes: yes, no, on and off" in error.hint
