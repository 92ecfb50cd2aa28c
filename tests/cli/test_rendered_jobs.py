"""A rendered script that was given to sbatch: what its number means before its run is there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm
from tests.cli.test_resume_notes import CONFIG, NETS

COMMANDS = ("status", "logs", "cancel", "diagnose", "resume")


@pytest.fixture
def waits(hpc, taken: Slurm, tmp_path: Path):
    """`waits(STATE, REASON)`: job 45 and array 46 are those of rendered scripts."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    assert hpc("render", "cfg.yaml", "-o", "job.sbatch").code == 0
    assert hpc("render", "cfg.yaml", "--sweep", "seed=1,2", "-o", "sweep.sbatch").code == 0
    taken.says(f"45|{tmp_path}/job.sbatch", f"46_0|{tmp_path}/sweep.sbatch")

    def make(state: str, reason: str, more: str = "Restarts=0") -> None:
        fields = f"JobId=45 JobState={state} Reason={reason} {more} WorkDir={tmp_path}"
        taken.has("scontrol", f"echo '{fields}'")

    return make


@pytest.mark.parametrize("command", COMMANDS)
def test_a_rendered_script_that_waits_is_told_as_that(hpc, waits, command: str) -> None:
    """It said that no run answers to the number."""
    waits("PENDING", "Priority")
    for word, script in (("45", "job"), ("46", "sweep"), ("46_0", "sweep")):
        said = hpc(command, word)
        assert said.code == 5
        what = f"{word} is {script}.sbatch, rendered by hpc-train, and waits: Priority: other jobs"
        assert what in said.err
        assert f"fix: it is a run once it has begun; scancel {word} ends it" in said.err
    assert "no run answers to '47'" in hpc(command, "47").err


@pytest.mark.parametrize(
    ("reason", "more", "told", "fix"),
    [
        (
            "PartitionTimeLimit",
            "",
            "slurm.time is longer than its partition allows\n",
            "scancel 45 ends it; then render it anew with what the cluster allows",
        ),
        (
            "JobHeldUser",
            "",
            "somebody holds the job (scontrol hold)\n",
            "`scontrol release 45` lets it go; scancel 45 ends it",
        ),
        (
            "BeginTime",
            "Restarts=0 StartTime=2031-02-03T04:05:06",
            "not before 2031-02-03 04:05:06\n",
            "it is a run once it has begun",
        ),
        ("None", "", "rendered by hpc-train, and waits\n", "it is a run once it has begun"),
    ],
)
def test_why_it_waits_and_what_lets_it_begin(hpc, waits, reason, more, told, fix) -> None:
    waits("PENDING", reason, more)
    said = hpc("status", "45").err
    assert told in said
    assert f"  fix: {fix}" in said


def test_where_its_run_is_once_it_has_begun(hpc, waits, tmp_path: Path) -> None:
    waits("RUNNING", "None")
    said = hpc("status", "45").err
    assert f"45 is job.sbatch, rendered by hpc-train, and has begun in {tmp_path}\n" in said
    assert f"hpc-train status 45 --runs-dir {tmp_path}/runs; scancel 45 ends it" in said


def test_what_nobody_knows_is_no_rendered_script(hpc, waits, taken: Slurm) -> None:
    waits("PENDING", "Priority")
    taken.has("scontrol", "exit 1")
    assert "no run answers to '45'" in hpc("status", "45").err


OWN = f"UserId=me({os.getuid()})"
WROTE = "reads what it has written"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_rendered_script_that_ended_before_it_was_a_run_is_told_with_its_log(
    hpc, waits, taken: Slurm, tmp_path: Path, command: str
) -> None:
    """As `sbatch job.sbatch --nodes 2`, whose words are the script's."""
    taken.says()
    log = tmp_path / "slurm-45.log"
    log.write_text("hpc-train: error: this script takes no arguments (--nodes 2)\n")
    script = f"Command={tmp_path}/job.sbatch --nodes 2"
    waits("FAILED", "NonZeroExitCode", f"{OWN} ExitCode=2:0 StdOut={log} {script}")
    said = hpc(command, "45").err
    what = "45 is job.sbatch, rendered by hpc-train, and ended: FAILED (exit code 2)"
    assert said == f"error: {what}\n  fix: hpc-train diagnose {log} {WROTE}\n"
    log.unlink()
    gone = f"was to be in {log}, which is not there; scontrol show job 45 tells"
    assert gone in hpc(command, "45").err


