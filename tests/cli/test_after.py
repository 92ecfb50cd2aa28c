"""`submit --after A --after B`: what a job waits for, told to Slurm and by `status`."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hpc_train.runs.atomic import write_text
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.supervisor.dependents import move_dependents
from tests.cli.conftest import DIGITS, Slurm


@pytest.fixture
def jobs(taken: Slurm) -> Slurm:
    """A Slurm that numbers its jobs from 1, all of which wait, and notes what it is asked."""
    count = f"{taken.folder}/count"
    number = f"echo >> {count}; n=$(wc -l < {count})"
    line = f'echo "$n|PENDING|Priority|N/A|N/A" >> {taken.folder}/says'
    note = f'echo "$@" >> {taken.folder}/sbatch.txt'
    answer = 'case "$1" in --parsable) echo $n ;; *) echo Submitted batch job $n ;; esac'
    taken.has("sbatch", f"{number}\n{line}\n{note}\n{answer}")
    taken.has("scontrol", f'echo "$@" >> {taken.folder}/scontrol.txt')
    return taken


def submit(hpc, name: str, *words: str) -> RunDir:
    said = hpc("submit", DIGITS, f"name={name}", "--json", *words)
    assert said.code == 0, said
    return RunDir(Path(json.loads(said.out)["run_dir"]))


def dependency(jobs: Slurm) -> str:
    """Of the newest job."""
    asked = (jobs.folder / "sbatch.txt").read_text().splitlines()[-1].split()
    found = [word for word in asked if word.startswith("--dependency=")]
    return found[0].removeprefix("--dependency=") if found else ""


def told(jobs: Slurm) -> list[str]:
    file = jobs.folder / "scontrol.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    file.write_text("")
    return [line for line in lines if "Dependency=" in line]


def end(run: RunDir, state: str) -> None:
    """The run has ended so."""
    if state == "completed":
        write_text(run.done, "")
    data = {"state": state, "reason": "no luck"}
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, data))


def moves(run: RunDir, job: str) -> list[str]:
    """Another job carries it on; what the supervisor says."""
    append_event(run.events, Event(time.time(), EventKind.WENT_ON, {"attempt": 0, "job_id": job}))
    said: list[str] = []
    move_dependents(run, said.append)
    return said


def shows(hpc, run: RunDir) -> str:
    return " ".join(hpc("status", str(run.path)).out.split())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_job_waits_for_as_many_runs_as_are_named(hpc, jobs: Slurm, count: int) -> None:
    firsts = [submit(hpc, f"first{number}") for number in range(count)]
    words = [word for first in firsts for word in ("--after", first.run_id)]
    waits = submit(hpc, "waits", *words)
    assert dependency(jobs) == f"afterok:{':'.join(str(k + 1) for k in range(count))}"
    rows = (jobs.folder / "says").read_text().splitlines()
    jobs.says(*rows[:-1], f"{count + 1}|PENDING|Dependency|N/A|N/A")
    names = [first.run_id for first in firsts]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    assert f"Dependency (it waits for {listed} to be complete (--after))" in shows(hpc, waits)


def test_a_run_may_be_named_by_its_name_its_id_its_folder_and_its_job(hpc, jobs: Slurm) -> None:
    first, other = submit(hpc, "first"), submit(hpc, "other")
    named = ("first", first.run_id, str(first.path), "1")
    words = [word for name in named for word in ("--after", name)]
    submit(hpc, "waits", *words)
    assert dependency(jobs) == "afterok:1", "the same one is waited for once"
    submit(hpc, "waits", *words, "--after", "2", "slurm.dependency=singleton")
    assert dependency(jobs) == "afterok:1:2,singleton"
    assert [it.kind for it in read_events(other.events)].count(EventKind.DEPENDENT) == 1


def test_a_sweep_waits_and_is_waited_for_beside_a_run(hpc, jobs: Slurm) -> None:
    run = submit(hpc, "first")
    sweep = json.loads(hpc("submit", DIGITS, "name=many", "--sweep", "seed=1,2", "--json").out)
    both = ("--after", run.run_id, "--after", sweep["sweep"])
    jobs.says("1|RUNNING|None|N/A|N/A", *(f"2_{k}|RUNNING|None|N/A|N/A" for k in range(2)))
    assert hpc("submit", DIGITS, *both, "--sweep", "seed=3,4").code == 0
    assert dependency(jobs) == "afterok:1:2"
    assert not moves(run, "9")[1:]
    assert told(jobs) == [], "Slurm knows no job 9 here"
    jobs.says("9|RUNNING|None|N/A|N/A", *(f"2_{k}|RUNNING|None|N/A|N/A" for k in range(2)))
    moves(run, "9")
    assert told(jobs) == ["update JobId=3 Dependency=afterok:9:2"]


def test_one_that_is_complete_is_not_waited_for_and_one_that_has_failed_refuses(
    hpc, jobs: Slurm
) -> None:
    complete, failed, waits = (submit(hpc, name) for name in ("complete", "failed", "going"))
    end(complete, "completed")
    submit(hpc, "next", "--after", complete.run_id, "--after", waits.run_id)
    assert dependency(jobs) == "afterok:3"
    submit(hpc, "next", "--after", complete.run_id, "--after", complete.run_id)
    assert dependency(jobs) == ""
    end(failed, "failed")
    before = (jobs.folder / "sbatch.txt").read_text()
    for dry in ((), ("--dry-run",)):
        words = ("--after", waits.run_id, "--after", "failed", *dry)
        said = hpc("submit", DIGITS, *words)
        assert said.code == 3
        assert f"--after {failed.run_id}: it is failed (no luck)" in said.err
        assert f"fix: go on with it first: hpc-train resume {failed.run_id}" in said.err
        said = hpc("submit", DIGITS, "--after", waits.run_id, "--after", "nope", *dry)
        assert said.code == 5
        assert "no run answers to 'nope'" in said.err
    assert (jobs.folder / "sbatch.txt").read_text() == before


def test_one_that_is_being_cancelled_is_not_waited_for(hpc, jobs: Slurm) -> None:
    """The job was submitted, and waited for ever."""
    first = submit(hpc, "first")
    jobs.says("1|RUNNING|None|N/A|N/A")
    append_event(first.events, Event(time.time(), EventKind.CANCEL_REQUESTED, {"by": "me"}))
    before = (jobs.folder / "sbatch.txt").read_text()
    for dry in ((), ("--dry-run",)):
        said = hpc("submit", DIGITS, "--after", "first", *dry)
        assert said.code == 3
        told = f"error: --after {first.run_id}: it is being cancelled, so this one would never"
        assert told in said.err
        assert f"hpc-train resume {first.run_id}, then this again" in said.err
    assert (jobs.folder / "sbatch.txt").read_text() == before
    append_event(first.events, Event(time.time(), EventKind.RUN_ENDED, {"state": "cancelled"}))
    again = {"job_id": "1", "backend": "slurm"}
    append_event(first.events, Event(time.time(), EventKind.SUBMITTED, again))
    submit(hpc, "next", "--after", "first")


def test_whichever_moves_the_others_stay_in_what_is_waited_for(hpc, jobs: Slurm) -> None:
    a, b, c = (submit(hpc, name) for name in "abc")
    words = [word for first in (a, b, c) for word in ("--after", first.run_id)]
    submit(hpc, "waits", *words, "slurm.dependency=singleton")
    jobs.says(*(f"{job}|RUNNING|None|N/A|N/A" for job in (1, 2, 3, 8, 9)))
    assert moves(b, "8") == ["job 4 waits for job 8, 1, 3 now"]
    assert told(jobs) == ["update JobId=4 Dependency=afterok:8:1:3,singleton"]
    end(a, "completed")
    moves(c, "9")
    assert told(jobs) == ["update JobId=4 Dependency=afterok:9:8,singleton"]
    end(b, "completed")
    moves(c, "8")
    assert told(jobs) == ["update JobId=4 Dependency=afterok:8,singleton"]


def test_a_failed_one_that_slurm_has_forgotten_is_never_taken_for_a_good_one(
    hpc, jobs: Slurm
) -> None:
    """Slurm drops such a job at an update, and would begin what waits for it."""
    a, b = submit(hpc, "a"), submit(hpc, "b")
    submit(hpc, "waits", "--after", a.run_id, "--after", b.run_id)
    end(b, "failed")
    jobs.says("1|RUNNING|None|N/A|N/A", "8|RUNNING|None|N/A|N/A")
    assert moves(a, "8") == ["job 3 waits for job 2, too, which has ended"]
    assert told(jobs) == []
    jobs.says("8|RUNNING|None|N/A|N/A", "9|PENDING|None|N/A|N/A")
    moves(b, "9")
    assert told(jobs) == ["update JobId=3 Dependency=afterok:9:8"], "who is resumed tells of all"


def test_status_names_those_that_have_failed_alone(hpc, jobs: Slurm) -> None:
    a, b, c = (submit(hpc, name) for name in "abc")
    words = [word for first in (a, b, c) for word in ("--after", first.run_id)]
    waits = submit(hpc, "waits", *words)
    rows = [f"{job}|RUNNING|None|N/A|N/A" for job in (1, 2, 3)]
    jobs.says(*rows, "4|PENDING|DependencyNeverSatisfied|N/A|N/A")
    shown = shows(hpc, waits)
    names = f"{a.run_id}, {b.run_id} and {c.run_id}"
    assert f"one of {names}, which it waits for, did not complete: hpc-train status" in shown
    end(a, "completed")
    end(b, "failed")
    resume = f"hpc-train resume {b.run_id}"
    failed = f"{b.run_id}, which it waits for, did not complete: {resume} lets this one begin, too"
    assert failed in shows(hpc, waits)
    end(c, "cancelled")
    both = f"{b.run_id} and {c.run_id}, which it waits for, did not complete: {resume} and"
    assert f"{both} hpc-train resume {c.run_id} let this one begin, too" in shows(hpc, waits)


@pytest.mark.parametrize(
    ("squeue", "sacct", "why", "fix"),
    [
        ("true", "true", ", and Slurm knows no job 33", "`squeue --me` and `sacct -X` list yours"),
        ("true", "exit 1", "", "of another job of Slurm's: slurm.dependency=afterok:33"),
        ("echo '33|RUNNING'", "exit 1", "", "of another job of Slurm's: slurm.dependency=afterok:"),
        (
            "echo '33|CANCELLED'",
            "exit 1",
            ", and job 33 has ended as CANCELLED",
            "leave it out, name another job, or write slurm.dependency=afterany:33",
        ),
        (
            "true",
            "echo '33|FAILED'",
            ", and job 33 has ended as FAILED",
            "leave it out, name another job, or write slurm.dependency=afterany:33",
        ),
    ],
)
def test_what_no_job_can_wait_for_is_told_before_the_key_for_it(
    hpc, taken, squeue: str, sacct: str, why: str, fix: str
) -> None:
    """The key was named, and refused next."""
    taken.has("squeue", squeue)
    taken.has("sacct", sacct)
    said = hpc("submit", DIGITS, "--after", "33")
    error, hint = said.err.splitlines()
    assert (said.code, error) == (5, f"error: --after 33: 33 is no job of a run{why}")
    assert hint.startswith(f"  fix: {fix}")
