"""Which weights a name means, and that they stay while somebody waits to read them."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from hpc_train.backends.find_weights import (
    choose_and_hold,
    find_weights,
    hold_weights,
    weights_of_run,
)
from hpc_train.errors import CheckError, ConfigError, HpcTrainError, NoSuchRunError, UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind, append_event, seen
from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import SavedModel, write_models
from hpc_train.runs.this_folder import RunFolders


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A run with checkpoints of steps 5 and 9, and no best model."""
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", str(tmp_path / "runs"))  # its id is then enough
    run = RunDir(tmp_path / "runs" / "digits" / "20261121-080449-10d1")
    for step in (5, 9):
        folder = run.checkpoints / f"step-{step:09d}"
        folder.mkdir(parents=True)
        (folder / "model.ckpt").write_text("weights")
        versions = {"hpc-train": "0.1.0"}
        manifest = {
            "step": step, "epoch": 0, "samples": 0, "world_size": 1, "accumulate": 1,
            "config_hash": "", "attempt": 0, "time": 0.0, "versions": versions, "files": [],
            "schema_version": 1,
        }  # fmt: skip
        (folder / "manifest.json").write_text(json.dumps(manifest))
    run.plan.write_text("{}")
    return run


def best(run: RunDir, *monitors: str) -> list[Path]:
    models = [
        SavedModel(path=str(run.models / f"{name}.ckpt"), step=5, epoch=0, monitor=name, score=0.5)
        for name in monitors
    ]
    run.models.mkdir()
    for model in models:
        Path(model.path).write_text("weights")
    write_models(run, models)
    return [Path(model.path) for model in models]


def test_a_runs_weights_are_its_best_model_or_its_newest_state(run: RunDir) -> None:
    newest = run.checkpoints / "step-000000009" / "model.ckpt"
    assert weights_of_run(run).path == newest
    (by_loss,) = best(run, "loss")
    assert weights_of_run(run).path == weights_of_run(run, "best").path == by_loss
    assert weights_of_run(run, "last").path == newest
    assert weights_of_run(run, "last").said == "last: step 9"
    older = str(run.checkpoints / "step-000000005")
    assert weights_of_run(run, older).path == Path(older, "model.ckpt")


def test_two_metrics_are_not_chosen_between(run: RunDir) -> None:
    best(run, "loss", "acc")
    with pytest.raises(UsageError, match="saved by acc, loss") as caught:
        weights_of_run(run)
    assert "--ckpt" in caught.value.hint
    with pytest.raises(
        UsageError, match=r"init_from: the models of .* saved by acc, loss"
    ) as caught:
        find_weights("digits", [run.path.parents[1]], run.path)
    printed = f"init_from=PATH; `hpc-train checkpoints {run.run_id} --monitor acc` prints it"
    assert caught.value.hint == f"name the file: {printed}"


def test_models_about_which_no_metric_decided_are_not_taken_for_the_best(run: RunDir) -> None:
    best(run, "")
    newest = run.checkpoints / "step-000000009" / "model.ckpt"
    assert weights_of_run(run).path == newest
    assert find_weights("digits", [run.path.parents[1]], run.path).path == newest
    with pytest.raises(HpcTrainError, match="has saved no best model") as caught:
        weights_of_run(run, "best")
    assert "--ckpt last" in caught.value.hint


def test_a_run_without_any_says_so(run: RunDir) -> None:
    with pytest.raises(HpcTrainError, match="has saved no best model") as caught:
        weights_of_run(run, "best")
    assert caught.value.hint.startswith("write --ckpt last, or leave --ckpt out")
    for state in run.checkpoints.iterdir():
        (state / "manifest.json").unlink()
    with pytest.raises(HpcTrainError, match="has saved no checkpoint") as caught:
        weights_of_run(run)
    assert f"`hpc-train status {run.run_id}`" in caught.value.hint
    with pytest.raises(HpcTrainError, match=r"init_from: digits .* no checkpoint ") as caught:
        find_weights("digits", [run.path.parents[1]], run.path)
    assert "init_from: PATH" in caught.value.hint
    assert "--ckpt" not in caught.value.hint


