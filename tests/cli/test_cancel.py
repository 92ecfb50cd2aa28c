"""`hpc-train cancel`, and what is told of a run while Slurm does not answer."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hpc_train.backends import cancel as cancelling
from hpc_train.runs.events import Event, EventKind, append_event, is_cancel_asked, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from tests.cli.conftest import Slurm


@pytest.fixture
def make_run(tmp_path: Path):
    """A run of job NUMBER; one that has `begun` has a sign of life at step 184."""

    def make(number: int, *, name: str = "net", begun: bool = True, ended: bool = False) -> RunDir:
        run = RunDir(tmp_path / "runs" / name / f"20260101-00000{number}-000{number}")
        run.attempt(0).path.mkdir(parents=True)
        run.plan.write_text("{}")
        run.latest.symlink_to("attempts/0")
        tell(run, EventKind.SUBMITTED, job_id=str(number), backend="slurm")
        if begun:
            tell(run, EventKind.ATTEMPT_STARTED, attempt=0, job_id=str(number), host="n")
            now = time.time()
            beat = Heartbeat(
                rank=0, node="n", pid=1, time=now, moved=now, phase="train", step=184, batch=9
            )
            write_heartbeat(run.attempt(0), beat)
        if ended:
            tell(run, EventKind.RUN_ENDED, attempt=0, state="completed", reason="all done")
        return run

    return make


def tell(run: RunDir, kind: EventKind, **data: object) -> None:
    append_event(run.events, Event(time.time(), kind, data))


def wishes(run: RunDir) -> int:
    return sum(event.kind is EventKind.CANCEL_REQUESTED for event in read_events(run.events))


def cancelled(slurm: Slurm) -> list[str]:
    log = slurm.folder / "cancelled"
    return log.read_text().split() if log.exists() else []


@pytest.fixture(autouse=True)
def scancel(slurm: Slurm) -> None:
    slurm.has("scancel", f'echo "$@" >> {slurm.folder}/cancelled')


# --- which run


@pytest.mark.parametrize("command", ["status", "cancel", "logs", "diagnose", "resume"])
def test_a_job_of_slurms_that_is_no_run_is_told_as_that(
    hpc, slurm: Slurm, tmp_path: Path, command: str
) -> None:
    (tmp_path / "job.sbatch").write_text("#!/bin/sh\ntorchrun train.py\n")
    slurm.says(f"2|{tmp_path}/job.sbatch", f"3_1|{tmp_path}/job.sbatch")
    for word in ("2", "3", "3_1"):
        (tmp_path / f"slurm-{word}.out").write_text("step 1\n")
        said = hpc(command, word)
        assert said.code == 5
        assert f"{word} is a job of Slurm's that hpc-train did not submit" in said.err
        assert f"scancel {word} ends it; hpc-train diagnose slurm-{word}.out" in said.err
    assert "no run answers to '4'" in hpc(command, "4").err
    assert cancelled(slurm) == []


@pytest.mark.parametrize(
    ("begun", "told"), [(False, "which waited\n"), (True, "which waited; what it has saved stays")]
)
def test_a_job_that_waits_has_no_ranks_that_could_save(
    hpc, slurm: Slurm, make_run, begun: bool, told: str
) -> None:
    run = make_run(3, begun=begun)
    slurm.says("3|PENDING|Priority|N/A")
    assert told in hpc("cancel", run.run_id).out


def test_a_job_of_a_rendered_script_is_not_told_to_be_anothers(
    hpc, slurm: Slurm, tmp_path: Path
) -> None:
    (tmp_path / "job.sbatch").write_text("#!/bin/sh\npython -m hpc_train.supervisor\n")
    slurm.says(f"2|{tmp_path}/job.sbatch")
    assert "no run answers to '2'" in hpc("status", "2").err


@pytest.mark.parametrize("running", [[1, 2], [1, 2, 3]])
def test_a_name_of_several_runs_that_go_on_cancels_none_and_lists_them(
    hpc, slurm, make_run, running
):
    runs = {number: make_run(number, ended=number not in running) for number in (1, 2, 3, 4)}
    slurm.says("1|RUNNING|None|N/A", "2|PENDING|Priority|N/A", "3|RUNNING|None|N/A")
    said = hpc("cancel", "net")
    assert said.code == 2
    first, fix = said.err.splitlines()
    assert first.startswith(f"error: {len(running)} runs of that name have not ended: ")
    for number, run in runs.items():
        state = "pending" if number == 2 else "running"
        assert (f"{run.run_id} ({state}, job {number})" in first) == (number in running)
    assert "hpc-train cancel ID" in fix
    assert (cancelled(slurm), [wishes(run) for run in runs.values()]) == ([], [0, 0, 0, 0])
    assert hpc("cancel", runs[2].run_id).code == 0
    assert cancelled(slurm) == ["2"]


@pytest.mark.parametrize("running", [1, 2, 3])
def test_a_name_means_the_one_run_that_goes_on_also_where_it_is_not_the_newest(
    hpc, slurm, make_run, running
):
    runs = {number: make_run(number, ended=number != running) for number in (1, 2, 3)}
    slurm.says(f"{running}|RUNNING|None|N/A")
    said = hpc("cancel", "net", "--json")
    assert json.loads(said.out)["run"] == runs[running].run_id
    assert cancelled(slurm) == [str(running)]


def test_a_name_of_runs_that_have_all_ended_names_the_newest(hpc, slurm, make_run):
    make_run(1, ended=True)
    newest = make_run(2, ended=True)
    said = hpc("cancel", "net")
    assert said.code == 1
    assert said.err.startswith(f"error: net ({newest.run_id}) is already completed\n")


# --- a Slurm that does not answer


@pytest.fixture
def silent(slurm: Slurm) -> Slurm:
    for program in ("squeue", "sacct", "scancel", "scontrol"):
        slurm.has(program, "exec sleep 600")
    return slurm


LIMIT_S = 60.0  # Slurm's programs answer much later


@pytest.mark.parametrize("command", ["status", "list"])
def test_a_silent_slurm_is_outranked_by_the_runs_own_history(hpc, silent, make_run, command):
    make_run(1, name="old", ended=True)
    make_run(2, name="waits", begun=False)
    make_run(3, name="trains")
    began = time.monotonic()
    said = hpc(command, *(["trains"] if command == "status" else []))
    assert time.monotonic() - began < LIMIT_S
    assert said.code == 0
    assert "Slurm does not answer; last known: running, step 184" in said.out
    assert "just submitted" not in said.out
    if command == "list":
        assert "Slurm does not answer; last known: pending\n" in said.out
        assert "completed" in said.out
        found = {run["name"]: run for run in json.loads(hpc("list", "--json").out)["runs"]}
        assert {name: run["scheduler"] for name, run in found.items()} == {
            "old": None,
            "waits": "silent",
            "trains": "silent",
        }


def test_a_sign_of_life_that_is_old_is_told_with_its_age(hpc, silent, make_run):
    run = make_run(1)
    beat = Heartbeat(
        rank=0, node="n", pid=1, time=time.time() - 400, moved=1.0, phase="train", step=7, batch=9
    )
    write_heartbeat(run.attempt(0), beat)
    assert "last known: running, step 7, 6 min ago" in hpc("status", "net").out


def test_a_cancel_that_slurm_does_not_hear_reaches_the_ranks_by_the_stop_file(
    hpc, silent, make_run
):
    run = make_run(1)
    began = time.monotonic()
    said = hpc("cancel", "net")
    assert time.monotonic() - began < LIMIT_S
    assert said.code == 0
    assert f"Slurm does not answer: its ranks were told through {run.stop}" in said.out
    assert said.out.endswith("should job 1 be there when Slurm answers: scancel 1\n")
    assert run.stop.exists()
    assert wishes(run) == 1


def test_a_job_that_waits_and_whose_cancel_got_no_answer_ends_when_it_begins(
    hpc, slurm: Slurm, make_run
) -> None:
    run = make_run(1, begun=False)
    slurm.says("1|PENDING|Priority|N/A")
    slurm.has(
        "scancel", "echo 'scancel: error: Socket timed out on send/recv operation' >&2; exit 1"
    )
    said = hpc("cancel", "net")
    assert said.code == 4
    assert "and job 1 has not begun: should it begin, it ends by itself" in said.err
    tell(run, EventKind.ATTEMPT_STARTED, attempt=0, job_id="1", host="n")
    assert is_cancel_asked(read_events(run.events)), "its supervisor starts no rank then"


def test_a_cancel_goes_to_the_job_that_carries_the_run_on_by_now(
    hpc, slurm: Slurm, make_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(1)
    slurm.says("1|RUNNING|None|N/A")
    append = cancelling.append_event

    def meanwhile(*event: object) -> None:
        append(*event)
        tell(run, EventKind.WENT_ON, attempt=0, action="resubmit", job_id="2")

    monkeypatch.setattr(cancelling, "append_event", meanwhile)
    assert hpc("cancel", run.run_id).code == 0
    assert cancelled(slurm) == ["2"]


def test_a_job_that_waits_cannot_be_cancelled_without_slurm_and_that_is_said(hpc, silent, make_run):
    run = make_run(1, begun=False)
    said = hpc("cancel", "net")
    assert said.code == 4
    assert "error: Slurm does not answer, and job 1 has not begun: it was not cancelled" in said.err
    assert f"fix: once `scontrol ping` says UP: hpc-train cancel {run.run_id}" in said.err
    assert wishes(run) == 0
    assert not run.stop.exists()
