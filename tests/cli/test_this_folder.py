"""A name means the runs of the folder that one is in; another folder's are changed by id alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.known_places import remember_root
from hpc_train.runs.layout import RunDir

CHANGES = ("cancel", "resume", "rm")


class Projects:
    """Two projects with folders of runs, in the second of which one is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def run(self, project: str, name: str = "net", *, ended: bool, workdir: Path | None = None):
        self.count += 1
        folder = self.folder / project / "runs"
        run = RunDir(folder / name / f"20260101-00000{self.count}-000{self.count}")
        run.attempt(0).path.mkdir(parents=True)
        run.plan.write_text(json.dumps({"workdir": str(workdir or self.folder / project)}))
        run.latest.symlink_to("attempts/0")
        run.attempt(0).rank_log(0).write_text(f"a line of {project}\n")
        self.tell(run, EventKind.SUBMITTED, job_id=str(self.count), backend="slurm")
        if ended:
            self.tell(run, EventKind.RUN_ENDED, attempt=0, state="completed", reason="done")
        remember_root({"XDG_STATE_HOME": str(self.folder / "state")}, folder)
        return run

    @staticmethod
    def tell(run: RunDir, kind: EventKind, **data: object) -> None:
        append_event(run.events, Event(time.time(), kind, data))


@pytest.fixture
def projects(hpc, slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Projects:
    slurm.has("scancel", f'echo "$@" >> {tmp_path}/cancelled')
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Projects(tmp_path)


def test_a_name_is_this_folders_run_though_another_folders_is_newer(
    hpc, projects: Projects
) -> None:
    own = projects.run("here", ended=True)
    other = projects.run("other", ended=False)
    said = hpc("cancel", "net")
    assert (said.code, f"net ({own.run_id}) is already completed" in said.err) == (1, True)
    assert not (projects.folder / "cancelled").exists()
    for word in ("net", "latest", "2026"):
        assert hpc("logs", word).out == "a line of here\n"
        assert own.run_id in hpc("status", word).out
    assert own.run_id in hpc("status").out
    assert own.run_id in hpc("diagnose").out
    assert hpc("rm", "net", "--yes").code == 0
    assert not own.path.exists()
    assert other.path.exists()


def test_the_newest_run_without_a_name_is_told_where_it_is_another_folders(
    hpc, projects: Projects
) -> None:
    other = projects.run("other", ended=True)
    for command in ("status", "diagnose", "report"):
        said = hpc(command)
        note = f"note: this folder has no runs: {other.run_id} is in {projects.folder}/other/runs"
        assert note in said.err, said
    projects.run("here", ended=True)
    assert "this folder has no runs" not in hpc("status").err


@pytest.mark.parametrize("command", CHANGES)
@pytest.mark.parametrize("word", ["net", "latest", "last"])
def test_another_folders_run_is_changed_by_its_id_and_not_by_a_word(
    hpc, projects: Projects, command: str, word: str
) -> None:
    other = projects.run("other", ended=False)
    before = other.events.read_bytes()
    said = hpc(command, word)
    assert said.code == 5
    where = f"{other.run_id} is in {projects.folder}/other/runs"
    assert said.err.splitlines() == [
        f"error: no run of this folder answers to {word!r}; {where}",
        f"  fix: if you mean that one, type its id: {other.run_id}",
    ]
    assert other.events.read_bytes() == before
    assert "no run of this folder" not in hpc(command, other.run_id).err
    named = f"--runs-dir={other.path.parents[1]}"
    assert "no run of this folder" not in hpc(command, word, named).err


def test_an_id_and_a_job_lead_to_a_run_of_any_folder(hpc, projects: Projects) -> None:
    projects.run("here", ended=True)
    other, third = (projects.run("other", ended=False) for _ in range(2))
    assert hpc("cancel", other.run_id).code == 0
    assert hpc("cancel", "3").code == 0
    for run in (other, third):
        kinds = [event.kind for event in read_events(run.events)]
        assert EventKind.CANCEL_REQUESTED in kinds


@pytest.mark.parametrize("command", ["logs", "status", "checkpoints", "diagnose", "report"])
def test_where_only_another_folder_has_the_name_it_is_told(
    hpc, projects: Projects, command: str
) -> None:
    other = projects.run("other", ended=True)
    note = "note: no run of this folder answers to 'net'"
    assert f"{note}: {other.run_id} is in {other.path.parents[1]}" in hpc(command, "net").err
    assert "note" not in hpc(command, other.run_id).err


def test_a_run_that_was_submitted_here_is_this_folders_wherever_it_lies(
    hpc, projects: Projects
) -> None:
    here = projects.folder / "here"
    own = projects.run("scratch", ended=False, workdir=here)
    projects.run("scratch", ended=False)
    said = hpc("cancel", "net")
    assert (said.code, own.run_id in said.out) == (0, True)


def test_a_run_with_a_copy_of_the_code_is_of_the_project_that_was_copied(
    hpc, projects: Projects
) -> None:
    own = projects.run("scratch", ended=False, workdir=Path("/copy"))
    copied = {"project": str(projects.folder), "prefix": "here", "names": []}
    (own.path / "snapshot.json").write_text(json.dumps(copied))
    assert hpc("cancel", "net").code == 0


def test_a_pattern_removes_the_runs_of_this_folder_alone(hpc, projects: Projects) -> None:
    other = projects.run("other", ended=True)
    refused = hpc("rm", "*", "--yes")
    assert (refused.code, f"type its id: {other.run_id}" in refused.err) == (5, True)
    own = projects.run("here", ended=True)
    assert hpc("rm", "*", "--yes").code == 0
    assert (own.path.exists(), other.path.exists()) == (False, True)


def test_a_state_that_slurm_did_not_confirm_is_told_as_such(hpc, slurm, projects: Projects) -> None:
    slurm.has("squeue", "exit 1")
    projects.run("here", ended=False)
    said = hpc("resume", "net").err
    assert "is pending as job 1 by its files, and Slurm does not answer" in said
    projects.run("here", ended=False)
    assert "(pending, job 1; Slurm does not answer)" in hpc("cancel", "net").err


def test_a_folder_of_runs_that_is_gone_is_named(
    hpc, projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = projects.folder / "gone"
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", str(gone))
    for command in ("status", "report", "diagnose", "list"):
        said = hpc(command).err
        assert f"no runs in {gone} (HPC_TRAIN_RUNS_DIR), which does not exist" in said
        fix = f"unset HPC_TRAIN_RUNS_DIR, or submit with runs_dir={gone}\n"
        assert (fix in said) == (command != "diagnose")  # which reads a log as well


@pytest.mark.parametrize("command", CHANGES)
def test_of_several_runs_of_another_folder_the_newest_is_named_as_the_newest(
    hpc, projects: Projects, command: str
) -> None:
    runs = [projects.run("other", ended=False) for _ in range(3)]
    said = hpc(command, "net")
    assert said.code == 5
    newest = max(run.run_id for run in runs)
    fix = "  fix: if you mean one of them, type its id; the newest is: "
    assert said.err.splitlines()[1] == fix + newest


@pytest.mark.parametrize("word", ["runs/net", "runs/net/", "./runs/net"])
def test_the_folder_of_a_name_as_tab_completes_it_means_its_newest_run(
    hpc, projects: Projects, word: str
) -> None:
    projects.run("here", ended=True)
    newest = projects.run("here", ended=True)
    projects.run("here", "another", ended=True)
    assert newest.run_id in hpc("status", word).out
    assert hpc("logs", word).out == "a line of here\n"
    missing = hpc("status", "runs/nets")
    assert missing.code == 5
    assert "no run answers to 'runs/nets'" in missing.err


@pytest.mark.parametrize("command", CHANGES)
def test_the_beginning_of_several_ids_changes_none_of_them(
    hpc, projects: Projects, command: str
) -> None:
    runs = [projects.run("here", f"net{n}", ended=n != 1) for n in range(3)]
    before = [run.events.read_bytes() for run in runs]
    said = hpc(command, "20260101")
    ids = ", ".join(run.run_id for run in reversed(runs))
    assert (said.code, said.err.splitlines()) == (
        2,
        [
            f"error: 3 runs have ids with 20260101: {ids}",
            "  fix: type the whole id of the one that is meant",
        ],
    )
    assert [run.events.read_bytes() for run in runs] == before
    for one in (runs[1].run_id[:-1], runs[1].run_id.rpartition("-")[2]):
        assert "have ids with" not in hpc(command, one).err


def test_the_beginning_of_an_id_is_told_with_its_run_and_folder(hpc, projects: Projects) -> None:
    projects.run("other", ended=True)
    other = projects.run("other", ended=True)
    for command in ("logs", "status"):
        notes = [it for it in hpc(command, "20260101").err.splitlines() if "note" in it]
        assert notes == [
            f"note: 2 runs have ids with 20260101; the newest is {other.run_id} (net)",
            f"note: {other.run_id} is in {other.path.parents[1]}",
        ]
    own = projects.run("here", ended=True)
    assert "note" not in hpc("logs", own.run_id[:-1]).err
    assert "note" not in hpc("logs", own.run_id).err


def test_a_config_in_the_place_of_run_does_not_mean_another_folders_run(
    hpc, projects: Projects
) -> None:
    Path("net.yaml").write_text("name: net\n")
    other = projects.run("other", ended=True)
    there = f"{other.run_id}, of that name, is in {projects.folder}/other/runs"
    first = "first hpc-train run net.yaml, or hpc-train submit net.yaml"
    for command in ("test", "logs", "resume", "status", "cancel", "diagnose"):
        said = hpc(command, "net.yaml")
        fix = f"that is a config, and no run of this folder has its name, net: {first}; {there}"
        assert said.err.splitlines()[1:] == [f"  fix: {fix}"], said
    own = projects.run("elsewhere", ended=True, workdir=projects.folder / "here")
    fix = f"that is a config: for RUN write net (its newest run: {own.run_id})"
    assert hpc("logs", "net.yaml").err.splitlines()[1] == f"  fix: {fix}"


@pytest.mark.parametrize("command", ["logs", "status", "checkpoints", "diagnose", "report"])
@pytest.mark.parametrize("script", ["submitit/.submission_file_ab.sh", "job.sbatch"])
def test_a_job_of_this_folder_whose_run_is_removed_is_told_before_another_folders_run(
    hpc, slurm, projects: Projects, command: str, script: str
) -> None:
    """`cancel` told of it, and `status` showed a finished run of elsewhere."""
    other = projects.run("other", ended=True)
    gone = projects.folder / "here" / "runs" / "net" / "20260101-000000-beef" / script
    slurm.says(f"9|{gone}")
    for word in (command, "cancel"):
        said = hpc(word, "net")
        assert said.code == 5, said
        assert said.err.splitlines() == [
            f"error: job 9 is alive, but its run's folder is gone ({gone})",
            "  fix: scancel 9",
        ]
    assert hpc(command, other.run_id).code == 0
    note = f"note: no run of this folder answers to 'net': {other.run_id} is in"
    slurm.says(f"9|{projects.folder}/third/runs/net/20260101-000000-beef/{script}")
    assert note in hpc(command, "net").err
    slurm.says(f"9|{gone}".replace("/net/", "/nets/"))
    assert note in hpc(command, "net").err
