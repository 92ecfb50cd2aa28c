"""What code asks of a logger or an optimizer that another kind of object has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from pytorch_lightning.loggers import TensorBoardLogger

from hpc_train.plan.plan import Batch
from hpc_train.runs.layout import RunDir
from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.loggers import make_loggers
from hpc_train.training.rank_failure import failure_of
from tests.training.test_failure_words import Net, fit

OF_CONFIG = Batch(4, 1, 1)


def asked(call: Any, batch: Batch | None = OF_CONFIG) -> str:
    with pytest.raises(AttributeError) as caught:
        call()
    return fix_of(caught.value, batch)


class AsksRate(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        self.log("lr", self.optimizers().lr)  # type: ignore[union-attr]
        return super().training_step(batch, index)


@pytest.mark.filterwarnings("ignore")
def test_a_rate_that_is_asked_of_the_optimizer_is_told_at_its_own_line(tmp_path: Path) -> None:
    failure = fit(tmp_path, AsksRate())
    line = AsksRate.training_step.__code__.co_firstlineno + 1
    assert failure.where == f"{__file__}:{line}"
    assert failure.fix == 'write self.optimizers().param_groups[0]["lr"]'


def test_what_an_optimizer_has_for_each_group_is_told_with_its_group() -> None:
    opt: Any = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.1)
    assert asked(lambda: opt.weight_decay) == 'write opt.param_groups[0]["weight_decay"]'
    assert asked(lambda: opt.learning_rate) == 'write opt.param_groups[0]["lr"]'
    wrapped: Any = LightningOptimizer(opt)
    assert asked(lambda: wrapped.lr) == 'write wrapped.param_groups[0]["lr"]'
    assert asked(lambda: opt.stepp()) == "did you mean 'step'?"
    assert asked(lambda: opt.zzz) == ""
    schedule: Any = torch.optim.lr_scheduler.StepLR(opt, 1)
    assert asked(lambda: schedule.lr) == "write schedule.get_last_lr()[0]"
    several: Any = [opt, opt]
    assert asked(lambda: several.step()) == (
        "there are 2 of them, in a list: write several[0].step"
    )
    assert asked(lambda: several.zzz) == ""
    others: Any = [1, 2]
    assert asked(lambda: others.step()) == ""


def test_what_weights_and_biases_has_is_told_where_tensorboard_logs(tmp_path: Path) -> None:
    logger: Any = TensorBoardLogger(str(tmp_path))
    told = (
        "log is of Weights & Biases, and this logger is TensorBoard's: "
        "write self.log(NAME, VALUE) for a number, or loggers: [wandb, csv]"
    )
    assert asked(lambda: logger.experiment.log({"x": 1})) == told
    assert asked(lambda: logger.log({"x": 1})) == told
    of_script = asked(lambda: logger.log({"x": 1}), None)
    assert of_script.endswith("for a number, or Trainer(logger=WandbLogger(...))")
    assert asked(lambda: logger.log_image("x", [])) == (
        "log_image is of Weights & Biases, and this logger is TensorBoard's: "
        "write self.logger.experiment.add_image(NAME, TENSOR), or loggers: [wandb, csv]"
    )
    assert "loggers: [mlflow, csv]" in asked(lambda: logger.experiment.log_param("a", 1))
    assert asked(lambda: logger.experiment.add_scaler("a", 1)) == (
        "did you mean 'add_scalar' or 'add_scalars'?"
    )


def test_what_tensorboard_has_is_told_where_a_service_logs() -> None:
    run: Any = type("Run", (), {"__module__": "wandb.sdk.wandb_run"})()
    assert asked(lambda: run.add_scalar("x", 1)) == (
        "add_scalar is of TensorBoard, and this logger is Weights & Biases's: "
        "write self.log(NAME, VALUE) for a number, or loggers: [tensorboard, csv]"
    )
    own: Any = type("Run", (), {"__module__": "nets"})()
    assert asked(lambda: own.add_scalar("x", 1)) == ""


def test_of_metrics_csv_the_logger_that_is_expected_is_told(tmp_path: Path) -> None:
    log: Any = make_loggers(["csv"], RunDir(tmp_path), 0)[0]
    for call, write in (
        (lambda: log.experiment.add_scalar("x", 1), "write loggers: [tensorboard, csv]"),
        (lambda: log.experiment.log({}), "write loggers: [wandb, csv]"),
        (lambda: log.log_image("x", []), "write loggers: [wandb, csv]"),
        (lambda: log.log_param("x", 1), "write loggers: [mlflow, csv]"),
    ):
        assert asked(call) == write
    with pytest.raises(AttributeError) as caught:
        log.experiment.add_scalar("x", 1)
    assert failure_of(caught.value, OF_CONFIG).error == (
        "AttributeError: the csv logger has no add_scalar, and no TensorBoard logger is "
        "configured; write loggers: [tensorboard, csv]"
    )


def test_a_logger_of_the_projects_own_is_left_to_itself() -> None:
    own: Any = type("SummaryWriter", (), {"__module__": "mine"})()
    assert asked(lambda: own.log({})) == ""


class StepsNone(Net):
    """Optimizes by hand, and returns no schedule."""

    def __init__(self, *, by_name: bool) -> None:
        super().__init__()
        self.automatic_optimization, self.by_name = False, by_name

    def training_step(self, batch: torch.Tensor, index: int) -> None:
        if self.by_name:
            schedule: Any = self.lr_schedulers()
            schedule.step()
        self.lr_schedulers().step()  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("by_name", [False, True])
def test_a_schedule_that_is_not_there_is_told_with_what_returns_none(
    tmp_path: Path, by_name: bool
) -> None:
    made = Net.configure_optimizers.__code__
    assert fit(tmp_path, StepsNone(by_name=by_name)).fix == (
        "self.lr_schedulers() gives None: configure_optimizers"
        f" (tests/training/test_failure_words.py:{made.co_firstlineno}) returns no schedule; write"
        " return [optimizer], [scheduler] there, or leave this line out"
    )


def test_another_value_that_is_none_is_no_schedule() -> None:
    nothing: Any = None
    assert asked(lambda: nothing.step()) == ""
