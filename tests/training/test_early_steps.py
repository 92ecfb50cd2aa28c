"""An optimizer's step in front of which too few micro batches were drawn is refused in the run."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
import torch

from hpc_train.errors import ConfigError
from hpc_train.training.sessions.early_steps import EarlySteps

# The first step of a process loads what sets variables of its own.
torch.optim.SGD([torch.ones(1)], lr=0.1).step()


class _Loop:
    """What a session knows of a loop's batches."""

    def __init__(self, accumulate: int) -> None:
        self.drawn = 0
        self.model = torch.nn.Linear(1, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.early = EarlySteps(lambda: self.drawn, accumulate=accumulate)

    def draw(self) -> None:
        self.drawn += 1
        torch.autograd.backward(self.model(torch.ones(1)).sum())

    def step(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        (optimizer or self.optimizer).step()


@pytest.fixture
def make() -> Iterator[Callable[[int], _Loop]]:
    made: list[_Loop] = []

    def of(accumulate: int) -> _Loop:
        made.append(_Loop(accumulate))
        return made[-1]

    yield of
    for it in made:
        it.early.end()


def test_a_step_at_each_micro_batch_is_refused_before_it_changes_a_weight(
    make: Callable[[int], _Loop],
) -> None:
    loop = make(4)
    loop.early.begin({"model": loop.model, "opt": loop.optimizer})
    before = loop.model.weight.item()
    loop.draw()
    with pytest.raises(ConfigError) as caught:
        loop.step()
    said = "opt takes a step behind 1 of the 4 micro batches that make one step: it has a part of"
    assert said in str(caught.value)
    assert "session.stepped() under `if session.step_is_due:`" in str(caught.value)
    assert loop.model.weight.item() == before


def test_of_an_optimizer_that_is_not_kept_its_class_is_told(make: Callable[[int], _Loop]) -> None:
    loop = make(2)
    loop.early.begin({"model": loop.model})
    loop.draw()
    loop.draw()
    loop.step()
    loop.draw()
    with pytest.raises(ConfigError, match="SGD takes a step behind 3 of the 4 micro batches that"):
        loop.step()


@pytest.mark.parametrize("ahead", [0, 1])
def test_due_steps_pass_also_skipped_repeated_and_with_a_batch_drawn_ahead(
    make: Callable[[int], _Loop], ahead: int
) -> None:
    loop = make(2)
    loop.early.begin({"model": loop.model, "optimizer": loop.optimizer})
    for _ in range(ahead):
        loop.draw()
    for number in range(4):
        loop.draw()
        loop.draw()
        for _ in range(0 if number == 1 else 3):
            loop.step()


def test_what_trains_something_else_may_step_at_any_time(make: Callable[[int], _Loop]) -> None:
    loop = make(2)
    loop.early.begin({"model": loop.model, "optimizer": loop.optimizer})
    for _ in range(3):
        loop.draw()
        sample = torch.ones(1, requires_grad=True)
        attack = torch.optim.SGD([sample], lr=0.1)
        torch.autograd.backward(sample.square().sum())
        loop.step(attack)
    del attack
    gc.collect()
    assert not loop.early._others


def test_one_micro_batch_a_step_asks_torch_for_nothing(make: Callable[[int], _Loop]) -> None:
    loop = make(1)
    loop.early.begin({"model": loop.model, "optimizer": loop.optimizer})
    assert loop.early._hook is None
    loop.draw()
    loop.step()


def test_after_the_session_torch_asks_no_more(make: Callable[[int], _Loop]) -> None:
    loop = make(4)
    loop.early.begin({"model": loop.model, "optimizer": loop.optimizer})
    loop.early.end()
    loop.draw()
    loop.step()
