"""What a training loop hands to a Session wrongly is refused, with what to write."""

from __future__ import annotations

import pydoc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import hpc_train
from hpc_train.errors import ConfigError
from hpc_train.training.sessions.session_arguments import check_due, check_objects, check_opened

SESSION: Any = hpc_train.Session
OPENED: Any = SESSION.__new__(SESSION)  # what is refused is refused before it is looked at
DATA = TensorDataset(torch.ones(4))


def with_argument(**given: Any) -> Callable[[], object]:
    return lambda: SESSION.open(**{"global_batch_size": 8, "run_dir": "/nowhere/x", **given})


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: SESSION(), "a Session is made by its method open (write: with hpc_train.Session"),
        (lambda: SESSION(64), "a Session is made by its method open"),
        (lambda: SESSION.open(), "called without global_batch_size (samples an optimizer step"),
        (lambda: SESSION.open(64), "called without global_batch_size (samples an optimizer step"),
        (
            lambda: SESSION.open(batch_size=64),
            "batch_size is no argument of Session.open (write global_batch_size=..., over all",
        ),
        (with_argument(global_batch_size="64"), "global_batch_size is '64', and has to be a whole"),
        (with_argument(global_batch_size=0), "whole number of 1 or more (write 1)"),
        (with_argument(global_batch_size=True), "global_batch_size is True, and has to be"),
        (with_argument(seed="a"), "seed is 'a', and has to be a whole number of 0 or more"),
        (with_argument(micro_batch_size=0), "micro_batch_size is 0, and has to be"),
        (with_argument(run_dir=3), "run_dir is 3, no path (write run_dir='runs/x')"),
        (
            with_argument(checkpoint={"every_n_steps": 5}),
            "write checkpoint=hpc_train.config.schema.CheckpointConfig(every_n_steps=5)",
        ),
        (lambda: OPENED.restore(1), "by name (write session.restore(model=model, optimizer="),
        (
            lambda: OPENED.restore(epoch=3),
            "epoch is of class int, which has no state_dict and no load_state_dict (leave it out",
        ),
        (lambda: list(OPENED.epochs()), "how many epochs there are in all: session.epochs(10)"),
        (lambda: list(OPENED.epochs("3")), "count is '3', and has to be a whole number of 0 or"),
        (lambda: list(OPENED.batches(DATA, 8)), "takes 1 argument without a name, and 2 are there"),
        (
            lambda: list(OPENED.evaluation(DATA)),
            "write session.evaluation(DataLoader(val_set, batch_size=64))",
        ),
        (
            lambda: list(OPENED.evaluation()),
            "write session.evaluation(DataLoader(val_set, batch_size=64))",
        ),
        (lambda: list(OPENED.batches()), "write session.batches(DataLoader(train_set, shuffle=Tr"),
        (lambda: list(OPENED.evaluation([1])), "is given a list, and needs a DataLoader"),
    ],
)
def test_what_a_session_cannot_use_is_told_with_what_to_write(
    call: Callable[[], object], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        call()
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("save", "session.stepped() saves, when due"),
        ("steped", "did you mean 'stepped'"),
        ("load", "write session.restore(model=model)"),
        ("global_step", "write session.step"),
    ],
)
def test_a_method_that_there_is_not_is_told_with_the_one_that_is_meant(
    name: str, told: str
) -> None:
    with pytest.raises(AttributeError, match=f"'Session' object has no attribute '{name}'") as it:
        getattr(OPENED, name)
    assert told in str(it.value)
    assert not hasattr(OPENED, "_repr_html_")


def test_what_a_session_can_use_passes() -> None:
    model = torch.nn.Linear(1, 1)
    check_objects({"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)})
    check_opened(np.int64(8), 0, None, None, None)
    check_opened(8, 0, np.int32(2), "runs/x", None)
    with pytest.raises(ConfigError, match="checkpoint is of class function"):
        check_opened(8, 0, None, None, check_opened)


@pytest.mark.parametrize(("steps", "drawn"), [(1, 1), (2, 3), (3, 2)])
def test_more_steps_than_the_batches_make_are_refused(steps: int, drawn: int) -> None:
    with pytest.raises(ConfigError) as caught:
        check_due(steps, drawn=drawn, accumulate=2)
    message = f"behind {drawn} of the {2 * steps} micro batches that make"
    assert message in str(caught.value)
    assert "session.stepped() under `if session.step_is_due:`" in str(caught.value)


@pytest.mark.parametrize(("steps", "drawn"), [(1, 2), (1, 3), (4, 8), (4, 0)])
def test_a_batch_that_is_drawn_ahead_or_elsewhere_is_none_too_few(steps: int, drawn: int) -> None:
    check_due(steps, drawn=drawn, accumulate=2)


def test_the_environment_is_no_default_of_it() -> None:
    shown = pydoc.render_doc(SESSION.open, renderer=pydoc.plaintext)
    assert "environ: 'Mapping[str, str] | None' = None" in shown