def test_the_only_checkpoint_that_is_damaged_is_named(run: RunDir) -> None:
    for state in run.checkpoints.iterdir():
        text = (state / "manifest.json").read_text()
        (state / "manifest.json").write_text(text.replace('"step": ', '"steps": '))
    with pytest.raises(
        HpcTrainError, match=r"has no whole checkpoint: that of step 9 is"
    ) as caught:
        weights_of_run(run)
    assert f"`hpc-train resume {run.run_id}` begins again at step 0" in caught.value.hint


def test_a_name_is_a_path_or_a_run(run: RunDir, tmp_path: Path) -> None:
    roots = [tmp_path / "runs"]
    (tmp_path / "a.ckpt").write_bytes(b"\x80\x02")  # as torch.save's zip begins
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / ".metadata").touch()
    assert find_weights("a.ckpt", roots, tmp_path).path == tmp_path / "a.ckpt"
    assert find_weights("shards", roots, tmp_path).path == tmp_path / "shards"
    newest = run.checkpoints / "step-000000009" / "model.ckpt"
    for name in ("digits", run.run_id, str(run.path), str(run.checkpoints / "step-000000009")):
        assert find_weights(name, roots, tmp_path).path == newest
    with pytest.raises(NoSuchRunError, match="'digit' is neither a checkpoint nor a run"):
        find_weights("digit", roots, tmp_path)
    for gone in ("gone.ckpt", "weights/gone"):
        with pytest.raises(NoSuchRunError, match=f"there is no {tmp_path / gone}") as caught:
            find_weights(gone, roots, tmp_path)
        assert "--ckpt" not in caught.value.hint
    assert find_weights("runs/digits", roots, tmp_path).path == newest  # as Tab completes it
    with pytest.raises(CheckError, match="is a folder, and no checkpoint"):
        find_weights("runs", roots, tmp_path)
    with pytest.raises(CheckError, match=r"there is no /nowhere\.ckpt"):
        weights_of_run(run, "/nowhere.ckpt")


@pytest.mark.parametrize("word", ["best", "last"])
def test_a_word_of_another_option_is_told_with_the_run_that_has_weights(
    run: RunDir, tmp_path: Path, word: str
) -> None:
    """`last` means the newest run, which here has saved nothing."""
    plan = json.dumps({"verb": "fit", "name": "digits"})
    run.plan.write_text(plan)
    (empty := RunDir(tmp_path / "runs" / "warm" / "20261121-090000-ffff")).path.mkdir(parents=True)
    empty.plan.write_text(plan.replace("digits", "warm"))
    with pytest.raises(HpcTrainError, match=r"best|no checkpoint") as caught:
        find_weights(word, RunFolders([tmp_path / "runs"], [tmp_path / "runs"]), tmp_path)
    assert "init_from=digits" in caught.value.hint
    assert find_weights("digits", [tmp_path / "runs"], tmp_path).path.name == "model.ckpt"
    shutil.rmtree(run.path)
    with pytest.raises(HpcTrainError, match=r"best|no checkpoint") as caught:
        find_weights(word, RunFolders([tmp_path / "runs"], [tmp_path / "runs"]), tmp_path)
    assert "PATH" in caught.value.hint
    assert "init_from=digits" not in caught.value.hint


def test_a_run_of_the_name_best_is_that_run(run: RunDir, tmp_path: Path) -> None:
    shutil.move(run.path.parent, tmp_path / "runs" / "best")
    run = RunDir(tmp_path / "runs" / "best" / run.run_id)
    run.plan.write_text(json.dumps({"name": "best"}))
    newest = run.checkpoints / "step-000000009" / "model.ckpt"
    assert find_weights("best", [tmp_path / "runs"], tmp_path).path == newest


def newer(run: RunDir, number: int, *told: Event) -> RunDir:
    """A run of the same name that has no weights."""
    made = RunDir(run.path.parent / f"20261122-08000{number}-10d1")
    made.path.mkdir()
    made.plan.write_text("{}")
    for event in told:
        append_event(made.events, event)
    return made


ENDED = Event(1.0, EventKind.RUN_ENDED, {"state": "failed"})


