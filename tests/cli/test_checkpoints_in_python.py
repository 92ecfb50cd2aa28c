"""What `hpc-train checkpoints` says to those who load one themselves."""

from __future__ import annotations

import json
import os

from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import (
    SavedModel,
    newest_undecided,
    read_models,
    write_models,
)
from tests.cli.run_of_yesterday import project, run

__all__ = ["project", "run"]


def test_the_file_that_lightning_reads_is_named(hpc, run: RunDir) -> None:
    """PATH is a folder: Net.load_from_checkpoint(PATH) raised IsADirectoryError."""
    path = run.checkpoints / "step-000000012" / "model.ckpt"
    line = f"in Python: from nets import Net; Net.load_from_checkpoint('{path}')\n"
    assert line in hpc("checkpoints", "x").err
    path.unlink()
    assert "in Python" not in hpc("checkpoints", "x").err


def test_the_arguments_of_the_run_are_given_since_the_file_may_hold_none(hpc, run: RunDir) -> None:
    """Without save_hyperparameters() it raised TypeError for each that has no default."""
    plan = json.loads(run.plan.read_text())
    inner = {"class_path": "torch.nn.ReLU", "init_args": {}}
    plan["training"]["model"]["init_args"] = {"lr": 0.1, "name": "it's", "net": inner, "k": [1]}
    run.plan.write_text(json.dumps(plan))
    given = """', lr=0.1, name="it's", net=..., k=[1])\n"""
    assert given in hpc("checkpoints", "x").err


def test_of_a_best_model_that_is_there_its_file_is_named(hpc, run: RunDir) -> None:
    run.models.mkdir()
    for epoch in range(3):
        (run.models / f"{epoch}.ckpt").write_text("weights")
    models = [
        SavedModel(path=str(run.models / f"{it}.ckpt"), step=it, epoch=it, monitor="v", score=score)
        for it, score in enumerate((0.5, 0.2, 0.3))
    ]
    write_models(run, models)
    assert f"Net.load_from_checkpoint('{run.models / '1.ckpt'}')" in hpc("checkpoints", "x").err
    assert os.fspath(read_models(run)[0]) == str(run.models / "2.ckpt")


def test_of_two_trainings_that_end_at_one_step_the_later_one_is_the_newest(
    hpc, run: RunDir
) -> None:
    run.models.mkdir()
    paths = [run.models / f"version_{it}.ckpt" for it in range(2)]
    for path in paths:
        path.write_text("weights")
    write_models(run, [SavedModel(path=str(it), step=16, epoch=1) for it in paths])
    models = read_models(run)
    newest = newest_undecided(models)
    assert [it.path for it in models] == [str(it) for it in reversed(paths)]
    assert newest is not None
    assert newest.path == str(paths[1])
