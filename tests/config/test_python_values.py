"""Values and objects in the place of texts and of a file, as Python hands them over."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train.config.python_values import as_texts
from hpc_train.config.read import parse_value
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

FUNCTIONS: Any = hpc_train


class LightningModule:
    """As Lightning's, by its name."""


class LightningDataModule:
    """The same."""


class Net(LightningModule):
    """A model."""


class Data(LightningDataModule):
    """Its data."""


class Mine(Net):
    """A model of a notebook."""


Mine.__module__ = "__main__"
MODEL = f"model: {{class_path: {__name__}.Net}}"
BOTH = f"write a file cfg.yaml with {MODEL} and data: {{class_path: {__name__}.Data}}"
TAKES = "takes what hpc_train.load gives, and no model or data"


@pytest.fixture(autouse=True)
def _a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, MINIMAL)


def refused(call: Callable[[], object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("flags", "written"),
    [
        ({"model": {"init_args": {"lr": 0.01}}}, "it as a text: %s'model.init_args.lr=0.01')"),
        (
            {"model": {"init_args": {"lr": 0.01, "size": 3}}, "seed": 4, "nodes": 2},
            "each as a text: %s'model.init_args.lr=0.01', 'model.init_args.size=3', 'seed=4')",
        ),
        ({"name_of_it": "a", "max_epochs": 3}, "known: nodes"),
        ({"max_epochs": 3, "lr": 0.1}, "each as a text: %s'trainer.max_epochs=3', 'model.init_ar"),
        ({"seed": "it's"}, """it as a text: %s"seed=it's")"""),
        ({"overrides": {"lr": 0.1}}, "each as a text: %s'model.init_args.lr=0.1')"),
        ({"overrides": ["seed=1"]}, "each as a text: %s'seed=3', 'trainer.max_epochs=5')"),
    ],
)
def test_keywords_for_keys_are_told_as_python_that_can_be_typed(
    flags: dict[str, Any], written: str
) -> None:
    error = refused(lambda: FUNCTIONS.load("cfg.yaml", **flags))
    assert error.message == f"{next(iter(flags))} is no argument of load"
    assert written.replace("%s", "hpc_train.load(PATH, ") in error.hint
    if "load(" in written:
        ast.parse(error.hint[error.hint.index("hpc_train.load") :])


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"model.init_args.lr": 0.01}, "write each override as a text: 'model.init_args.lr=0.01'"),
        (
            {"trainer": {"max_epochs": 3}, "seed": 1},
            "write each override as a text: 'trainer.max_epochs=3', 'seed=1'",
        ),
        (
            ["seed=3", "name=x"],
            "write each as an argument: 'seed=3', 'name=x'; or a star in front of the list",
        ),
        ({}, "write each override as 'trainer.max_epochs=3', and flags as nodes=2"),
        (3, "write each override as 'trainer.max_epochs=3', and flags as nodes=2"),
    ],
)
def test_what_is_given_as_an_override_is_told_as_its_text(given: object, hint: str) -> None:
    error = refused(lambda: FUNCTIONS.load("cfg.yaml", given))
    assert (error.message, error.hint) == (f"{given!r} is no text", hint)


@pytest.mark.parametrize(
    "value",
    [
        *(0.1, 1e-05, True, None, "a", "yes", "1", "", "a, b", "it's", 'a "b"', "0:10:00", "x: y"),
        *([1, "2"], [], {}, [{"class_path": "a.B", "init_args": {"x": "no", "y": [None]}}]),
        {"a-b": 1, "3": "c"},
    ],
)
def test_a_text_is_read_as_the_value_that_it_is_made_of(value: object) -> None:
    (text,) = as_texts({"model.init_args.x": value})
    key, _, written = text.partition("=")
    assert (key, parse_value(written, "x")) == ("model.init_args.x", value)


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (
            lambda: FUNCTIONS.submit(Net(), Data()),
            f"submit {TAKES}",
            f"{BOTH}, and submit(hpc_train.load('cfg.yaml'))",
        ),
        (
            lambda: FUNCTIONS.run_here(Net, data=Data),
            f"run_here {TAKES}",
            f"{BOTH}, and run_here(hpc_train.load('cfg.yaml'))",
        ),
        (
            lambda: FUNCTIONS.submit(model=Net(), data=Data()),
            f"submit {TAKES}",
            f"{BOTH}, and submit(hpc_train.load('cfg.yaml'))",
        ),
        (
            lambda: FUNCTIONS.render(Mine()),
            f"render {TAKES}",
            (
                "write a file cfg.yaml with model: {class_path: my_code.Mine}, Mine in my_code.py"
                " beside it, and render(hpc_train.load('cfg.yaml'))"
            ),
        ),
        (
            lambda: FUNCTIONS.load(model=Net, data=Data, max_epochs=2),
            "load is called without path",
            f"{BOTH}, and hpc_train.load('cfg.yaml', 'trainer.max_epochs=2')",
        ),
        (
            lambda: FUNCTIONS.load(Net),
            f"a config is a file, and the class {__name__}.Net is none",
            f"write a file cfg.yaml with {MODEL}, and hpc_train.load('cfg.yaml', 'seed=3')",
        ),
        (  # of these nothing tells what they are in a config
            lambda: FUNCTIONS.submit({"model": Net}),
            f"{{'model': {Net!r}}} is no loaded config",
            "hpc_train.load(PATH) gives one",
        ),
    ],
)
def test_a_model_and_data_that_are_handed_over_are_told_as_a_file_has_them(
    call: Callable[[], object], message: str, hint: str
) -> None:
    error = refused(call)
    assert (error.message, error.hint) == (message, hint)
