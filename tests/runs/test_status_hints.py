"""What is told of a status that is read like a dict of metrics, or like Lightning's results."""

from __future__ import annotations

import copy
import pickle

import pytest

from hpc_train import api
from hpc_train.plan.states import RunState
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus


def status(**metrics: float) -> RunStatus:
    return RunStatus(
        run="r-1",
        name="r",
        run_dir="runs/r-1",
        state=RunState.COMPLETED,
        job_id="1",
        backend="local",
        metrics=metrics,
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("loss", "status.metrics['loss']"),
        ("val/acc", "status.metrics['val/acc']"),
        ("step", "status.step"),
        ("outcome", "status.outcome"),
        ("metrics", "status.metrics"),
        ("results", "status.metrics, a dict"),
        ("val_loss", "status.metrics, which has 'loss', 'val/acc'"),
        ("nothing", "status.metrics['NAME'] for what was logged"),
        (0, "status.metrics['NAME'] for what was logged"),
    ],
)
def test_a_key_in_brackets(name: object, said: str) -> None:
    with pytest.raises(TypeError) as refused:
        status(**{"loss": 0.5, "val/acc": 0.9})[name]  # type: ignore[index]
    assert str(refused.value) == f"a RunStatus has no keys in brackets: write {said}"


def test_an_attribute_that_is_a_metric() -> None:
    with pytest.raises(AttributeError) as refused:
        _ = status(loss=0.5).loss  # type: ignore[attr-defined]
    assert str(refused.value) == "RunStatus has no 'loss': write status.metrics['loss']"
    with pytest.raises(AttributeError, match="is empty: nothing was logged"):
        _ = status().val_loss  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("cancel", "cancel()"),
        ("best_model", "best_model()"),  # of what list_runs() gives, it was told with itself
        ("checkpoints", "checkpoints()"),
        ("logs", "logs()"),
        ("predict", "evaluate('predict')"),
    ],
)
def test_what_a_run_does_is_told_with_the_run(name: str, call: str) -> None:
    with pytest.raises(AttributeError) as refused:
        getattr(status(), name)
    assert str(refused.value) == (
        f"RunStatus has no {name!r}: write hpc_train.Run.find('r-1').{call}"
    )


def test_it_is_no_container_and_can_be_copied() -> None:
    one = status(loss=0.5)
    with pytest.raises(TypeError):
        list(one)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        assert "loss" in one  # type: ignore[operator]
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))


def test_a_run_in_brackets(tmp_path) -> None:
    run = api.Run(RunDir(tmp_path))
    with pytest.raises(TypeError, match=r"a Run has no keys in brackets: write run.wait\(\).metr"):
        run["loss"]  # type: ignore[index]
    with pytest.raises(TypeError, match=r"write run.status\(\).step"):
        run["step"]  # type: ignore[index]