def test_a_name_passes_over_runs_that_ended_without_weights(run: RunDir) -> None:
    roots, weights = [run.path.parents[1]], run.checkpoints / "step-000000009" / "model.ckpt"
    failed = newer(run, 1, ENDED)
    found = find_weights("digits", roots, run.path)
    assert (found.path, found.run) == (weights, run)
    assert found.said == (
        f"last: step 9, of {run.run_id}: 1 newer run of that name ended without any"
    )
    newer(run, 2, seen([], RunState.CANCELLED, "", 1.0))
    newer(run, 3, Event(1.0, EventKind.CANCEL_REQUESTED, {}))
    for reference in ("digits", str(run.path.parent)):
        found = find_weights(reference, roots, run.path)
        assert found.path == weights
        assert found.said.endswith(": 3 newer runs of that name ended without any")
    assert find_weights(run.run_id, roots, run.path).said == "last: step 9"
    with pytest.raises(HpcTrainError, match="has saved no checkpoint") as caught:
        find_weights(failed.run_id, roots, run.path)
    assert f"name a run that has one: init_from={run.run_id}, or a file" in caught.value.hint


@pytest.mark.parametrize(
    "told",
    [
        (),
        (seen([], RunState.PENDING, "", 1.0),),
        (ENDED, Event(2.0, EventKind.SUBMITTED, {"job_id": "7"})),
        (
            Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 0, "job_id": "7"}),
            Event(2.0, EventKind.CANCEL_REQUESTED, {}),
        ),
    ],
)
def test_a_run_that_may_still_save_its_weights_is_not_passed_over(
    run: RunDir, told: tuple[Event, ...]
) -> None:
    newer(run, 1, *told)
    newer(run, 2, ENDED)
    with pytest.raises(HpcTrainError, match="has saved no checkpoint") as caught:
        find_weights("digits", [run.path.parents[1]], run.path)
    assert f"name a run that has one: init_from={run.run_id}, or a file" in caught.value.hint


def test_held_weights_outlive_their_deletion(run: RunDir, tmp_path: Path) -> None:
    file, folder = run.checkpoints / "step-000000009" / "model.ckpt", tmp_path / "shards"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "0.distcp").write_text("part")
    for source in (file, folder):
        hold_weights(source, tmp_path / "weights")
    file.unlink()
    assert (tmp_path / "weights" / "model.ckpt").read_text() == "weights"
    assert (tmp_path / "weights" / "shards" / "deep" / "0.distcp").read_text() == "part"


def test_where_no_link_can_be_nothing_is_held(
    run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuses)
    hold_weights(run.checkpoints / "step-000000009" / "model.ckpt", tmp_path / "weights")
    assert not list((tmp_path / "weights").iterdir())


def test_weights_that_are_deleted_while_they_are_linked_are_chosen_anew(
    run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def deleted_first(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        shutil.rmtree(source.parent)
        link(source, target)

    monkeypatch.setattr(os, "link", deleted_first)
    found, held = choose_and_hold(run, "last", tmp_path)
    assert found.said == "last: step 5"
    assert (held / "model.ckpt").exists()


def test_a_folder_of_runs_that_is_not_ours_to_write_is_told(
    run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: object) -> str:
        raise PermissionError(13, "Permission denied", str(tmp_path / ".weights-x"))

    monkeypatch.setattr("tempfile.mkdtemp", refused)
    with pytest.raises(ConfigError, match=r"runs_dir: cannot write .*Permission denied") as caught:
        choose_and_hold(run, "last", tmp_path)
    assert "runs_dir=/path/to/scratch/runs" in caught.value.hint


def test_a_file_that_torch_did_not_write_is_refused(tmp_path: Path) -> None:
    whole, cut, other = (tmp_path / name for name in ("whole.pt", "cut.pt", "arrays.npz"))
    for file, inside in ((whole, "whole/data.pkl"), (other, "a.npy")):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(inside, "x" * 100)
    cut.write_bytes(whole.read_bytes()[:90])
    (tmp_path / "empty.ckpt").touch()
    (tmp_path / "text.ckpt").write_text("hello")
    (tmp_path / "old.pt").write_bytes(b"\x80\x02rest")  # before torch 1.6: a pickle
    for name in ("cut.pt", "arrays.npz", "empty.ckpt", "text.ckpt"):
        with pytest.raises(CheckError, match=rf"init_from: .*{name} is no checkpoint: torch.save"):
            find_weights(name, [], tmp_path)
    assert find_weights("whole.pt", [], tmp_path).path == whole
    assert find_weights("old.pt", [], tmp_path).path == tmp_path / "old.pt"
