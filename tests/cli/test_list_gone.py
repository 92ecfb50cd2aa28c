"""`hpc-train list`: jobs that wait or run, and whose run's folder was moved away or removed."""

from __future__ import annotations

import json
import shutil

import pytest


def job(run, number, state="PENDING"):
    """A line of squeue for the job of a run that was submitted."""
    return f"{number}|{state}|None|N/A|N/A||{run.submitit}/submission.sh"


def test_a_job_whose_runs_folder_is_gone_is_a_row_of_the_same_query(hpc, slurm, make_run):
    kept, lost, over = (make_run(number, ended=False) for number in (3, 4, 5))
    shutil.rmtree(lost.path)
    shutil.rmtree(over.path)
    foreign = "9|RUNNING|None|N/A|N/A||/home/me/job.sh"
    slurm.says(job(kept, 3), job(lost, 4), job(over, 5, "COMPLETED"), foreign, "8|PENDING|a|N/A")
    _, first, *others = hpc("list").out.splitlines()
    assert first.split()[:4] == [lost.name, lost.run_id, "pending", "4"]
    assert first.endswith("its run's folder is gone; scancel 4 ends it")
    assert [line.split()[1] for line in others] == [kept.run_id]
    assert slurm.asked() == 1
    assert [it["run"] for it in json.loads(hpc("list", "--json").out)["runs"]] == [
        lost.run_id,
        kept.run_id,
    ]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--active"], True),
        (["--state", "pending"], True),
        (["--state", "running"], False),
        (["--name", "name1"], True),
        (["--name", "other*"], False),
    ],
)
def test_it_is_shown_where_no_other_run_is_left_and_as_it_was_asked_for(
    hpc, slurm, make_run, words, shown
):
    lost = make_run(4, ended=False)
    shutil.rmtree(lost.path.parent.parent)
    slurm.says(job(lost, 4))
    assert ("scancel 4" in hpc("list", *words).out) == shown
    assert slurm.asked() == 1


def test_the_tasks_of_a_sweep_are_one_row(hpc, slurm, make_run):
    lost = make_run(4, ended=False)
    shutil.rmtree(lost.path)
    script = lost.path / "job.sbatch"
    slurm.says(*(f"7_{task}|PENDING|None|N/A|N/A||{script}" for task in range(3)))
    _, row = hpc("list").out.splitlines()
    assert row.endswith("scancel 7 ends it")


def test_a_run_that_was_moved_is_listed_once(hpc, slurm, make_run):
    run = make_run(4, ended=False)
    slurm.says(job(run, 4))
    run.path.parent.rename(run.path.parent.with_name("other"))
    _, row = hpc("list").out.splitlines()
    assert row.split()[:3] == ["other", run.run_id, "pending"]
    assert "gone" not in row
