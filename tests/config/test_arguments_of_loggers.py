"""Arguments of Lightning's TensorBoardLogger, whose `**kwargs` go on to another class."""

from __future__ import annotations

import sys

import pytest

from hpc_train.config.python_text.argument_values import ArgumentError
from hpc_train.config.python_text.classes import check_class


def checked(class_path: str, **arguments: object) -> None:
    check_class(class_path, arguments, search_path=sys.path, filled_in=("save_dir",))


@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        *((it, "did you mean 'save_dir'?") for it in ("log_dir", "logdir", "dir")),
        ("save_dirr", "did you mean 'save_dir' or 'sub_dir'?"),
        ("versoin", "did you mean 'version'?"),
        ("qqqqqq", "it takes save_dir, name, version, log_graph, "),
    ],
)
def test_what_the_writer_would_refuse_is_refused_before(package: str, name: str, hint: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        checked(f"{package}.loggers.TensorBoardLogger", **{name: "logs"})
    assert "takes no such argument" in str(caught.value)
    assert (caught.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"save_dir": "x", "name": "a", "version": 3, "sub_dir": "b", "log_graph": True},
        {"comment": "x", "purge_step": 3, "max_queue": 5, "flush_secs": 9, "filename_suffix": "a"},
    ],
)
def test_what_it_takes_itself_or_hands_on_is_taken(arguments: dict[str, object]) -> None:
    checked("pytorch_lightning.loggers.TensorBoardLogger", **arguments)
    checked("lightning.pytorch.loggers.tensorboard.TensorBoardLogger", **arguments)


def test_the_folder_of_another_logger_is_told_by_its_name() -> None:
    with pytest.raises(ArgumentError) as caught:
        checked("pytorch_lightning.loggers.CSVLogger", log_dir="logs")
    assert caught.value.hint == "did you mean 'save_dir'?"
