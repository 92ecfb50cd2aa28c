"""The models that ModelCheckpoints save, with real ranks that are killed and go on."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.errors import ConfigError, HpcTrainError, UsageError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import SavedModel, best_models, choose_best, read_models
from hpc_train.training.model_files import check_folders
from tests.training.ranks import Run

BY_LOSS = {"monitor": "val_loss"}
# Six steps an epoch; the kill comes behind the second epoch's model, the newest state is before it.
SPEC: dict[str, Any] = {"epochs": 4, "checkpoint": {"every_n_steps": 8}}
KILLED = "kill@step=14:rank=0"


def listed(run: Run) -> list[tuple[Any, ...]]:
    return sorted(
        (Path(it.path).name, it.step, it.epoch, it.monitor, it.score, it.last)
        for it in read_models(run.dir)
    )


def files(run: Run) -> set[str]:
    return {path.name for path in run.dir.models.glob("*.ckpt")}


def run_state(run: Run) -> dict[str, Any]:
    """What the newest checkpoint knows of the ModelCheckpoint."""
    state = torch.load(run.dir.checkpoints / run.checkpoints[-1] / "model.ckpt", weights_only=False)
    return next(it for name, it in state["callbacks"].items() if name.startswith("ModelCheck"))


KINDS: dict[str, list[dict[str, Any]]] = {
    "the best": [BY_LOSS],
    "the best two and the last": [{**BY_LOSS, "save_top_k": 2, "save_last": True}],
    "the worst, by mode": [{**BY_LOSS, "mode": "max"}],
    "one name for all": [{**BY_LOSS, "filename": "best", "save_top_k": 2}],
    "the newest": [{}],
    "all": [{"save_top_k": -1}],
    "two metrics": [
        {**BY_LOSS, "filename": "v-{step}"},
        {"monitor": "seen", "filename": "s-{step}"},
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_has_the_models_of_an_undisturbed_one(kind: str, tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "a", models=KINDS[kind], **SPEC)
    assert undisturbed.run(2) == [0, 0]
    killed = Run(tmp_path / "b", models=KINDS[kind], **SPEC)
    assert killed.run(2, faults=KILLED)[0] == -9
    assert listed(killed), "listed while it runs"
    assert killed.run(2) == [0, 0]
    assert listed(killed) == listed(undisturbed)
    assert files(killed) == files(undisturbed) == {row[0] for row in listed(killed)}


def test_the_best_is_there_right_after_a_resume_and_in_another_place(tmp_path: Path) -> None:
    run = Run(tmp_path / "old", models=[{**BY_LOSS, "save_top_k": 2}], **SPEC)
    run.run(2, faults="kill@step=20:rank=0")
    shutil.move(tmp_path / "old", tmp_path / "new")
    moved = Run(tmp_path / "new", models=[{**BY_LOSS, "save_top_k": 2}], **SPEC)
    moved.attempt = 1
    moved.run(1, faults="kill@step=17")
    best = choose_best(moved.dir)
    assert Path(best.path).parent == tmp_path / "new" / "models"
    assert moved.run(2) == [0, 0]
    assert len(files(moved)) == len(listed(moved)) == 2
    newest = run_state(moved)
    assert set(newest["best_k_models"]) == {it.path for it in read_models(moved.dir)}
    assert newest["best_model_path"] == choose_best(moved.dir).path
    assert not (tmp_path / "old").exists()


def test_a_dirpath_of_the_user_is_kept_and_said(tmp_path: Path) -> None:
    own = {**BY_LOSS, "dirpath": str(tmp_path / "mine")}
    run = Run(tmp_path / "run", models=[own], **SPEC)
    assert run.run(1) == [0]
    assert f"saves into its own dirpath {tmp_path / 'mine'}" in run.log(0, 0)
    (model,) = read_models(run.dir)
    assert Path(model.path).parent == tmp_path / "mine"
    assert not files(run)


def test_a_metric_that_is_nan_is_said_to_be_so(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", models=[BY_LOSS], val_nan=True, epochs=1)
    assert run.run(1) == [0]
    best = choose_best(run.dir)
    assert (best.score, best.metric_text) == (None, "val_loss nan")


def a_model(name: str, score: float | None, **more: Any) -> SavedModel:
    return SavedModel(path=name, step=1, epoch=0, score=score, **{"monitor": "loss", **more})


def test_the_best_is_by_mode_and_never_a_nan_or_a_last_one() -> None:
    nan, low, high = a_model("n", None), a_model("l", 1.0), a_model("h", 2.0)
    assert best_models([nan, high, low])["loss"] is low
    by_max = [a_model(m.path, m.score, mode="max") for m in (nan, low, high)]
    assert best_models(by_max)["loss"].path == "h"
    assert best_models([nan])["loss"] is nan
    later = SavedModel(path="e", step=2, epoch=1, monitor="loss", score=1.0)
    assert best_models([later, low])["loss"] is low, "the first of equals, as Lightning says"
    assert best_models([a_model("last", None, monitor="", last=True)]) == {}


def test_several_metrics_have_to_be_told_apart(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", models=KINDS["two metrics"], epochs=1)
    with pytest.raises(HpcTrainError, match="has saved no best model"):
        choose_best(run.dir)
    assert run.run(1) == [0]
    with pytest.raises(UsageError, match="saved by seen, val_loss"):
        choose_best(run.dir)
    assert choose_best(run.dir, "seen").monitor == "seen"
    with pytest.raises(HpcTrainError, match="no model by acc"):
        choose_best(run.dir, "acc")


def asked(folder: object, *, first_rank: bool = True, **options: Any) -> None:
    callback = pl.callbacks.ModelCheckpoint(**options)
    callback.dirpath = folder  # type: ignore[assignment]
    trainer: Any = SimpleNamespace(is_global_zero=first_rank, checkpoint_callbacks=[callback])
    check_folders(trainer, RunDir(Path("/proc/run")))


def test_a_folder_that_cannot_be_made_is_refused_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as refused:
        asked(str(tmp_path / "file" / "models"))
    folder = tmp_path / "file" / "models"
    why = f"{tmp_path / 'file'} is a file"
    told = f"ModelCheckpoint cannot write into its dirpath {folder}: {why}"
    assert refused.value.message == told
    assert refused.value.hint.endswith("or leave dirpath out")
    with pytest.raises(ConfigError, match="/proc/models: /proc holds the kernel's own"):
        asked("/proc/models")


def test_a_folder_that_can_be_made_or_is_not_used_is_not_refused(tmp_path: Path) -> None:
    asked(str(tmp_path / "a" / "b"))
    asked(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    asked(None)
    asked("s3://bucket/models")
    asked("/proc/run/models")  # the run's own, of which more is said where it is lost
    asked("/proc/models", save_top_k=0)
    asked("/proc/models", first_rank=False)
