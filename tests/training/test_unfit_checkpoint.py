"""A checkpoint that no longer fits the model is told by its first parameter, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.errors import ConfigError
from hpc_train.runs.layout import RunDir
from hpc_train.training.failures.changed_model import as_changed
from hpc_train.training.failures.unfit_checkpoint import FIX
from hpc_train.training.rank_failure import RankFailure, failure_of
from tests.training.test_failure_words import Net

pytestmark = pytest.mark.filterwarnings("ignore")
DOES_NOT_FIT = "the checkpoint does not fit the model: "


class Other(Net):
    def __init__(self, **layers: int) -> None:
        super().__init__()
        for name, width in layers.items():
            setattr(self, name, torch.nn.Linear(2, width))


def trainer(folder: Path) -> pl.Trainer:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    return pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        default_root_dir=folder,
        enable_checkpointing=False,
        **quiet,  # type: ignore[arg-type]
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    one = trainer(tmp_path)
    one.fit(Other(head=3), torch.ones(4, 2))
    one.save_checkpoint(tmp_path / "x.ckpt")
    return tmp_path / "x.ckpt"


def resumed(model: pl.LightningModule, saved: Path) -> RankFailure:
    with pytest.raises(RuntimeError) as caught:
        trainer(saved.parent).fit(model, torch.ones(4, 2), ckpt_path=saved)
    return failure_of(caught.value)


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (
            {"head": 5},
            "head.weight has the shape [3, 2] in the checkpoint and [5, 2] in the model, and 1 m",
        ),
        ({"layer": 4, "head": 3}, "layer.weight has the shape [1, 2] in the checkpoint and [4, 2]"),
        ({"tail": 3}, "it has head.*, and the model tail.*; bring the model's code back"),
        ({"tail": 3, "more": 1}, "tail.weight is not in the checkpoint, and 5 more do not fit"),
        ({"head": 3, "tail": 1}, "tail.weight is not in the checkpoint, and 1 more do not fit"),
        ({}, "head.weight is not in the model, and 1 more do not fit"),
    ],
)
def test_the_first_parameter_is_named(saved: Path, layers: dict[str, int], told: str) -> None:
    failure = resumed(Other(**layers), saved)
    assert failure.error.startswith(f"{DOES_NOT_FIT}{told}")
    assert failure.error.endswith(f"; {FIX}")
    assert (failure.kind, failure.code) == ("user", 1), "not tried again"
    assert "size mismatch" in failure.traceback or "key(s)" in failure.traceback


def code(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    state = {"workdir": str(folder), "sources": {"nets.py": text, "data.py": "same"}}
    for name in ("nets.py", "data.py"):
        (folder / name).touch()
    (folder / "environment.json").write_text(json.dumps(state))


@pytest.mark.parametrize(
    ("texts", "since"),
    [
        (["a", "b"], "nets.py has changed since attempt 0, as hpc-train diff one@0 shows: take "),
        (["a", "b", "b"], "nets.py has changed since attempt 0, as hpc-train diff one@0 shows: "),
        (["b"], "nets.py has changed since the submission, as hpc-train diff one shows: take "),
        (["a", "a"], "bring the model's code back as it was (hpc-train diff one names what "),
    ],
)
def test_what_has_changed_since_it_fitted_is_named(
    saved: Path, texts: list[str], since: str
) -> None:
    run = RunDir(saved.parent / "one")
    code(run.path, "a")
    for number, text in enumerate(texts):
        code(run.attempt(number).path, text)
    with pytest.raises(RuntimeError) as caught:
        trainer(saved.parent).fit(Other(tail=3), torch.ones(4, 2), ckpt_path=saved)
    told = as_changed(caught.value, run, len(texts) - 1)
    assert isinstance(told, ConfigError)
    assert told.message == f"{DOES_NOT_FIT}it has head.*, and the model tail.*"
    assert told.hint.startswith(since)
    assert " hpc-train resume one; another model is a run of its own: hpc-train submit" in told.hint


def test_another_error_stays_as_it_is(tmp_path: Path) -> None:
    error = ValueError("x")
    assert as_changed(error, RunDir(tmp_path), 0) is error


def test_weights_that_the_users_own_code_loads_are_told_in_torchs_words(saved: Path) -> None:
    state = torch.load(saved, weights_only=False)["state_dict"]
    with pytest.raises(RuntimeError) as caught:
        Other(head=5).load_state_dict(state)
    failure = failure_of(caught.value)
    assert "size mismatch for head.weight" in failure.error
    assert FIX not in failure.error
