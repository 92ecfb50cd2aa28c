"""`hpc-train cancel`, and what is told of a run while Slurm does not answer."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpc_train.backends import cancel as cancelling
from hpc_train.runs.events import Event, EventKind, append_event, is_cancel_asked, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from hpc_train.slurm.jobs import SQUEUE_S
from tests.cli.conftest import DIGITS, Slurm


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


def test_of_a_job_without_a_script_its_log_is_named(hpc, slurm: Slurm) -> None:
    """As of `sbatch --wrap`, whose command squeue tells as `(null)`."""
    slurm.says("15|(null)")
    slurm.has("scontrol", "echo 'JobId=15 Command=(null) StdOut=/home/u/slurm-15.out'")
    said = hpc("status", "15").err
    assert "15 is a job of Slurm's that hpc-train did not submit\n" in said
    assert "hpc-train diagnose /home/u/slurm-15.out reads what it has written" in said
    slurm.has("scontrol", "exit 1")
    assert "hpc-train diagnose LOG reads" in hpc("status", "15").err


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


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (["seed=2"], ["seed=1", "seed=2"]),
        (
            ["model.init_args.width=48", "seed=2"],
            ["model.init_args.width=32, seed=1", "model.init_args.width=48, seed=2"],
        ),
        ([], ["", ""]),
        (
            ["seed=2", "checkpoint.keep_last=3", "trainer.max_steps=9"],
            ["", ""],
        ),  # too much for one line
    ],
)
def test_runs_of_one_name_are_told_apart_by_what_was_typed(
    hpc, taken, words: list[str], own: list[str]
) -> None:
    """Of `for lr in ...: hpc-train submit` nothing but `diff` said which is which."""
    for number, more in ((7, []), (8, words)):
        taken.has("sbatch", f"echo Submitted batch job {number}")
        assert hpc("submit", DIGITS, *more, "--cluster", "slurm").code == 0
    taken.says("7|RUNNING|None|N/A", "8|RUNNING|None|N/A")
    said = hpc("cancel", "digits").err
    for number, told in zip((7, 8), own, strict=True):
        assert f"(running, job {number}{told and ', '}{told})" in said, said


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
def silent(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setattr("hpc_train.slurm.jobs.SQUEUE_S", SQUEUE_S)  # the default
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


def test_what_was_told_as_failed_stays_so_when_slurm_falls_silent(hpc, slurm: Slurm, make_run):
    """Also where the supervisor was gone before it could write, and for a job that is put back."""
    early, late = make_run(1, name="early", begun=False), make_run(2, name="late")
    log = early.job_log("1")
    log.parent.mkdir()
    log.write_text("hpc-train: env.conda: conda is not on the PATH\n")
    slurm.says("1|FAILED|NonZeroExitCode|N/A", "2|NODE_FAIL|None|N/A")
    assert hpc("list").out.count("failed") == 2
    slurm.has("squeue", "exit 1")
    said = hpc("status", "early").out
    assert said.startswith(
        "early  failed: Slurm does not answer; last known: failed: the job ended"
    )
    assert "conda is not on the PATH" in said
    assert hpc("list").out.count("  failed") == 2
    before = late.events.read_text()
    assert hpc("list").code == 0
    assert late.events.read_text() == before
    slurm.has("squeue", f"cat {slurm.folder}/says")
    slurm.says("2|PENDING|BeginTime|N/A")  # by scontrol requeue
    assert "  pending: BeginTime" in hpc("status", "late").out
    assert "early  failed: the job ended before" in hpc("status", "early").out
    slurm.has("squeue", "exit 1")
    assert "late  running: Slurm does not answer" in hpc("status", "late").out


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


# --- a script with a Session


@pytest.fixture
def session(tmp_path: Path):
    """A script with a Session that trains on HOST, and the process that stands for its rank 0."""
    process = subprocess.Popen(["sleep", "600"])

    def make(host: str) -> RunDir:
        run = RunDir(tmp_path / "runs" / "mine", named=False)
        run.attempt(0).path.mkdir(parents=True)
        run.session.write_text("loop.py runs/mine\n")
        run.latest.symlink_to("attempts/0")
        tell(run, EventKind.SUBMITTED, attempt=0, job_id="pid-1", backend="session")
        began = {"attempt": 0, "job_id": "pid-1", "host": host, "pid": process.pid}
        tell(run, EventKind.ATTEMPT_STARTED, **began)
        now = time.time()
        beat = Heartbeat(rank=0, node="n", pid=1, time=now, moved=now, phase="train", step=4)
        write_heartbeat(run.attempt(0), beat)
        return run

    yield make, process
    process.kill()
    process.wait()


def test_who_cancels_a_script_with_a_session_is_not_sent_to_a_resume_that_is_refused(hpc, session):
    make, process = session
    make(socket.gethostname())
    said = hpc("cancel", "mine")
    assert (said.code, process.wait(10)) == (0, -signal.SIGTERM)
    again = "start its script again, as before, and it goes on: loop.py runs/mine"
    assert again in said.err
    assert "resume" not in said.out + said.err


def test_a_session_on_another_host_is_stopped_by_what_is_told_to_type(hpc, session):
    make, process = session
    run = make("elsewhere")
    said = hpc("cancel", "mine")
    assert said.code == 1
    command = said.err.partition("cancel it there, or: ")[2].strip()
    subprocess.run(shlex.split(command), check=True)
    assert run.stop.exists()
    assert process.poll() is None


# --- a run that is on its way, or whose history is lost


SUBMITS = [["submit", DIGITS, "name=net"]]
SUBMITS.append([*SUBMITS[0], "--sweep", "model.init_args.lr=0.1,0.2"])


@pytest.mark.parametrize("words", SUBMITS, ids=["a run", "a sweep"])
def test_a_cancel_that_comes_during_a_submission_holds(hpc, slurm: Slurm, tmp_path: Path, words):
    """sbatch itself calls the commands of somebody else, and takes the job after them."""
    command = f"{sys.executable} -m hpc_train.cli"
    meanwhile = f"({command} status net; {command} cancel net; {command} status net)"
    taken = 'case "$*" in *--parsable*) echo 7 ;; *) echo Submitted batch job 7 ;; esac'
    slurm.has("sbatch", f"{meanwhile} >> {tmp_path}/said 2>&1\n{taken}")
    slurm.has("srun", "exit 1")
    slurm.has("scontrol", "printf 'MaxArraySize            = 9\\nMaxJobCount = 10000\\n'")
    slurm.says(*(f"{job}|PENDING|Priority|N/A" for job in ("7", "7_0", "7_1")))
    said = hpc(*words, "--cluster", "slurm")
    assert said.code == 12, said
    told = (tmp_path / "said").read_text()
    assert "Error" not in told
    assert "pending" in told
    assert told.count("being submitted") >= 2
    assert "it is cancelled as soon as its job is known" in told
    assert cancelled(slurm) == ["7"]
    assert said.code == 12
    assert "was cancelled while it was being submitted: job" in said.err
    slurm.says()
    assert "cancelled before it began" in hpc("status", "net").out


def test_a_run_whose_history_is_lost_is_cancelled_by_its_script(hpc, slurm: Slurm, make_run):
    run = make_run(1, begun=False)
    run.events.write_text("")
    said = hpc("cancel", run.run_id)
    assert said.code == 1
    assert f"has no job that is known: {run.events} names none" in said.err
    assert f"hpc-train rm {run.run_id}" in said.err
    slurm.has("squeue", f'case "$*" in *%F*) echo "5|{run.submitit}/submission.sh" ;; esac')
    assert "cancelling job 5" in hpc("cancel", run.run_id).out
    assert cancelled(slurm) == ["5"]
