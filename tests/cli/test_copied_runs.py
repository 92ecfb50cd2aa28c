"""A run's folder that was copied (`cp -r`), beside the run itself: which one a word means."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from hpc_train.runs.copies import copied_from
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm
from tests.cli.run_of_yesterday import ended, project, refused, saved

__all__ = ["project"]


@pytest.fixture
def run(hpc, slurm: Slurm, project: Path) -> RunDir:
    """A run whose job trains, as Slurm says, with a checkpoint."""
    slurm.has("scancel", f'echo "$@" >> {slurm.folder}/cancelled')
    said = hpc("submit", "cfg.yaml", "--json")
    assert said.code == 0, said
    document = json.loads(said.out)
    slurm.says(f"{document['job_id']}|RUNNING|None|N/A")
    made = RunDir(Path(document["run_dir"]))
    saved(made, 12)
    return made


PLACES = ("x/{id}-bak", "x/copy", "x-bak/{id}")


def copy_of(run: RunDir, place: str) -> RunDir:
    path = run.path.parent.parent / place.format(id=run.run_id)
    shutil.copytree(run.path, path, symlinks=True)
    os.utime(path / "plan.json", (time.time() + 100,) * 2)
    return RunDir(path)


def states(hpc) -> list[tuple[str, str]]:
    rows = json.loads(hpc("list", "--json").out)["runs"]
    return [(row["run_dir"], row["state"]) for row in rows]


@pytest.mark.parametrize("place", PLACES)
def test_a_name_an_id_and_the_newest_mean_the_run_itself_and_not_its_copy(
    hpc, run: RunDir, place: str
) -> None:
    copy = copy_of(run, place)
    assert copied_from(copy) == run.path
    assert copied_from(run) is None
    for words in (["status"], ["status", "x"], ["status", run.run_id], ["status", "latest"]):
        assert f"folder     {run.path}\n" in hpc(*words).out
    assert f"folder     {copy.path}\n" in hpc("status", str(copy.path)).out
    assert states(hpc) == [(str(run.path), "running"), (str(copy.path), "lost")]


@pytest.mark.parametrize("place", PLACES)
def test_a_copy_of_a_run_that_trains_has_no_job_and_says_how_it_goes_on(
    hpc, slurm: Slurm, run: RunDir, place: str
) -> None:
    copy = copy_of(run, place)
    said = " ".join(hpc("status", str(copy.path)).out.split())
    assert f"lost: a copy of {run.path}, whose job goes on there" in said
    assert f"hpc-train resume {copy.path} goes on here by itself" in said
    word = copy.path if copy.run_id == run.run_id else copy.run_id
    assert said.endswith(f"why hpc-train diagnose {word} go on hpc-train resume {word}")
    refused(hpc, f"cancel {copy.path}", f"is a copy of {run.path}, ", f"cancel {run.path}")
    assert not (slurm.folder / "cancelled").exists()
    assert hpc("cancel", "x").code == 0
    assert (slurm.folder / "cancelled").exists()


@pytest.mark.parametrize("place", PLACES)
def test_a_copy_that_is_resumed_is_a_run_of_its_own(hpc, run: RunDir, place: str) -> None:
    copy = copy_of(ended(run, "cancelled"), place)
    said = hpc("resume", str(copy.path))
    assert said.code == 0, said
    assert f"note: this is a copy of {run.path}, and goes on in {copy.path}" in said.err
    assert copied_from(copy) is None
    assert "a copy of" not in hpc("status", str(copy.path)).out
    assert hpc("cancel", str(copy.path)).code == 0


@pytest.mark.parametrize("place", [*PLACES, "elsewhere/{id}"])
@pytest.mark.parametrize("ends", ["before", "after"])
def test_words_mean_the_run_itself_also_after_its_copy_was_resumed(
    hpc, slurm: Slurm, run: RunDir, place: str, ends: str
) -> None:
    """A copy has the id, the older jobs and maybe the name of the run."""
    if ends == "before":
        ended(run, "cancelled")
    copy = copy_of(run, place)
    slurm.has("sbatch", "echo Submitted batch job 70")
    assert hpc("resume", str(copy.path)).code == 0
    slurm.says("7|RUNNING|None|N/A\n70|RUNNING|None|N/A")
    for word in ("x", run.run_id, run.run_id[-4:], "7", "latest"):
        assert f"folder     {run.path}\n" in hpc("status", word).out, word
    for word in (str(copy.path), "70", copy.name if copy.name != "x" else copy.run_id):
        assert f"folder     {copy.path}\n" in hpc("status", word).out, word
    state = "cancelled" if ends == "before" else "running"
    assert states(hpc) == [(str(run.path), state), (str(copy.path), "running")]
    if ends == "before":
        refused(hpc, f"cancel {run.run_id}", f"x ({run.run_id}) is already cancelled", "list")
        assert hpc("resume", run.run_id, "--dry-run").code == 0
    else:
        assert hpc("cancel", run.run_id).code == 0
        assert (slurm.folder / "cancelled").read_text().split()[-1] == "7"


def test_what_is_typed_next_for_a_resumed_copy_names_its_folder(hpc, run: RunDir) -> None:
    copy = copy_of(ended(run, "cancelled"), "x-bak/{id}")
    said = hpc("resume", str(copy.path))
    assert f"hpc-train status {copy.path}\n" in said.out
    ended(copy, "cancelled")
    assert f"go on      hpc-train resume {copy.path}\n" in hpc("status", "x-bak").out
    assert f"go on      hpc-train resume {run.run_id}\n" in hpc("status", "x").out
    again = copy_of(copy, "x-bak-2/{id}")  # a copy of the copy
    assert hpc("resume", str(again.path)).code == 0
    assert f"folder     {run.path}\n" in hpc("status", run.run_id).out
    shutil.rmtree(copy.path)
    assert f"folder     {run.path}\n" in hpc("status", run.run_id).out
    shutil.rmtree(run.path)  # nothing else has the id now
    assert f"folder     {again.path}\n" in hpc("status", run.run_id).out
    assert "a copy of" not in hpc("status", run.run_id).out


def test_a_copy_can_be_removed_and_the_run_stays(hpc, run: RunDir) -> None:
    copy = copy_of(run, "x-bak/{id}")
    fix = refused(hpc, f"rm {run.run_id}", f"2 runs are named {run.run_id}: {run.path}, ", "folder")
    assert f"hpc-train rm {copy.path}" in fix
    assert hpc("rm", str(copy.path), "--yes").code == 0
    assert (copy.path.exists(), run.plan.exists()) == (False, True)


def test_what_was_moved_copied_without_the_run_or_made_anew_there_is_no_copy(
    hpc, run: RunDir, tmp_path: Path
) -> None:
    moved = RunDir(tmp_path / "runs" / "y" / run.run_id)
    moved.path.parent.mkdir()
    shutil.copytree(run.path, moved.path, symlinks=True)
    shutil.rmtree(run.path)
    assert copied_from(moved) is None
    run.path.mkdir()
    assert copied_from(moved) is None
    run.events.write_text('{"time": 1.0, "event": "submitted", "job_id": "9"}\n')
    assert copied_from(moved) is None
    ended(moved, "cancelled")
    assert "was moved from" in hpc("resume", str(moved.path), "--dry-run").err
    moved.script.write_text("no word of a folder, as of another version\n")
    assert copied_from(moved) is None
    moved.script.unlink()
    assert copied_from(moved) is None
    (tmp_path / "link").symlink_to(moved.path)
    assert copied_from(RunDir(tmp_path / "link")) is None


def test_a_copy_beside_the_names_is_meant_by_its_folder_and_moved_to_its_name(
    hpc, slurm: Slurm, run: RunDir
) -> None:
    """`did you mean 'x'?` would have trained the original."""
    copy = copy_of(run, "copy")
    message = "no run answers to 'copy'"
    moves = "mv runs/copy runs/x/ puts it beside the others of its name, x"
    for command in ("resume", "status", "test"):
        refused(hpc, f"{command} copy", message, f"fix: type its folder, runs/copy; {moves}")
    said = hpc("resume", "runs/copy", "--dry-run")
    assert (said.code, f"note: `list` names it runs there: {moves}\n" in said.err) == (0, True)
    copy.path.rename(run.path.parent / "copy")
    said = hpc("resume", "copy", "--dry-run")
    assert (said.code, "puts it beside" in said.err) == (0, False)
    rows = json.loads(hpc("list", "--json", "--runs-dir", "runs").out)["runs"]
    assert [(row["name"], row["run"]) for row in rows] == [("x", run.run_id), ("x", "copy")]


def test_the_copy_of_a_name_that_is_not_there_is_left_where_it_is(hpc, run: RunDir) -> None:
    (run.path.parent.parent / "kept").mkdir()
    moved = RunDir(run.path.parent.parent / "kept" / run.run_id)
    ended(run, "cancelled")
    run.path.rename(moved.path)
    said = hpc("resume", str(moved.path), "--dry-run")
    assert (said.code, "puts it beside" in said.err) == (0, False), said