def test_a_rendered_script_that_was_submitted_elsewhere_is_told_with_its_run(
    hpc, waits, taken: Slurm, tmp_path: Path, make_run: Callable[..., RunDir]
) -> None:
    run = make_run(45, ended=True)
    (tmp_path / "other").mkdir()
    runs = (tmp_path / "runs").rename(tmp_path / "other" / "runs")
    taken.says()
    script = f"Command={tmp_path}/job.sbatch {OWN} ExitCode=1:0"
    waits("FAILED", "NonZeroExitCode", script)
    fields = f"JobId=45 JobState=FAILED {script} WorkDir={tmp_path}/other"
    taken.has("scontrol", f"echo '{fields}'")
    place = runs / run.path.relative_to(tmp_path / "runs")
    assert f"  fix: its run is there: hpc-train diagnose {place}\n" in hpc("status", "45").err


def test_a_job_of_anothers_script_that_ended_is_told_with_its_log(
    hpc, waits, taken: Slurm, tmp_path: Path
) -> None:
    taken.says()
    (tmp_path / "own.sbatch").write_text("#!/bin/sh\npython train.py\n")
    log = tmp_path / "own-45.out"
    log.touch()
    script = f"Command={tmp_path}/own.sbatch StdOut={log}"
    waits("FAILED", "NonZeroExitCode", f"{OWN} {script}")
    said = hpc("diagnose", "45").err
    assert f"45 is a job of Slurm's that hpc-train did not submit ({tmp_path}/own.sbatch)" in said
    assert f"fix: hpc-train diagnose {log} {WROTE}" in said
    waits("FAILED", "NonZeroExitCode", f"UserId=other(4711) {script}")
    said = hpc("diagnose", "45").err
    assert "no run answers to '45', and it is no file" in said
    assert "fix: hpc-train diagnose own-45.out\n" in said, "that log is here"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_job_whose_run_was_deleted_or_moved_before_it_ended_is_still_ours(
    hpc, waits, taken: Slurm, tmp_path: Path, make_run: Callable[..., RunDir], command: str
) -> None:
    """It was told as a job that hpc-train did not submit."""
    taken.says()
    run = make_run(45, ended=False)
    gone = run.path.parent / "20261127-141026-4a7b"
    script = f"Command={gone}/submitit/.submission_file_72e9.sh ExitCode=10:0"
    waits("FAILED", "NonZeroExitCode", f"{OWN} {script}")
    (run.path / "events.jsonl").unlink()
    said = hpc(command, "45").err
    what = f"45 was the run {run.name} ({gone.name}), whose folder is gone ({gone})"
    assert said.startswith(f"error: {what}; it ended: FAILED (exit code 10)\n")
    assert "fix: where the folder was moved: hpc-train status FOLDER; else submit it again" in said


@pytest.mark.parametrize("command", ["diagnose", "logs", "status"])
def test_a_job_whose_log_has_no_folder_is_told_with_the_folder_to_make(
    hpc, waits, taken: Slurm, tmp_path: Path, command: str
) -> None:
    taken.says()
    (tmp_path / "own.sbatch").write_text("#!/bin/sh\n#SBATCH --output=logs/%j.out\n")
    log = tmp_path / "logs" / "45.out"
    script = f"{OWN} Command={tmp_path}/own.sbatch StdOut={log}"
    waits("FAILED", "RaisedSignal:53(Real-time_signal_19)", f"{script} ExitCode=0:53")
    said = hpc(command, "45").err
    lost = f"it ended: FAILED, since its log {log} could not be opened: there is no such folder"
    assert lost in said
    assert f"  fix: mkdir -p {log.parent}, and submit it again" in said
    waits("FAILED", "NonZeroExitCode", f"{script} ExitCode=1:0")
    assert "mkdir" not in hpc(command, "45").err, "it was there, and was removed since"
    log.parent.mkdir()
    waits("FAILED", "RaisedSignal:53(Real-time_signal_19)", f"{script} ExitCode=0:53")
    assert "mkdir" not in hpc(command, "45").err


@pytest.mark.parametrize(
    ("log", "is_told"),
    [
        ("slurm-45.log", True),
        ("train.45.err", True),
        ("train.o45", True),
        ("slurm-45_1.out", True),
        ("slurm-145.out", False),
        ("slurm-450.out", False),
        ("45.yaml", False),
    ],
)
def test_a_log_of_a_job_that_nobody_knows_is_named(
    hpc, taken: Slurm, tmp_path: Path, log: str, is_told: bool
) -> None:
    (tmp_path / log).touch()
    fix = f"hpc-train diagnose {log}" if is_told else "for example slurm-45.out"
    assert f"{fix}\n" in hpc("diagnose", "45").err
