"""A model file that was cut off, as by a full disk, is nobody's best model."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path

import pytest

import hpc_train
from hpc_train.python_notes import HpcTrainNote
from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import SavedModel, read_models, without_torn, write_models
from tests.cli.test_checkpoints import run

__all__ = ["run"]


def whole(path: Path) -> Path:
    """A file as torch.save frames it."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"weights" * 1000)
    return path


def cut(path: Path) -> Path:
    path.write_bytes(whole(path).read_bytes()[:4096])
    return path


def empty(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def save(run: RunDir, *made, monitor: str = "acc") -> list[str]:
    """Models of steps 1, 2, ..., each better than the one before."""
    paths = [make(run.models / f"{monitor or 'm'}-{at}.ckpt") for at, make in enumerate(made, 1)]
    before = read_models(run)
    models = [
        SavedModel(
            path=str(path), step=at, epoch=0, monitor=monitor, mode="max",
            score=at / 10 if monitor else None,
        )
        for at, path in enumerate(paths, 1)
    ]  # fmt: skip
    write_models(run, [*before, *models])
    return [str(path) for path in paths]


@pytest.mark.parametrize(("torn", "why"), [(cut, "its end is missing"), (empty, "it is empty")])
def test_the_best_that_is_whole_is_taken_and_the_torn_one_named(hpc, run, torn, why) -> None:
    _, good, bad = save(run, whole, whole, torn)
    said = hpc("checkpoints", "digits", "--best")
    assert (said.code, said.out) == (0, f"{good}\n")
    assert said.err == f"note: {bad} (acc 0.3, step 3) is better, and passed over: {why}\n"
    rows = [row.split(maxsplit=5) for row in hpc("checkpoints", "digits").out.splitlines()[1:]]
    assert rows[0] == ["3", "model", "acc", "0.3", "no", f"{bad}  {why}"]
    assert rows[1] == ["2", "best", "acc", "0.2", good]
    shown = hpc("status", "digits").out
    assert f"  best       acc 0.2  step 2  {good}\n" in shown
    assert f"  not whole  acc 0.3  step 3  {bad}: {why}\n" in shown
    listed = json.loads(hpc("checkpoints", "digits", "--json").out)["models"]
    assert [(row["valid"], row["reason"]) for row in listed] == [(False, why), *[(True, "")] * 2]
    told = json.loads(hpc("status", "digits", "--json").out)
    assert [it["path"] for it in told["best_models"]] == [good]
    assert [it["path"] for it in told["torn_models"]] == [bad]


def test_where_none_is_whole_the_file_is_named(hpc, run) -> None:
    (bad,) = save(run, cut)
    for typed in (["--best"], ["--monitor", "acc"]):
        said = hpc("checkpoints", "digits", *typed)
        assert (said.code, said.out) == (1, "")
        assert f"has no best model that is whole: {bad}: its end is missing" in said.err
    fix = said.err.partition("`hpc-train ")[2].partition("`")[0]
    assert bad in hpc(*fix.split()).out
    assert "no best model that is whole\n" in hpc("checkpoints", "digits").err
    assert "  best  " not in hpc("status", "digits").out


def test_of_two_metrics_the_one_whose_model_is_torn_is_not_left_out(hpc, run) -> None:
    """Else that of the other metric would be taken, without a word."""
    save(run, cut)
    (by_f1,) = save(run, whole, monitor="f1")
    said = hpc("checkpoints", "digits", "--best")
    assert (said.code, "saved by acc, f1" in said.err) == (2, True)
    assert hpc("checkpoints", "digits", "--monitor", "f1").out == f"{by_f1}\n"
    assert hpc("checkpoints", "digits", "--monitor", "f1").err == ""
    assert hpc("checkpoints", "digits", "--monitor", "acc").code == 1


def test_without_a_metric_the_newest_that_is_whole_is_shown(hpc, run) -> None:
    good, bad = save(run, whole, cut, monitor="")
    shown = hpc("status", "digits").out
    assert f"  newest     step 1  {good}\n" in shown
    assert f"  not whole  step 2  {bad}: its end is missing\n" in shown
    assert f"the newest one: {good}" in hpc("checkpoints", "digits", "--best").err


def test_python_is_warned(run) -> None:
    _, good, bad = save(run, whole, whole, cut)
    found = hpc_train.Run(run)
    with pytest.warns(HpcTrainNote, match=f"{Path(bad).name} .* is better, and passed"):
        assert found.best_model().path == good


def test_of_what_torch_does_not_write_so_nothing_is_said(hpc, run) -> None:
    """Shards are a folder; pickles of torch before 1.6 and a plugin's own formats are no zip."""

    def shards(path: Path) -> Path:
        (path / "inner").mkdir(parents=True)
        return path

    def pickled(path: Path) -> Path:
        path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9c")
        return path

    def tensors(path: Path) -> Path:
        path.write_bytes((8).to_bytes(8, "little") + b"{}      ")
        return path

    def commented(path: Path) -> Path:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a/data.pkl", b"w")
            archive.comment = b"x" * 5000
        return path

    made = save(run, shards, pickled, tensors, commented, whole)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hpc_train.Run(run).best_model().path == made[-1]
    models = read_models(run)
    assert [it.why_torn for it in models] == [""] * 5
    assert without_torn(models) == (models, [])
    assert SavedModel(path="s3://models/a.ckpt", step=1, epoch=0).why_torn == ""
