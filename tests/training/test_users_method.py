"""Where a method is whose value Lightning refuses, and what to write, from real, short fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.diagnose.diagnosis import Culprit
from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.training.rank_failure import RankFailure, failure_of
from tests.training.test_failure_words import Net, fit

schedulers = torch.optim.lr_scheduler


class Plateau(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        return {"optimizer": opt, "lr_scheduler": schedulers.ReduceLROnPlateau(opt)}


class PlateauAsDict(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        return [opt], [{"scheduler": schedulers.ReduceLROnPlateau(opt)}]


class PlateauOfOther(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        watched = {"scheduler": schedulers.ReduceLROnPlateau(opt), "monitor": "val_los"}
        return {"optimizer": opt, "lr_scheduler": watched}


class SchedulerAlone(Net):
    def configure_optimizers(self) -> Any:
        return schedulers.StepLR(torch.optim.SGD(self.parameters(), lr=0.1), 1)


class Pair(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        return opt, schedulers.StepLR(opt, 1)


class OtherKeys(Net):
    def configure_optimizers(self) -> Any:
        return {"optim": torch.optim.SGD(self.parameters(), lr=0.1)}


class NoSchedulerKey(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        return {"optimizer": opt, "lr_scheduler": {"sched": schedulers.StepLR(opt, 1)}}


class OtherInterval(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        made = {"scheduler": schedulers.StepLR(opt, 1), "interval": "steps"}
        return {"optimizer": opt, "lr_scheduler": made}


class Two(Net):
    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(self.parameters(), lr=0.1) for _ in range(2)]


class Inherits(Plateau):
    """The method is a base's."""


class NumberLoss(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> Any:
        return self.layer(batch).mean().item()


class OtherDict(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> Any:
        return {"los": self.layer(batch).mean()}


class NoLoader(Net):
    def train_dataloader(self) -> Any:
        pass


class LoaderInData(pl.LightningDataModule):
    def train_dataloader(self) -> Any:
        pass


class Twice(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> Any:
        self.log("a", 1.0)
        self.log("a", 1.0, on_epoch=True)
        return self.layer(batch).mean()


class LogsText(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> Any:
        self.log("a", "text")  # type: ignore[arg-type]
        return self.layer(batch).mean()


class LogsTooEarly(Net):
    def configure_optimizers(self) -> Any:
        self.log("a", 1.0)


class ByHand(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> Any:
        self.manual_backward(self.layer(batch).mean())


OPTIMIZERS = {
    Plateau: '{"scheduler": s, "monitor": "val_loss"}}',
    PlateauAsDict: '{"scheduler": s, "monitor": "val_loss"}}',
    PlateauOfOther: 'another "monitor"',
    SchedulerAlone: "return opt",
    Pair: "return [opt], [scheduler]",
    OtherKeys: 'return {"optimizer": opt',
    NoSchedulerKey: '"lr_scheduler": {"scheduler": scheduler',
    OtherInterval: '"interval": "step"',
    Two: "opt1, opt2 = self.optimizers()",
    Inherits: '"monitor": "val_loss"',
}
STEPS = {NumberLoss: "no .item()", OtherDict: 'return {"loss": loss'}
IN_SIGHT = {
    Twice: "two names",
    LogsText: "nothing for text",
    LogsTooEarly: "self.logger.log_metrics({NAME: VALUE}, step=self.global_step)",
    ByHand: "self.automatic_optimization = False",
}


def line_of(method: Any) -> str:
    return f"{__file__}:{method.__code__.co_firstlineno}"


def culprit(failure: RankFailure) -> Culprit:
    logs = ReadLogs()
    for line in failure.traceback.splitlines():
        logs.feed(line, "a.log", 1)
    return logs.findings()[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_what_configure_optimizers_returns_wrongly_is_placed_at_its_def(
    tmp_path: Path, kind: type[Net]
) -> None:
    failure = fit(tmp_path, kind())
    assert failure.where == line_of(kind.configure_optimizers)
    assert OPTIMIZERS[kind] in (failure.fix or culprit(failure).fix)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", STEPS)
def test_what_training_step_returns_wrongly_is_placed_at_its_def(
    tmp_path: Path, kind: type[Net]
) -> None:
    failure = fit(tmp_path, kind())
    assert failure.where == line_of(kind.training_step)
    assert STEPS[kind] in culprit(failure).fix


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", IN_SIGHT)
def test_a_call_that_lightning_refuses_is_placed_at_its_line_with_what_to_write(
    tmp_path: Path, kind: type[Net]
) -> None:
    failure = fit(tmp_path, kind())
    assert failure.where.startswith(f"{__file__}:")
    found = culprit(failure)
    assert found.is_known
    assert IN_SIGHT[kind] in found.fix


@pytest.mark.filterwarnings("ignore")
def test_a_loader_that_is_not_returned_is_placed_in_the_data_or_in_the_model() -> None:
    for model, data in ((NoLoader(), None), (Net(), LoaderInData())):
        trainer = pl.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
        with pytest.raises(TypeError) as caught:
            trainer.fit(model, datamodule=data)
        failure = failure_of(caught.value)
        owner = NoLoader if data is None else LoaderInData
        assert failure.where == line_of(owner.train_dataloader)
        assert "`return DataLoader(...)`" in culprit(failure).fix


def test_an_error_of_the_users_own_words_is_placed_where_it_was_raised() -> None:
    with pytest.raises(ValueError, match="scheduler") as caught:
        raise ValueError("my lr scheduler needs multiple optimizers")
    assert failure_of(caught.value).where.startswith(f"{__file__}:")
