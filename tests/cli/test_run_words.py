"""Runs where no id leads to them: what is printed to be typed next names their folder."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from tests.cli.run_of_yesterday import ended, project, refused, run, saved, sweep

__all__ = ["project", "run", "sweep"]

NEXT = re.compile(r"hpc-train (?:diagnose|resume|status|checkpoints|logs|cancel) .+")


@pytest.fixture
def moved(run: RunDir, tmp_path: Path) -> RunDir:
    """One in a folder that no run was made in, whose name has a space."""
    to = RunDir(tmp_path / "old runs" / "x" / run.run_id)
    to.path.parent.mkdir(parents=True)
    run.path.rename(to.path)
    return to


def told(said) -> list[list[str]]:
    """The commands that were printed, as the words that a shell makes of them."""
    lines = f"{said.out}\n{said.err}".splitlines()
    found = [NEXT.search(re.split(r" (?:shows|first|goes|reads)\b|; |`", it)[0]) for it in lines]
    return [shlex.split(it[0])[1:] for it in found if it]


def test_what_status_prints_of_a_moved_run_works_when_it_is_typed(hpc, moved: RunDir) -> None:
    ended(moved, "failed")
    shown = told(hpc("status", str(moved.path)))
    assert [words[0] for words in shown] == ["diagnose", "resume"]
    for words in shown:
        assert words[1] == str(moved.path)
        said = hpc(*words)
        assert "no run answers" not in said.err, said


def test_one_that_runs_dir_has_led_to_is_told_by_its_folder_until_it_goes_on(
    hpc, moved: RunDir
) -> None:
    """A submission remembers the place."""
    here = ("--runs-dir", "old runs")
    assert f"hpc-train resume '{moved.path}'\n" in hpc("status", "x", *here).out
    assert f"watch      hpc-train status {moved.run_id}\n" in hpc("resume", "x", *here).out
    ended(moved, "cancelled")
    assert f"hpc-train resume {moved.run_id}\n" in hpc("status", moved.run_id).out


def test_where_the_variable_names_the_place_the_id_is_enough(
    hpc, moved: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", "old runs")
    assert run_word(moved.path) == moved.run_id
    assert f"hpc-train resume {moved.run_id}" in hpc("status", "x").out


def test_a_run_in_its_place_is_told_by_its_id(hpc, run: RunDir, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "runs")
    for word in ("x", run.run_id, str(run.path), str(link / "x" / run.run_id)):
        assert f"hpc-train resume {run.run_id}\n" in hpc("status", word).out
    assert run_word(run.path.with_name("gone")) == "gone"


def test_a_checkpoint_of_a_moved_run_names_the_folder_of_its_run(hpc, moved: RunDir) -> None:
    state = moved.checkpoints / "step-000000012"
    fix = f"write its run, '{moved.path}'; a run goes on from its newest"
    refused(hpc, f"resume '{state}'", "no run answers to", fix)


@pytest.mark.parametrize("word", ["old runs/x", "old runs/x/", "{}/old runs/x"])
def test_the_folder_of_a_name_means_its_newest_run_wherever_it_lies(
    hpc, moved: RunDir, tmp_path: Path, word: str
) -> None:
    """It was looked for among the known places alone."""
    typed = word.format(tmp_path)
    assert f"folder     {moved.path}\n" in hpc("status", typed).out
    newer = moved.path.with_name("20991231-000000-abcd")
    shutil.copytree(moved.path, newer, symlinks=True)
    assert f"folder     {newer}\n" in hpc("status", typed).out
    said = hpc("resume", typed, "--dry-run")
    assert f"2 runs are named x, and this is the newest, {newer.name}" in said.err


def test_the_folder_of_a_name_is_taken_where_one_stands_above_it(
    hpc, moved: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(moved.path.parent.parent)
    assert f"folder     {moved.path}\n" in hpc("status", "x").out
    monkeypatch.chdir(moved.path.parent)
    assert f"folder     {moved.path}\n" in hpc("status", ".").out


def test_a_folder_of_several_names_is_told_with_what_lists_it(hpc, moved: RunDir) -> None:
    shown = "name the folder of one; `hpc-train list --runs-dir 'old runs'` shows them"
    refused(hpc, "status 'old runs'", "no run answers to 'old runs'", shown)
    assert moved.run_id in hpc("list", "--runs-dir", "old runs").out


def test_a_moved_folder_of_a_name_is_not_removed_as_a_whole(hpc, moved: RunDir) -> None:
    fix = f"name one by its folder: '{moved.path}'"
    refused(hpc, "rm 'old runs/x'", "which holds runs of x", fix)
    assert moved.path.is_dir()
    assert hpc("rm", str(moved.path), "--yes").code == 0
    assert not moved.path.exists()


def test_the_points_of_a_moved_sweep_are_told_by_their_folders(
    hpc, sweep: str, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "runs" / "sw" / f"{sweep}-1")  # no command has named it yet
    ended(RunDir(tmp_path / "runs" / "sw" / f"{sweep}-0"), "completed")
    (tmp_path / "old").mkdir()
    (tmp_path / "runs" / "sw").rename(tmp_path / "old" / "sw")
    there = tmp_path / "old" / "sw" / sweep
    assert hpc("status", f"{there}-1").code == 0
    ended(RunDir(Path(f"{there}-1")), "cancelled")
    fix = f"resume one point: hpc-train resume {there}-1 --dry-run"
    refused(hpc, f"resume {there} --dry-run", "of which resume takes the point 1", fix)
    said = hpc("resume", f"{there}-1", "--dry-run")
    assert said.code == 0, said
    for word in ("old/sw", str(there.parent)):
        assert f"sweep {sweep}" in hpc("status", word).out
    assert "which holds runs of sw" in hpc("rm", "old/sw").err


def test_a_run_after_the_sweeps_of_a_folder_is_what_the_folder_means(
    hpc, run: RunDir, sweep: str, tmp_path: Path
) -> None:
    newer = tmp_path / "runs" / "sw" / time.strftime("2099%m%d-%H%M%S-abcd")
    shutil.copytree(run.path, newer, symlinks=True)
    assert f"folder     {newer}\n" in hpc("status", "runs/sw").out
    shutil.rmtree(newer)
    assert f"sweep {sweep}" in hpc("status", "runs/sw").out


def test_a_saved_run_that_was_moved_gives_its_weights(hpc, moved: RunDir) -> None:
    saved(moved, 24)
    typed = f"resume '{moved.path}' seed=4"
    fix = refused(hpc, typed, "seed", "as a run of its own")
    assert f"init_from='{moved.path}'" in fix
