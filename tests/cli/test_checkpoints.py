"""`hpc-train checkpoints`: what a run has saved, and where its best model is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import SavedModel, write_models
from tests.cli.run_of_yesterday import ended, project

__all__ = ["project"]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "runs" / "digits" / "20261121-080449-10d1")
    run.models.mkdir(parents=True)
    run.plan.write_text("{}")
    return run


def save(run: RunDir, *models: SavedModel) -> list[str]:
    for model in models:
        Path(model.path).write_text("weights")
    write_models(run, models)
    return [model.path for model in models]


def model(run: RunDir, step: int, score: float | None, monitor: str = "val_acc") -> SavedModel:
    path = str(run.models / f"{monitor}-{step}.ckpt")
    return SavedModel(path=path, step=step, epoch=0, monitor=monitor, mode="max", score=score)


def test_the_best_alone_is_printed_for_a_shell(hpc, run: RunDir) -> None:
    _, best, _ = save(run, model(run, 6, 0.7), model(run, 12, 0.9), model(run, 18, 0.8))
    assert hpc("checkpoints", "digits", "--best").out == f"{best}\n"
    document = json.loads(hpc("checkpoints", "digits", "--best", "--json").out)
    assert (document["best"]["path"], document["best"]["score"]) == (best, 0.9)


def test_the_list_names_metric_and_value_and_status_has_the_path(hpc, run: RunDir) -> None:
    last = SavedModel(path=str(run.models / "last.ckpt"), step=18, epoch=2, last=True)
    _, best, _ = save(run, model(run, 6, 0.7), model(run, 12, 0.9), last)
    _, *rows = hpc("checkpoints", "digits").out.splitlines()
    assert [row.split()[:3] for row in rows[1:]] == [
        ["12", "best", "val_acc"], ["6", "model", "val_acc"]
    ]  # fmt: skip
    assert rows[0].split()[:2] == ["18", "last"]
    document = json.loads(hpc("checkpoints", "digits", "--json").out)
    assert (document["schema_version"], document["run"]) == (1, run.run_id)
    assert [row["step"] for row in document["models"]] == [18, 12, 6]
    assert f"best       val_acc 0.9  step 12  {best}" in hpc("status", "digits").out
    (told,) = json.loads(hpc("status", "digits", "--json").out)["best_models"]
    assert told["path"] == best


@pytest.mark.parametrize(
    "typed",
    [
        "digits --best val_acc",
        "digits --best=val_acc",
        "--best digits val_acc",
        "--best val_acc digits",
        "--best val_acc:max digits",
    ],
)
def test_a_metric_behind_best_as_status_takes_it_is_told_as_it_is_typed(
    hpc, run: RunDir, typed: str
) -> None:
    _, best = save(run, model(run, 6, 0.7), model(run, 12, 0.9))
    said = hpc("checkpoints", *typed.split())
    assert said.code == 2
    fix = said.err.splitlines()[1].removeprefix("  fix: hpc-train ")
    assert fix == "checkpoints digits --best --monitor val_acc"
    assert hpc(*fix.split()).out == f"{best}\n"


def test_another_word_too_many_is_no_metric(hpc, run: RunDir) -> None:
    assert "one RUN at a time" in hpc("checkpoints", "digits", "val_acc").err
    assert "one RUN at a time" in hpc("checkpoints", "digits", "--best", "a", "b").err
    assert "--monitor" not in hpc("checkpoints", "digits", "--verify=1").err


def test_a_model_that_was_deleted_is_not_the_best(hpc, run: RunDir) -> None:
    best, second = save(run, model(run, 6, 0.9), model(run, 12, 0.8))
    Path(best).unlink()
    assert hpc("checkpoints", "digits", "--best").out == f"{second}\n"


def test_two_metrics_are_told_apart_by_name(hpc, run: RunDir) -> None:
    by_acc, by_f1 = save(run, model(run, 6, 0.9), model(run, 6, 0.5, "f1"))
    said = hpc("checkpoints", "digits", "--best")
    assert (said.code, said.out) == (2, "")
    assert "saved by f1, val_acc" in said.err
    assert "--monitor f1" in said.err
    assert hpc("checkpoints", "digits", "--best", "--monitor", "f1").out == f"{by_f1}\n"
    assert hpc("checkpoints", "digits", "--monitor", "val_acc").out == f"{by_acc}\n"


def test_without_any_model_one_line_says_how_to_get_one(hpc, run: RunDir) -> None:
    said = hpc("checkpoints", "digits", "--best")
    assert (said.code, said.out) == (1, "")
    assert "ModelCheckpoint" in said.err
    assert "ModelCheckpoint" in hpc("checkpoints", "digits").err


@pytest.mark.parametrize("more", [[], ["--sweep", "seed=1,2"]])
def test_a_checkpoint_that_has_saved_none_yet_is_told_as_that(hpc, project: Path, more) -> None:
    """The callback that the config has was to be added."""
    kept = "{class_path: pytorch_lightning.callbacks.ModelCheckpoint, init_args: {monitor: acc}}"
    text = (project / "cfg.yaml").read_text()
    callbacks = f"epochs: 1, callbacks: [{kept}]"
    (project / "cfg.yaml").write_text(text.replace("epochs: 1", callbacks))
    said = hpc("submit", "cfg.yaml", "--json", *more)
    assert said.code == 0, said
    made = json.loads(said.out)
    word = f"{made['sweep']}-0" if more else made["run"]
    why = "its ModelCheckpoint has saved none by acc so far"
    assert f"no best model: {why}\n" in hpc("checkpoints", word).err
    best = hpc("checkpoints", word, "--best")
    assert (best.code, f"has saved no best model: {why}\n" in best.err) == (1, True)
    assert best.err.endswith(f"fix: hpc-train status {word}\n")


def state(run: RunDir, step: int) -> None:
    folder = run.checkpoints / f"step-{step:09d}"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")


def test_who_has_no_best_model_is_sent_to_a_state_only_where_there_is_one(hpc, run: RunDir) -> None:
    assert "hpc-train checkpoints" not in hpc("checkpoints", "digits", "--best").err
    state(run, 9)
    fix = hpc("checkpoints", "digits", "--best").err.rpartition("`hpc-train ")[2].partition("`")[0]
    assert "step-000000009" in hpc(*fix.split()).out


def test_models_about_which_no_metric_decided_have_no_best(hpc, run: RunDir) -> None:
    last = SavedModel(path=str(run.models / "last.ckpt"), step=18, epoch=2, last=True)
    older, newest, _ = save(run, model(run, 6, None, ""), model(run, 12, None, ""), last)
    _, *rows = hpc("checkpoints", "digits").out.splitlines()
    assert [row.split() for row in rows] == [
        ["18", "last", last.path], ["12", "model", newest], ["6", "model", older]
    ]  # fmt: skip
    assert "no metric decides; set monitor" in hpc("checkpoints", "digits").err
    for words in (["--best"], ["--best", "--json"], ["--monitor", "val_acc"]):
        said = hpc("checkpoints", "digits", *words)
        assert (said.code, said.out if "--json" not in words else "") == (1, "")
        told = said.out if "--json" in words else said.err
        assert "no metric decided about those that it saved" in told
        assert f"ModelCheckpoint, to what the model logs; the newest one: {newest}" in told
    shown = hpc("status", "digits").out
    assert f"  newest     step 12  {newest}\n" in shown
    assert "best" not in shown.replace("  newest", "")
    assert json.loads(hpc("status", "digits", "--json").out)["best_models"] == []


def test_beside_a_metric_that_decides_the_others_are_not_the_best(hpc, run: RunDir) -> None:
    by_acc, newest = save(run, model(run, 6, 0.9), model(run, 12, None, ""))
    assert hpc("checkpoints", "digits", "--best").out == f"{by_acc}\n"
    _, *rows = hpc("checkpoints", "digits").out.splitlines()
    assert [row.split()[:2] for row in rows] == [["12", "model"], ["6", "best"]]
    assert f"best       val_acc 0.9  step 6  {by_acc}\n  newest     step 12  {newest}" in (
        hpc("status", "digits").out
    )


def test_a_list_that_cannot_be_read_is_none(hpc, run: RunDir) -> None:
    run.models_list.write_text("[{")
    assert "no checkpoints yet" in hpc("checkpoints", "digits").err


def test_a_model_in_an_object_store_is_listed_by_its_address(hpc, run: RunDir) -> None:
    write_models(run, [replace(model(run, 6, 0.9), path="s3://models/a.ckpt")])
    assert hpc("checkpoints", "digits", "--best").out == "s3://models/a.ckpt\n"


OF_A_CHECKPOINT = """\
  callbacks: [{class_path: pytorch_lightning.callbacks.ModelCheckpoint, init_args: {monitor: v}}]
