"""`hpc-train doctor`: what it prints, and its exit code."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.torch  # asks a child that imports it

CONFIG = r"""ClusterName             = toy
JobRequeue              = 1
KillWait                = 30 sec
MaxArraySize            = 1001
PreemptMode             = OFF
PreemptType             = (null)
SLURM_VERSION           = 23.02.1
"""
SCONTROL = f"""case "$*" in
"show config") echo '{CONFIG}' ;;
*) echo PartitionName=gpu Default=YES MaxTime=2-00:00:00 GraceTime=0 ;;
esac"""


def test_a_machine_without_slurm_is_some_twenty_lines_that_pass(hpc, without_slurm) -> None:
    said = hpc("doctor")
    lines = said.out.splitlines()
    assert 12 <= len(lines) <= 25
    assert {line.split()[0] for line in lines} <= {"pass", "warn"}
    assert (said.code, said.err) == (0, "")
    assert "none here: --cluster local" in lines[-1]


def test_a_slurm_is_asked_twice_and_told_in_json(hpc, slurm) -> None:
    for program in ("sbatch", "srun"):
        slurm.has(program, "exit 1")
    slurm.has("scontrol", f"echo >> {slurm.folder}/asked\n{SCONTROL}")
    said = hpc("doctor", "--json")
    rows = {row["check"]: row for row in json.loads(said.out)["checks"]}
    assert rows["slurm"]["text"] == "23.02.1, cluster toy"
    assert rows["MaxTime"]["text"] == "gpu* 2-00:00:00"
    assert (said.code, slurm.asked()) == (0, 2)


def test_a_silent_slurm_fails_and_says_so(hpc, slurm, monkeypatch) -> None:
    slurm.has("sbatch", "exit 1")
    slurm.has("scontrol", "exec sleep 60")
    monkeypatch.setattr("hpc_train.doctor.examine_slurm.ANSWER_S", 0.3)
    said = hpc("doctor")
    assert said.code == 3
    (line,) = [line for line in said.out.splitlines() if line.startswith("fail")]
    assert "scontrol gave no answer" in line
    assert "-> `scontrol ping`" in line


def test_the_folder_of_runs_can_be_named(hpc, without_slurm) -> None:
    said = hpc("doctor", "--runs-dir", "/proc/1/runs")
    assert said.code == 3
    assert "fail  runs folder  /proc/1 cannot be written" in said.out


@pytest.mark.parametrize(
    ("words", "variables", "code", "told"),
    [
        (["--nodes", "2"], {}, 4, "--nodes needs Slurm's salloc"),
        (["--gpus", "2"], {}, 2, "add --nodes N"),
        (["--partition", "gpu"], {}, 2, "add --nodes N"),
        (["--nodes", "0"], {}, 2, "0 is not in the range"),
        (
            ["--nodes", "3"],
            {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"},
            3,
            "this allocation has 2 nodes",
        ),
    ],
)
def test_what_cannot_be_looked_at_is_told(
    hpc, without_slurm, monkeypatch, words, variables, code, told
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    said = hpc("doctor", *words)
    assert said.code == code
    assert told in said.err
    assert said.out == ""
