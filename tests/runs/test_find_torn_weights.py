"""Weights of a run whose best model was cut off: the next best, or a refusal with its name."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.backends.find_weights import find_weights, weights_of_run
from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import SavedModel, TornBestError, write_models
from tests.runs.test_find_weights import run

__all__ = ["run"]

CUT = b"PK\x03\x04" + b"weights"


def save(run: RunDir, *contents: bytes) -> list[Path]:
    """Models of steps 1, 2, ..., each better than the one before."""
    run.models.mkdir()
    models = [
        SavedModel(path=str(run.models / f"{at}.ckpt"), step=at, epoch=0, monitor="v", score=-at)
        for at in range(1, len(contents) + 1)
    ]
    for model, content in zip(models, contents, strict=True):
        Path(model.path).write_bytes(content)
    write_models(run, models)
    return [Path(model.path) for model in models]


def test_the_next_best_is_taken_and_it_is_said(run: RunDir) -> None:
    good, bad = save(run, b"weights", CUT)
    for found in (
        weights_of_run(run, "best"),
        weights_of_run(run),
        find_weights("digits", [run.path.parents[1]], run.path),
    ):
        assert found.path == good
        passed = f"{bad} (v -2, step 2) is better, and passed over: its end is missing"
        assert found.said == f"best: v -1, step 1; {passed}"


def test_where_none_is_whole_its_file_is_named_and_what_to_write(run: RunDir) -> None:
    (bad,) = save(run, CUT)
    said = rf"has no best model that is whole: {bad}: its end is missing"
    with pytest.raises(TornBestError, match=said) as caught:
        weights_of_run(run, "best")
    assert caught.value.hint == "write --ckpt last, its state of step 9"
    assert weights_of_run(run, "last").said == "last: step 9"
    roots = [run.path.parents[1]]
    with pytest.raises(TornBestError, match=f"init_from: .* {said}") as caught:
        find_weights("digits", roots, run.path)
    (typed,) = [it for it in shlex.split(caught.value.hint) if it.startswith("init_from=")]
    state = run.checkpoints / "step-000000009" / "model.ckpt"
    assert typed == f"init_from={state},"


def test_without_a_state_the_hint_names_what_lists_the_rest(run: RunDir) -> None:
    """An older run of the name is not taken in its place, without a word."""
    save(run, CUT)
    for state in run.checkpoints.iterdir():
        (state / "manifest.json").unlink()
    with pytest.raises(TornBestError) as caught:
        find_weights("digits", [run.path.parents[1]], run.path)
    assert caught.value.hint == f"`hpc-train checkpoints {run.run_id}` shows what it has"
