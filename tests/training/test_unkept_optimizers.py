"""Optimizers that take the steps of a loop with a Session, and that `restore` does not keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from hpc_train.training.sessions.session_notes import SessionNotes

torch.optim.SGD([torch.zeros(1)], lr=0.1)  # with its first one torch sets a variable of its own


class State:
    """An object of one's own that keeps what it holds."""

    def __init__(self, *held: Any) -> None:
        self.held = list(held)

    def state_dict(self) -> dict[str, Any]:
        return {str(n): it.state_dict() for n, it in enumerate(self.held)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for n, it in enumerate(self.held):
            it.load_state_dict(state[str(n)])


class Restoring:
    """Has a Session's method, and notes as one does."""

    def __init__(self, *, tells: bool = True) -> None:
        self.told: list[str] = []
        self.notes = SessionNotes(self.told.append if tells else None, ranks=1)
        self.notes.drew()

    def restore(self, **objects: Any) -> None:
        self.notes.restored(objects)

    def take(self, *optimizers: torch.optim.Optimizer) -> None:
        list(map(step, optimizers))
        self.notes.before_step()
        self.notes.after_step()


def step(optimizer: torch.optim.Optimizer) -> None:
    for group in optimizer.param_groups:
        for it in group["params"]:
            it.grad = torch.ones_like(it)
    optimizer.step()


def net() -> torch.nn.Linear:
    return torch.nn.Linear(2, 1)


def test_one_that_is_forgotten_is_told_once_with_what_to_write() -> None:
    session, model = Restoring(), net()
    opt = torch.optim.Adam(model.parameters())
    session.restore(model=model)
    for _ in range(4):
        session.take(opt)
    (said,) = session.told
    assert "test_unkept_optimizers.py:" in said.partition(": ")[0]
    assert "session.restore is given no Adam, which takes the steps: its state begins anew" in said
    assert said.endswith("write session.restore(model=model, optimizer=opt)")


def test_several_are_told_by_their_names() -> None:
    session, model = Restoring(), net()
    first = torch.optim.Adam(model.parameters())
    second = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    session.restore(model=model)
    for _ in range(3):
        session.take(first, second)
    (said,) = session.told
    assert "is given no Adam and SGD, which take the steps: their states begin anew" in said
    assert said.endswith("write session.restore(model=model, first=first, second=second)")


def test_another_rank_tells_nothing() -> None:
    session, model = Restoring(tells=False), net()
    opt = torch.optim.Adam(model.parameters())
    session.restore(model=model)
    for _ in range(3):
        session.take(opt)
    assert session.told == []


@pytest.mark.parametrize(
    "kept",
    [
        lambda opt: {"optimizer": opt},
        lambda opt: {"state": State(net(), opt)},
        lambda opt: {"state": State({"a": {"b": opt}})},
    ],
)
def test_one_that_is_kept_is_not_told(kept: Callable[[Any], dict[str, Any]]) -> None:
    session, model = Restoring(), net()
    opt = torch.optim.Adam(model.parameters())
    session.restore(model=model, **kept(opt))
    for _ in range(3):
        session.take(opt)
    assert session.told == []


def test_a_scheduler_keeps_no_optimizer() -> None:
    session, model = Restoring(), net()
    opt = torch.optim.Adam(model.parameters())
    session.restore(model=model, s=torch.optim.lr_scheduler.StepLR(opt, 3))
    for _ in range(3):
        session.take(opt)
    assert len(session.told) == 1


def test_without_a_state_there_is_nothing_to_keep() -> None:
    session, model = Restoring(), net()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    session.restore(model=model)
    for _ in range(3):
        session.take(opt)
    assert session.told == []


def test_nor_of_one_that_is_made_for_each_step() -> None:
    session, model = Restoring(), net()
    opt = torch.optim.Adam(model.parameters())
    session.restore(model=model, optimizer=opt)
    for _ in range(3):
        attack = torch.optim.Adam([torch.ones(1, requires_grad=True)])
        session.take(attack, opt)
    assert session.told == []
