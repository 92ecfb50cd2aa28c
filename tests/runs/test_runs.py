"""Runs are made once, private, and found again by whatever a person remembers of them."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError, HpcTrainError, NoSuchRunError
from hpc_train.runs.atomic import write_text
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.known_places import remember_root, roots
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lock import held_lock, is_held
from hpc_train.runs.ownership import owner_of
from hpc_train.runs.registry import create_run, find_run, matching_runs, new_run_id, none_in


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    for number, name in enumerate(["alpha", "alpha", "beta"]):
        run = create_run(tmp_path / "runs", name, f"2026112{number}-000000-ab{number}", {})
        write_text(run.plan, "{}")
        append_event(run.events, Event(1.0, EventKind.SUBMITTED, {"job_id": str(100 + number)}))
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("reference", "run_id"),
    [
        ("20261120-000000-ab0", "20261120-000000-ab0"),
        ("beta", "20261122-000000-ab2"),
        ("alpha", "20261121-000000-ab1"),
        ("100", "20261120-000000-ab0"),
        ("20261122", "20261122-000000-ab2"),
    ],
)
def test_a_run_is_found_by_id_name_job_and_beginning(
    runs_dir: Path, reference: str, run_id: str
) -> None:
    assert find_run(reference, [runs_dir]).run_id == run_id


def test_a_run_is_found_by_its_folder(runs_dir: Path) -> None:
    folder = runs_dir / "beta" / "20261122-000000-ab2"
    assert find_run(str(folder), []).path == folder


def test_an_unknown_run_names_the_nearest(runs_dir: Path) -> None:
    with pytest.raises(NoSuchRunError) as caught:
        find_run("aplha", [runs_dir])
    assert "did you mean 'alpha'" in caught.value.hint
    assert caught.value.exit_code == 5


def test_of_many_folders_of_runs_three_are_named(tmp_path: Path) -> None:
    many = [tmp_path / str(number) for number in range(30)]
    with pytest.raises(NoSuchRunError) as caught:
        find_run("nope", many)
    assert f"looked in {many[0]}, {many[1]}, {many[2]} and 27 more; " in caught.value.hint


def test_a_run_that_one_may_not_read_is_not_told_to_be_none() -> None:
    folder = Path(tempfile.mkdtemp())  # root, too, may look into each: another user does here
    try:
        folder.chmod(0o755)
        run = create_run(folder, "theirs", "20261118-100000-0000", {"plan.json": "{}"})
        if os.getuid():
            run.path.chmod(0)
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                if not os.getuid():
                    os.setuid(65534)
                for reference in ("theirs", run.run_id, str(run.path), str(run.path.parent / "*")):
                    try:
                        find_run(reference, [folder])
                    except NoSuchRunError as error:
                        os.write(write, f"{error.message}\n".encode())
                os.write(write, f"{none_in([folder])[0]}\n".encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as said:
            told = said.read().splitlines()
        os.waitpid(child, 0)
        assert told[:3] == [f"{run.path}: you may not read that"] * 3
        assert "no run answers to" in told[3]
        owner = owner_of(run.path)
        assert told[4] == f"1 run in {folder}, of {owner}, that you may not read"
    finally:
        (folder / "theirs" / "20261118-100000-0000").chmod(0o700)
        shutil.rmtree(folder)


def test_a_run_directory_is_private_and_never_overwritten(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", "one", {"plan.json": "{}"})
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o700
    with pytest.raises(ConfigError, match="runs_dir"):
        create_run(tmp_path, "a", "one", {})


def test_a_runs_dir_that_cannot_be_made_names_the_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"runs_dir: cannot write .*file") as caught:
        create_run(tmp_path / "file", "a", "one", {})
    assert "runs_dir=/path" in caught.value.hint


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    write_text(target, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(target, "\ud800")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_roots_remember_where_runs_were_made(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    (tmp_path / "scratch").mkdir()
    remember_root(environ, tmp_path / "scratch")
    remember_root(environ, tmp_path / "scratch")
    assert roots(environ, tmp_path) == [tmp_path / "scratch"]
    named = {**environ, "HPC_TRAIN_RUNS_DIR": str(tmp_path)}
    assert roots(named, tmp_path) == [tmp_path]


def test_ids_sort_by_time() -> None:
    assert new_run_id(1_000_000) < new_run_id(2_000_000)


def test_a_second_supervisor_is_told_who_has_the_run(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    assert not is_held(path)
    with held_lock(path, "job 7"):
        assert is_held(path)
        with (
            pytest.raises(HpcTrainError, match="already being trained by job 7"),
            held_lock(path, "job 8"),
        ):
            pass
    assert not is_held(path)


def test_a_notebook_shows_a_run_as_status_does(runs_dir: Path) -> None:
    found = api.Run.find("beta", runs_dir)
    begun = {"attempt": 0, "job_id": "102", "nodes": ["n1"]}
    append_event(found.directory.events, Event(2.0, EventKind.ATTEMPT_STARTED, begun))
    ended = {"state": "failed", "reason": "rank 0: ValueError: a < b"}
    append_event(found.directory.events, Event(9.0, EventKind.RUN_ENDED, ended))
    html = found._repr_html_()
    head, *lines = html.removeprefix("<pre>").removesuffix("</pre>").split("\n")
    assert '<b>beta  <span style="color:red">failed</span></b>' in head
    assert "ValueError: a &lt; b" in head
    assert f"  folder     {found.directory.path}" in lines
    assert any(line.startswith("  attempt 0  ") for line in lines)
    append_event(found.directory.events, Event(10.0, EventKind.SUBMITTED, {"job_id": "103"}))
    assert "failed" not in found._repr_html_(), "it is looked at anew each time"


@pytest.mark.parametrize(
    ("word", "found"),
    [("11_1", ["one"]), ("11_0", ["zero"]), ("11", ["one", "zero"]), ("12", ["alone"]), ("1", [])],
)
def test_a_task_of_an_array_is_found_by_its_job_as_list_shows_it(
    tmp_path: Path, word: str, found: list[str]
) -> None:
    """As of `sbatch --array` over a rendered script."""
    for at, (name, job) in enumerate([("zero", "11_0"), ("one", "11_1"), ("alone", "12")]):
        run = RunDir(tmp_path / "x" / f"20261121-08044{at}-{name}")
        run.path.mkdir(parents=True)
        run.plan.write_text("{}")
        append_event(run.events, Event(at, EventKind.SUBMITTED, {"job_id": job}))
    if not found:
        with pytest.raises(NoSuchRunError):
            matching_runs(word, [tmp_path])
        return
    ids = [run.run_id.rpartition("-")[2] for run in matching_runs(word, [tmp_path])]
    assert ids == found