"""


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_trial_is_told_that_it_keeps_no_model_with_what_trains(
    hpc, project: Path, has_ended: bool
) -> None:
    config = project / "cfg.yaml"
    trainer = "trainer:\n  accelerator: cpu\n  fast_dev_run: true\n" + OF_A_CHECKPOINT
    text = config.read_text()
    config.write_text(text.replace("trainer: {accelerator: cpu, max_epochs: 1}\n", trainer))
    made = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    if has_ended:
        ended(made, "completed")
    why = "trainer.fast_dev_run switches every ModelCheckpoint off"
    anew = f"hpc-train submit {config} trainer.fast_dev_run=false"
    said = hpc("checkpoints", "x", "--best").err
    assert said.splitlines()[0].endswith(f"has saved no best model: {why}")
    assert said.splitlines()[1] == f"  fix: without it: {anew.replace(f'{project}/', '')}"
    assert f"no best model: {why}; without it: " in hpc("checkpoints", "x").err


@pytest.mark.parametrize("has_ended", [False, True])
def test_so_far_is_said_of_a_run_alone_that_goes_on(hpc, project: Path, has_ended: bool) -> None:
    config = project / "cfg.yaml"
    trainer = "trainer:\n  accelerator: cpu\n  max_epochs: 1\n" + OF_A_CHECKPOINT
    text = config.read_text()
    config.write_text(text.replace("trainer: {accelerator: cpu, max_epochs: 1}\n", trainer))
    made = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    if has_ended:
        ended(made, "failed")
    end = "" if has_ended else " so far"
    for words in (["checkpoints", "x", "--best"], ["checkpoints", "x"]):
        told = next(it for it in hpc(*words).err.splitlines() if "has saved none by" in it)
        assert told.endswith(f"its ModelCheckpoint has saved none by v{end}")
