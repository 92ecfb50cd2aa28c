"""A rendered script that was given to sbatch: what its number means before its run is there."""

from __future__ import annotations

from pathlib import Path

import pytest

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
