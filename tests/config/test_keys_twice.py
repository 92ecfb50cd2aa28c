"""A key that stands twice in a file: two mappings are joined, of other values one is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from tests.config.files import write

TOP = "name: x\ntrainer:\n  max_epochs: 3\n  devices: 1\n"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            f"{TOP}trainer:\n  precision: 16\n",
            "join them: put precision of line 5 below line 2, and remove line 5",
        ),
        (
            f"{TOP}trainer: {{precision: 16, callbacks: []}}\n",
            "join them: put precision, callbacks of line 5 below line 2, and remove line 5",
        ),
        (
            f"{TOP}trainer:\n  precision: 16\n  max_epochs: 4\n",
            (
                "join them: put precision of line 5 below line 2, and remove line 5; both have"
                " max_epochs: keep one max_epochs"
            ),
        ),
        (f"{TOP}trainer:\n  max_epochs: 4\n", "keep one of them: both have max_epochs"),
        (f"{TOP}trainer:\n", "keep one of them"),
        (f"{TOP}name: y\n", "keep one of them"),
        (f"{TOP}loggers: [csv]\nloggers: [wandb]\n", "keep one of them"),
        (
            "name: x\nclass_path: a.B\nclass_path: a.C\n",
            "indent each below the key of its object: model or data",
        ),
    ],
)
def test_what_becomes_of_the_two_is_told(text: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text))
    assert "is here for the second time (first on line" in caught.value.message
    assert caught.value.hint == hint


def test_below_a_key_the_two_are_joined_as_well(tmp_path: Path) -> None:
    text = "model:\n  class_path: a.B\n  init_args: {lr: 1}\n  init_args: {width: 2}\n"
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text))
    assert "cfg.yaml:4: model.init_args is here for the second time" in caught.value.message
    assert caught.value.hint == "join them: put width of line 4 below line 3, and remove line 4"
