"""A run or a sweep that is moved while its job waits, and a log that its node cannot open."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import types
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm
from tests.cli.run_of_yesterday import project
from tests.cli.test_waiting_jobs import shown, trained

__all__ = ["project"]


@pytest.fixture
def waiting(hpc, slurm: Slurm, project: Path) -> RunDir:
    """A run whose job 7 waits."""
    said = hpc("submit", "cfg.yaml", "--json")
    assert said.code == 0, said
    return RunDir(Path(json.loads(said.out)["run_dir"]))


@pytest.fixture
def moved(waiting: RunDir, tmp_path: Path) -> RunDir:
    """The same in another folder."""
    there = tmp_path / "my archive" / "x" / waiting.run_id
    there.parent.mkdir(parents=True)
    waiting.path.rename(there)
    return RunDir(there)


def failed(hpc, slurm: Slurm, run: RunDir, why: str = "JobLaunchFailure") -> str:
    """The status of a run whose job could not be launched, as one line."""
    slurm.says(f"7|FAILED|{why}|N/A|N/A")
    return " ".join(hpc("status", str(run.path)).out.split())


def test_while_the_job_waits_it_is_told_that_it_will_not_find_its_run(
    hpc, slurm, waiting, moved
) -> None:
    said = shown(hpc, slurm, moved, "Priority")
    assert "pending: Priority (other jobs are in front of it) moved from" in said
    assert f" moved from {waiting.path}, where its job looks for the run: the job fails" in said
    assert f" or hpc-train cancel '{moved.path}'; hpc-train resume '{moved.path}' run " in said
    short = "other jobs are in front of it; its folder was moved: `hpc-train status` says more"
    assert short in hpc("list", "--runs-dir", str(moved.path.parent.parent)).out
    resumed = hpc("resume", str(moved.path)).err
    told = f"the run was moved from {waiting.path} to {moved.path}, and its job looks for it"
    assert f"is pending as job 7; {told} where it was\n" in resumed
    assert "fix: the job fails when it starts, unless it is moved back" in resumed
    back = said[said.index("mkdir -p ") : said.index(" or hpc-train cancel")]
    subprocess.run(back, shell=True, check=True)
    assert "was moved" not in shown(hpc, slurm, waiting, "Priority")


def test_one_that_was_resumed_where_it_is_now_waits_there(
    hpc, slurm: Slurm, waiting: RunDir, moved: RunDir
) -> None:
    """It was told that its new job fails, with a command that would have ended it."""
    slurm.says("7|CANCELLED|None|N/A|N/A")
    slurm.has("sbatch", "echo Submitted batch job 8")
    assert hpc("resume", str(moved.path), "slurm.time=0:30:00").code == 0
    slurm.says("8|PENDING|Priority|N/A|N/A")
    assert "moved" not in hpc("status", str(moved.path)).out
    again = moved.path.with_name("other") / moved.run_id
    again.parent.mkdir()
    moved.path.rename(again)
    said = " ".join(hpc("status", str(again)).out.split())
    assert f"moved from {moved.path}, where its job looks for the run" in said


@pytest.mark.parametrize("command", ["status", "diagnose", "resume", "logs"])
def test_one_that_was_moved_is_found_by_the_name_that_it_had(
    hpc, slurm: Slurm, waiting: RunDir, command: str
) -> None:
    """`scancel` was all that was told of it."""
    old = waiting.path.parent.with_name("x-old")
    waiting.path.parent.rename(old)
    jobs = f"7|{waiting.submitit}/.submission_file_ab.sh"
    row = "7|PENDING|Priority|N/A|N/A"
    slurm.has("squeue", f"case $* in *%o*) echo '{jobs}';; *) echo '{row}';; esac")
    by_id, by_name = hpc(command, waiting.run_id), hpc(command, "x")
    note = f"note: no run answers to 'x': {waiting.path} was moved to {old / waiting.run_id}\n"
    assert by_name.err.removeprefix(note) == by_id.err
    assert (by_name.out, by_name.code) == (by_id.out, by_id.code)
    if command == "status":
        assert "where its job looks for the run" in by_id.out
    assert "scancel" not in by_name.err + by_name.out


@pytest.mark.parametrize("command", ["status", "diagnose", "resume", "logs"])
@pytest.mark.parametrize("by", ["name", "id"])
def test_a_run_that_was_removed_is_told_by_name_and_id_as_by_its_job(
    hpc, slurm: Slurm, waiting: RunDir, command: str, by: str
) -> None:
    shutil.rmtree(waiting.path)
    script = waiting.submitit / ".submission_file_ab.sh"
    slurm.has("squeue", f"case $* in *--states=all*%o*) echo '7|{script}';; esac")
    details = f"JobId=7 JobState=FAILED ExitCode=10:0 UserId=me({os.getuid()}) Command={script}"
    slurm.has("scontrol", f"echo '{details} WorkDir=/'")
    said = hpc(command, "x" if by == "name" else waiting.run_id)
    what = f"error: 7 was the run x ({waiting.run_id}), whose folder is gone ({waiting.path})"
    assert said.err.splitlines()[0] == f"{what}; it ended: FAILED (exit code 10)"
    assert said.code == 5
    assert "no run answers to 'y'" in hpc(command, "y").err


def test_one_that_was_moved_before_its_job_ended_is_named_where_it_is(
    hpc, slurm: Slurm, waiting: RunDir
) -> None:
    old = waiting.path.parent.with_name("x-old")
    waiting.path.parent.rename(old)
    script = waiting.submitit / ".submission_file_ab.sh"
    slurm.has("squeue", f"case $* in *--states=all*%o*) echo '7|{script}';; esac")
    details = f"JobId=7 JobState=FAILED ExitCode=10:0 UserId=me({os.getuid()}) Command={script}"
    slurm.has("scontrol", f"echo '{details} WorkDir=/'")
    said = hpc("status", "x").err.splitlines()
    now = old / waiting.run_id
    assert said[0].endswith(f", whose folder was moved to {now}; it ended: FAILED (exit code 10)")
    assert said[1] == f"  fix: hpc-train status {waiting.run_id}"


def test_a_project_that_was_renamed_as_a_whole_is_told_and_goes_on_there(
    hpc, slurm: Slurm, project: Path, tmp_path: Path, monkeypatch
) -> None:
    """Of the folder that was made, no parent is left but that of the project."""
    before, now = tmp_path / "wine", tmp_path / "wine 2"
    before.mkdir()
    for part in [*project.glob("*.py"), project / "cfg.yaml"]:
        shutil.copy(part, before)
    monkeypatch.chdir(before)
    made = Path(json.loads(hpc("submit", "cfg.yaml", "runs_dir=runs", "--json").out)["run_dir"])
    before.rename(now)
    monkeypatch.chdir(now)
    here = RunDir(now / made.relative_to(before))
    said = shown(hpc, slurm, here, "Priority")
    assert f" moved from {made}, where its job looks for the run" in said
    said = failed(hpc, slurm, here)
    assert "while its job waited" in said
    assert "do not see" not in said
    resumed = hpc("resume", str(here.path))
    assert resumed.code == 0, resumed.err
    plan = json.loads(here.plan.read_text())
    assert (plan["workdir"], plan["runs_dir"]) == (str(now), str(now / "runs"))


def test_a_copy_and_a_folder_that_is_elsewhere_on_this_machine_are_no_move(
    hpc, slurm, waiting, tmp_path
) -> None:
    copy = RunDir(tmp_path / "copies" / "x" / waiting.run_id)
    shutil.copytree(waiting.path, copy.path)
    assert "was moved" not in shown(hpc, slurm, copy, "Priority")
    plan = json.loads(copy.plan.read_text())
    copy.plan.write_text(json.dumps({**plan, "runs_dir": "/nowhere-here/me/runs"}))
    made = f"/nowhere-here/me/runs/x/{waiting.run_id}"
    copy.script.write_text(copy.script.read_text().replace(str(waiting.path), made))
    assert "was moved" not in shown(hpc, slurm, copy, "Priority")


def test_a_rendered_scripts_log_is_where_it_was_submitted(hpc, slurm, moved, tmp_path) -> None:
    moved.config.unlink()
    assert "was moved" not in shown(hpc, slurm, moved, "Priority")
    moved.job_log("7").symlink_to(tmp_path / "typed" / "slurm-7.out")
    said = failed(hpc, slurm, trained(moved))
    assert f"could not open the job's log in {tmp_path / 'typed'}, which is gone" in said


@pytest.mark.parametrize("why", ["JobLaunchFailure", "RaisedSignal:53(Real-time_signal_19)"])
def test_a_job_that_did_not_find_its_run_says_so_and_the_run_goes_on_where_it_is(
    hpc, slurm, waiting, moved, why
) -> None:
    """It was told of a file system that the nodes do not see, by the new path."""
    said = failed(hpc, slurm, moved, why)
    log = waiting.submitit / "slurm-7.log"
    told = (
        f"the run was moved from {waiting.path} to {moved.path} while its job waited; slurmd could"
        f" not open {log}"
    )
    go_on = f"hpc-train resume '{moved.path}'"
    assert f"the job ended before its training began: {told}; {go_on}" in said
    assert "do not see" not in said
    found = json.loads(hpc("diagnose", str(moved.path), "--json").out)
    assert (found["name"], found["cause"], found["fix"]) == ("moved_in_queue", told, go_on)
    assert hpc("resume", str(moved.path)).code == 0


def test_a_requeued_job_that_did_not_find_its_run_is_not_told_by_its_old_log(
    hpc, slurm, moved
) -> None:
    trained(moved)
    moved.job_log("7").write_text("the words of attempt 0\n")
    said = failed(hpc, slurm, moved)
    assert "the job ended before attempt 1 began: the run was moved from" in said
    assert "the words of attempt 0" not in said
    assert json.loads(hpc("diagnose", str(moved.path), "--json").out)["name"] == "moved_in_queue"


def test_a_folder_that_nodes_have_seen_is_not_told_to_be_unseen(hpc, slurm, waiting) -> None:
    said = failed(hpc, slurm, trained(waiting))
    assert "(Slurm: JobLaunchFailure): slurmd's log on that node says why" in said


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ({"f_bavail": 0}, "whose file system is full (no space left); make room there, and then"),
        ({"f_favail": 0}, "whose file system is full (no inodes left); make room there, and then"),
        ({"f_flag": os.ST_RDONLY}, "which is read-only; once it can be written: hpc-train resume"),
        (
            {"f_files": 0, "f_favail": 0},
            "as a rule that folder is on a file system which the nodes",
        ),
        ({}, "as a rule that folder is on a file system which the nodes do not see"),
    ],
)
def test_a_full_or_a_read_only_folder_is_told_as_that(
    hpc, slurm, waiting, monkeypatch, kept, told
) -> None:
    good = {"f_bavail": 9, "f_files": 9, "f_favail": 9, "f_flag": 0}
    is_there = types.SimpleNamespace(**{**good, **kept})
    monkeypatch.setattr("hpc_train.backends.moved_in_queue.os.statvfs", lambda _: is_there)
    said = failed(hpc, slurm, waiting)
    assert f"could not open the job's log in {waiting.submitit}" in said
    assert told in said
    name = json.loads(hpc("diagnose", str(waiting.path), "--json").out)["name"]
    assert name == ("unseen_folder" if "as a rule" in told else "log_folder")


def test_a_folder_that_is_gone_is_told_as_that_and_a_resume_makes_it(hpc, slurm, waiting) -> None:
    shutil.rmtree(waiting.submitit)
    said = failed(hpc, slurm, waiting)
    assert f"{waiting.submitit}, which is gone; hpc-train resume {waiting.run_id} makes it" in said
    assert hpc("resume", waiting.run_id).code == 0
    assert waiting.submitit.is_dir()


def test_a_sweep_that_was_moved_is_told_by_each_point(hpc, slurm, project, tmp_path) -> None:
    slurm.has("sbatch", "echo 7")
    slurm.has("scontrol", "printf 'MaxArraySize            = 9\\nMaxJobCount = 10000\\n'")
    sweep = ("submit", "cfg.yaml", "name=sw", "--sweep", "model.init_args.lr=0.1,0.2", "--json")
    name = json.loads(hpc(*sweep).out)["sweep"]
    runs, away = tmp_path / "runs" / "sw", tmp_path / "old"
    runs.rename(away)
    moved = f"the sweep was moved from {runs}/{name} to {away}/{name}"
    slurm.says("7_0|PENDING|Priority|N/A|N/A", "7_1|FAILED|JobLaunchFailure|N/A|N/A")
    waits, ended = json.loads(hpc("status", f"{away}/{name}", "--json").out)["points"]
    assert waits["state"] == "pending"
    back = f"move it back (mkdir -p {runs} && mv {away}/{name}* {runs}), and then hpc-train resume"
    began = "the job ended before its training began"
    assert ended["reason"].startswith(f"{began}: {moved} while its job waited; slurmd could not")
    assert f"{runs}/{name}/logs/slurm-7_1.log; {back} {name}" in ended["reason"]
