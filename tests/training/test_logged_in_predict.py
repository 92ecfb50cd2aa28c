"""What is said of `self.log` where Lightning has nothing that takes it."""

from __future__ import annotations

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from hpc_train.training.failures.failure_words import fix_of


class Logs(pl.LightningModule):
    def __init__(self, hook: str) -> None:
        super().__init__()
        self.hook = hook

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.hook == "forward":  # as a step that is shared has it
            self.log("mean", x.mean())
        return x

    def predict_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        return self(batch)

    def on_predict_epoch_start(self) -> None:
        if self.hook == "epoch":
            self.log("mean", 1.0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("hook", "named"), [("forward", "predict_step"), ("epoch", "on_predict_epoch_start")]
)
def test_a_log_of_a_prediction_is_told_with_what_to_do_instead(hook: str, named: str) -> None:
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with pytest.raises(MisconfigurationException) as raised:
        trainer.predict(Logs(hook), torch.utils.data.DataLoader(torch.ones(2, 1)))
    said = fix_of(raised.value)
    assert said.startswith(f"{named} cannot log: leave self.log out there and return the value")
    assert said.endswith("log it in test_step, for hpc-train test RUN")


def test_of_another_error_nothing_is_said() -> None:
    assert fix_of(MisconfigurationException("it doesn't support logging")) == ""
