"""A logger or a Trainer that is asked for in `__init__` is told with where it is."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl

from hpc_train.training.failures.early_trainer import early_trainer

MODEL = "use it from setup(self, stage) on"


class Of(pl.LightningModule):
    def __init__(self, way: str) -> None:
        super().__init__()
        if way == "logger":
            self.run_name = self.logger.name  # type: ignore[union-attr]
        elif way == "loggers":
            self.first = self.loggers[0]
        elif way == "experiment":
            self.board = self.logger.experiment  # type: ignore[union-attr]
        elif way == "trainer":
            self.total = self.trainer.max_epochs
        elif way == "other":
            nothing: Any = None
            self.total = nothing.name
        else:
            self.inner()

    def inner(self) -> None:
        self.many = self.trainer.world_size


class Data(pl.LightningDataModule):
    def __init__(self) -> None:
        super().__init__()
        self.many = self.trainer.world_size  # type: ignore[union-attr]


def told(make: Any) -> str:
    with pytest.raises((AttributeError, RuntimeError, IndexError)) as caught:
        make()
    return early_trainer(caught.value)


@pytest.mark.parametrize("way", ["logger", "experiment"])
def test_a_logger_is_told_to_come_later(way: str) -> None:
    assert told(lambda: Of(way)) == f"self.logger is not there in __init__: {MODEL}"


@pytest.mark.parametrize("way", ["trainer", "inner"])
def test_a_trainer_is_told_to_come_later(way: str) -> None:
    assert told(lambda: Of(way)) == f"self.trainer is not there in __init__: {MODEL}"


def test_that_of_the_data_comes_with_setup() -> None:
    assert told(Data) == (
        "self.trainer is not there in __init__: use it from setup(self, stage) on"
    )


def test_another_failure_is_said_nothing_of() -> None:
    assert told(lambda: Of("other")) == ""
    assert told(lambda: Of("loggers")) == ""  # a list, and empty


def test_outside_of_init_it_is_said_nothing_of() -> None:
    class Plain(pl.LightningModule):
        def asks(self) -> Any:
            return self.trainer.world_size

    assert told(lambda: Plain().asks()) == ""
