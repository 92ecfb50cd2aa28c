"""A step between forward and backward that changes weights which the backward pass needs."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import failure_of

FILE = "tests/training/test_stepped_weights.py"


def conv() -> Any:
    return torch.nn.Sequential(torch.nn.Conv1d(1, 1, 1), torch.nn.Conv1d(1, 1, 1))


def linear() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))


class Gan(pl.LightningModule):
    def __init__(self, scores: Any) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.noise, self.scores = torch.nn.Linear(2, 2), scores

    def training_step(self, batch: torch.Tensor, index: int) -> None:
        opt_g, opt_d = self.optimizers()  # type: ignore[misc]
        scheduler = torch.optim.lr_scheduler.ConstantLR(opt_d.optimizer)
        scores = self.scores(self.noise(batch).unsqueeze(1))
        self.manual_backward(scores.mean(), retain_graph=True)
        opt_d.step()
        scheduler.step()
        self.manual_backward(-scores.mean())
        opt_g.step()

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(it.parameters(), lr=0.1) for it in (self.noise, self.scores)]


def failed(model: Any) -> BaseException:
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_checkpointing"), False)
    trainer = pl.Trainer(accelerator="cpu", enable_model_summary=False, max_steps=1, **quiet)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError) as caught:
        trainer.fit(model, torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2))  # type: ignore[arg-type]
    return caught.value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scores", [linear, conv])
def test_the_step_is_named_with_what_to_call_anew(scores: Any) -> None:
    """It was told to write x = x + 1 for an x += 1 that is nowhere."""
    error = failed(Gan(scores()))
    line = Gan.training_step.__code__.co_firstlineno + 5
    assert fix_of(error) == (
        f"opt_d.step() ({FILE}:{line}) changes weights that this backward pass needs as they were:"
        " behind that step call the model anew for this loss, and leave retain_graph=True out;"
        " or call both backward passes, then both steps"
    )
    assert failure_of(error).where.endswith(f"{FILE}:{line}")


def in_a_loop(scores: torch.nn.Module) -> None:
    optimizer = torch.optim.SGD(scores.parameters(), lr=0.1)
    out = scores(torch.ones(2, 1, 2, requires_grad=True))
    out.mean().backward(retain_graph=True)
    optimizer.step()
    out.mean().backward()


def by_hand(scores: torch.nn.Module) -> None:
    out = scores(torch.ones(2, 1, 2, requires_grad=True))
    with torch.no_grad():
        for it in scores.parameters():
            it.add_(1)
    out.mean().backward()


def test_a_script_is_told_so_too_and_weights_that_no_step_changed_are_not() -> None:
    with pytest.raises(RuntimeError) as caught:
        in_a_loop(linear())
    assert fix_of(caught.value).startswith("optimizer.step() (")
    with pytest.raises(RuntimeError) as caught:
        by_hand(linear())
    assert "step" not in fix_of(caught.value)
