"""What is told of a metric that a callback waits for and nothing has logged: real, short fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint

from hpc_train.training.fit_notes.unlogged_monitors import unlogged_monitors


class Tiny(pl.LightningModule):
    def __init__(self, plateau: str = "") -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.plateau = plateau

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.layer(batch).square().mean()
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        if not self.plateau:
            return optimizer
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        kept = {"scheduler": schedule, "monitor": self.plateau, "strict": False}
        return {"optimizer": optimizer, "lr_scheduler": kept}


class Validated(Tiny):
    def validation_step(self, batch: torch.Tensor, index: int) -> None:
        self.log("val_loss", self.layer(batch).square().mean())


def told(
    folder: Path,
    *callbacks: pl.Callback,
    plateau: str = "",
    module: type[Tiny] = Tiny,
    validates: bool = False,
    **arguments: Any,
) -> list[str]:
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=1,
        **arguments,
        callbacks=list(callbacks),
        default_root_dir=str(folder),
        logger=False,
        enable_checkpointing=any(isinstance(it, ModelCheckpoint) for it in callbacks),
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2)  # type: ignore[arg-type]
    trainer.fit(module(plateau), data, data if validates else None)
    return [f"{what}; {rest}" for what, rest in unlogged_monitors(trainer).items()]


@pytest.mark.filterwarnings("ignore")
def test_what_waits_for_a_metric_that_never_came_is_told_with_what_there_is(tmp_path: Path) -> None:
    stops = EarlyStopping("val_los", check_on_train_epoch_end=False)  # never looks
    keeps = ModelCheckpoint(tmp_path, monitor="val_los")  # warns, and saves nothing
    (said,) = told(tmp_path, stops, keeps)
    what, fix = said.split("; logged: train_loss; ")
    assert what == "EarlyStopping, ModelCheckpoint monitor val_los"
    assert fix == 'write self.log("val_los", ...) in the model'
    (said,) = told(tmp_path, plateau="train_los")
    what, fix = said.split("; logged: train_loss; ")
    assert what == "ReduceLROnPlateau monitors train_los"
    assert fix == "did you mean 'train_loss'?"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("module", "arguments", "why"),
    [
        (Validated, {}, "no validation runs, as the data have no val_dataloader"),
        (
            Validated,
            {"validates": True, "limit_val_batches": 0},
            "no validation runs, as trainer.limit_val_batches is 0",
        ),
        (
            Validated,
            {"validates": True, "check_val_every_n_epoch": 5},
            "no validation runs, as check_val_every_n_epoch 5 is above max_epochs",
        ),
        (Tiny, {}, "did you mean 'train_loss'?"),
    ],
)
def test_a_metric_of_a_validation_that_never_runs_is_told_with_why(
    tmp_path: Path, module: type[Tiny], arguments: dict[str, Any], why: str
) -> None:
    kept = ModelCheckpoint(tmp_path, monitor="val_loss")
    (said,) = told(tmp_path, kept, module=module, num_sanity_val_steps=0, **arguments)
    assert said == f"ModelCheckpoint monitors val_loss; logged: train_loss; {why}"
    (said,) = told(tmp_path, ModelCheckpoint(tmp_path, monitor="train_los"), module=module)
    assert said.endswith("did you mean 'train_loss'?")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("monitor", ["train_loss", "step", "epoch", None])
def test_a_metric_that_came_and_none_are_told_nothing_of(
    tmp_path: Path, monitor: str | None
) -> None:
    kept = ModelCheckpoint(tmp_path, monitor=monitor)
    assert told(tmp_path, kept, plateau="train_loss") == []


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_that_is_to_save_none_waits_for_nothing(tmp_path: Path) -> None:
    assert told(tmp_path, ModelCheckpoint(tmp_path, monitor="val_los", save_top_k=0)) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("filename", "fix"),
    [
        ("{epoch}-{val_los:.3f}", "did you mean 'val_loss'?"),
        ("best-{val_mse}", "write {val_loss} in filename"),
        ("{mse:.2f}", "write {train_loss} or {val_loss} in filename"),
    ],
)
def test_a_metric_in_a_files_name_that_never_came_is_told(
    tmp_path: Path, filename: str, fix: str
) -> None:
    """Lightning writes 0 in its place: the name of a file says that its loss is 0."""
    keeps = ModelCheckpoint(tmp_path, filename=filename)
    (said,) = told(tmp_path, keeps, module=Validated, validates=True)
    metric = filename.partition("{epoch}-")[2] or filename.partition("-")[2] or filename
    metric = metric.strip("{}").partition(":")[0]
    assert said == (
        f"the filename of ModelCheckpoint has {metric}; logged: train_loss, val_loss; each file's"
        f" name has 0 there; {fix}"
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "filename", ["{epoch}-{step}-{val_loss:.2f}", "{train_loss}", "best", None]
)
def test_a_metric_in_a_files_name_that_came_is_told_nothing_of(
    tmp_path: Path, filename: str | None
) -> None:
    keeps = ModelCheckpoint(tmp_path, filename=filename)
    assert told(tmp_path, keeps, module=Validated, validates=True) == []
    none = ModelCheckpoint(tmp_path, filename="{val_mse}", save_top_k=0)
    assert told(tmp_path, none, module=Validated, validates=True) == []
