"""Runs made by hand, each ended by another cause: who is named, and why."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from hpc_train.backends.diagnose_run import diagnose_run
from hpc_train.backends.observe import SlurmAnswer, observe
from hpc_train.diagnose.diagnosis import told
from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.diagnose.read_run import sentence_of
from hpc_train.diagnose.rules import Evidence
from hpc_train.errors import CheckError, UsageError
from hpc_train.runs.events import EventKind
from hpc_train.runs.ranks import ExitRecord, write_exit
from hpc_train.training.rank_failure import failure_of
from tests.diagnose.test_flight_recorder import OPEN, call
from tests.diagnose.test_flight_recorder import write as write_dumps
from tests.report.made import BEGAN, MadeRun, gpu_line, make_run

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total"
    " capacity of 79.15 GiB of which 1.94 GiB is free."
)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRun:
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", str(tmp_path / "runs"))  # its id is then enough
    (run := make_run(tmp_path)).tell(0, EventKind.SUBMITTED, job_id="7", backend="local")
    return run


def ended(
    made: MadeRun, outcome: str, reason: str, number: int = 0, at: float = 10, **told: object
) -> None:
    nodes = list(made.nodes)
    made.tell(at, EventKind.ATTEMPT_STARTED, attempt=number, job_id="7", nodes=nodes)
    made.tell(
        at + 90, EventKind.ATTEMPT_ENDED, attempt=number, outcome=outcome, reason=reason, **told
    )
    made.tell(at + 91, EventKind.RUN_ENDED, state="failed", reason="it is not tried again")
    made.run.attempt(number).path.mkdir(parents=True, exist_ok=True)


def left(made: MadeRun, rank: int, error: str, kind: str = "user", step: int | None = 12) -> None:
    traceback = (
        f'Traceback (most recent call last):\n  File "/home/u/train.py", line 42, in f\n{error}\n'
    )
    record = ExitRecord(
        rank=rank,
        node=made.nodes[rank // 4],
        time=BEGAN + 50 + rank,
        code=1,
        kind=kind,
        step=step,
        error=error,
        traceback="" if kind == "check" else traceback,
    )
    write_exit(made.run.attempt(0), record)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def first(made: MadeRun):
    diagnosis = diagnose_run(made.run)
    found = diagnosis.findings[0]
    # The sentence that `status` shows is that of `diagnose`, or none.
    (status,) = observe([made.run], BEGAN + 500, answer=SlurmAnswer())
    assert sentence_of(made.run, status) in ("", diagnosis.sentence)
    return found


EXCEPTIONS = {
    "torch_oom": (OOM, "gpu_memory", "2.00 GiB were asked for, 1.94 GiB of 79.15 GiB"),
    "missing_module": ("ModuleNotFoundError: No module named 'einops'", "user", "einops"),
    "disk_full": ("OSError: [Errno 28] No space left on device", "user", "No space left"),
    "nan": ("ValueError: The loss returned in `training_step` is nan.", "user", "NaN"),
    "worker_killed": (
        "RuntimeError: DataLoader worker (pid(s) 4711) exited unexpectedly",
        "user",
        "a worker of the data loader ended",
    ),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_the_exception_of_the_rank_that_failed_first_says_why(made, name):
    error, kind, said = EXCEPTIONS[name]
    outcome = "out_of_memory" if kind == "gpu_memory" else "user_error"
    ended(made, outcome, f"rank 5 on n2 failed: {error}", rank=5, node="n2", failed_step=12)
    left(made, 2, "RuntimeError: Connection closed by peer", "network")
    left(made, 5, error, kind)
    write(
        made.run.attempt(0).rank_log(5), f"step 12\nTraceback (most recent call last):\n{error}\n"
    )
    found = first(made)
    assert (found.name, found.rank, found.node, found.step) == (name, 5, "n2", 12)
    assert found.time == BEGAN + 55
    assert said in found.cause
    places = [(Path(item.file).name, item.line) for item in found.evidence]
    assert places == [("rank-5.log", 3), ("rank-5.json", 1)]


def test_what_the_rank_knew_to_do_is_the_fix_and_is_no_riddle(made):
    for error, fix in (
        ("AttributeError: 'Prep' object has no attribute 'val'", "assign self.val in setup"),
        ("TypeError: Old.on_train_end() missing 1 required positional argument: 'x'", "takes y"),
    ):
        reason = f"rank 0 on n1 failed: {error}; {fix}"
        ended(made, "user_error", reason, rank=0, node="n1", failed_step=0)
        left(made, 0, error)
        path = made.run.attempt(0).exit_record(0)
        record = json.loads(path.read_text())
        record.update(error=f"{error}; {fix}", fix=fix, where="/home/u/cb.py:5")
        path.write_text(json.dumps(record))
        lines = list(told(diagnose_run(made.run)))
        assert "no rule knows why" not in "\n".join(lines)
        assert f"  fix: {fix}" in lines
    quotes = [item.text for item in diagnose_run(made.run).findings[0].evidence]
    assert f"{error}; {fix} (/home/u/cb.py:5)" in quotes


def test_rows_of_numbers_in_a_traceback_are_left_out(made):
    error = "ValueError: no such axis in tensor([[-0.4594],\n        [1e-3],\n        [nan]])` of x"
    ended(made, "user_error", "rank 0 on n1 failed: ValueError", rank=0, node="n1")
    left(made, 0, error)
    shown = "\n".join(told(diagnose_run(made.run)))
    assert "[1e-3]" not in shown
    assert "[nan]])` of x" in shown


OUTCOMES = {
    "time_limit": ("timeout", "the job's time limit came near; saved at step 9", {}),
    "preempted": ("preempted", "preempted by Slurm; saved at step 9", {}),
    "cancelled": ("cancelled", "the job was cancelled (scancel)", {}),
    "node_failed": ("node_failure", "n2 no longer answers", {"node": "n2"}),
    "host_oom": (
        "out_of_memory",
        "rank 5 on n2: the node ran out of host memory, and its kernel killed the process",
        {"rank": 5, "node": "n2"},
    ),
    "hang": (
        "hang",
        "nothing moved for 300 s (limit 300 s); late: rank 5 on n2",
        {"rank": 5, "node": "n2"},
    ),
    "not_launched": ("node_failure", "srun could not start the ranks on n2: timed out", {}),
    "preflight_refused": ("network_failure", "the preflight refused: n2: mtu: 1500 here", {}),
    "left_early": (
        "user_error",
        "rank 1 on n1 left with exit code 0 behind step 3, and others still trained",
        {"rank": 1, "node": "n1"},
    ),
    "no_step": (
        "user_error",
        "the script ended with exit code 0 and took no optimizer step; if that is right: x",
        {},
    ),
    "run_disk_full": (
        "user_error",
        "the ranks ended, and the run directory cannot be written: Disk quota exceeded (/runs/x)",
        {},
    ),
    "environment_of_ranks": (
        "user_error",
        "the ranks' environment could not be made: env.conda: conda is not on the PATH: name",
        {},
    ),
    "segfault": (
        "user_error",
        "rank 1 on n1 was killed by SIGSEGV first, in f (a.py:3); its stack is in rank-1.txt",
        {"rank": 1, "node": "n1"},
    ),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_the_history_knows_is_used(made, name):
    outcome, reason, who = OUTCOMES[name]
    ended(made, outcome, reason, **who)
    # What follows from it does not hide it.
    write(made.run.attempt(0).rank_log(0), "RuntimeError: [1] Connection closed by peer\n")
    found = first(made)
    assert (found.name, found.rank, found.node) == (name, who.get("rank"), who.get("node", ""))
    assert found.time == BEGAN + 100
    assert found.is_known
    (place,) = {item.line for item in found.evidence if item.file == str(made.run.events)}
    assert '"attempt_ended"' in made.run.events.read_text().splitlines()[place - 1]


SAID = {
    "torch_oom": "out_of_memory: rank 5 on n2 ran out of GPU memory",
    "does_not_start": "does not start: the account has no such QOS",
    "supervisor_killed": "node_failure: the supervisor was killed; nothing new was saved",
    "environment": "the run is failed: the job ended before its training began: x; hpc-train:"
    " env.venv cannot be activated",
    "refused_at_start": "the run is failed: the job ended before its training began: hpc-train:"
    " error: the plan wants 2 nodes and job 7 has 1 (n1); fix: ask for 2 nodes",
    "moved_in_queue": "the run is failed: the job ended before attempt 1 began: the run was moved"
    " from /r/x to /s/x while its job waited; slurmd could not open /r/x/l; hpc-train resume /s/x",
    "log_folder": "the run is failed: the job ended before its training began: its node could not"
    " open the job's log in /r/x, which is read-only; once it can be written: hpc-train resume x",
    "unseen_folder": "the run is failed: the job ended before its training began: its node could"
    " not open the job's log in /tmp/runs/x/1/submitit (Slurm: JobLaunchFailure): as a rule that"
    " folder is on a file system which the nodes do not see; set runs_dir",
    "time_limit": "Slurm's record: TIMEOUT, exit code 0:0, on n1",
    "no_requeue": "timeout: the job's limit came near; saved at step 9 (requeue.enabled is false)",
    "unsaved_limit": "the run is timed_out: TimeLimit",
    "preempted": "Slurm's record: PREEMPTED, exit code 0:0, on n1",
    "cancelled": "Slurm's record: CANCELLED by 1000, exit code 0:0, on n1",
    "node_failed": "Slurm's record: NODE_FAIL, exit code 0:0, on n1",
    "vanished": "the run is lost: no process of it is left, and it left no end",
    "failed": "Slurm's record: FAILED, exit code 1:0, on n1",
}


@pytest.mark.parametrize("name", SAID)
def test_what_slurm_and_the_runs_state_say_is_read(name):
    logs = ReadLogs()
    logs.reader.feed_history(SAID[name], Evidence(file="events.jsonl", line=1, text=SAID[name]))
    (found,) = logs.findings()
    assert found.name == name
    assert found.cause


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("hang", "nothing moved for 300 s (limit 300 s); late: ranks 0, 1 on n1"),
        ("network_failure", "rank 0 on n1 lost its peers first: x"),
    ],
)
def test_the_dumps_of_torchs_flight_recorder_are_read(made, outcome, reason):
    ended(made, outcome, reason)
    files = write_dumps(made.run.attempt(0).path, {0: [call(4), OPEN], 1: [call(4)]})
    for rank, file in enumerate(files):
        Path(file).rename(f"{made.run.attempt(0).flight_recorder}{rank}")
    assert first(made).is_known
    found = diagnose_run(made.run).findings
    recorded = next(item for item in found if item.name == "collective_timeout")
    assert (recorded.rank, len(recorded.evidence)) == (1, 2)
    assert found[0].name == ("hang" if outcome == "hang" else "collective_timeout")


def test_who_was_killed_from_outside_is_explained_by_the_words_of_the_jobs_log(made):
    ended(made, "node_failure", "rank 5 on n2 was killed by SIGKILL first, by x", rank=5, node="n2")
    assert first(made).name == "killed_rank"
    write(
        made.run.job_log("7"),
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have"
        " been OOM Killed.\n",
    )
    found = first(made)
    assert (found.name, found.is_known) == ("host_oom", True)


def test_a_lost_peer_is_explained_by_the_log_of_the_rank_that_says_why(made):
    ended(made, "network_failure", "rank 0 on n1 lost its peers first: x", rank=0, node="n1")
    write(made.run.attempt(0).rank_log(0), "RuntimeError: [1] Connection closed by peer\n")
    xid = "Nov 21 08:04:51 n2 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    write(made.run.attempt(0).rank_log(5), f"step 3\n{xid}\n")
    found = first(made)
    assert (found.name, found.rank, found.node) == ("xid_lost", 5, "n2")


def test_what_no_rule_knows_is_told_with_its_traceback(made):
    ended(made, "user_error", "rank 5 on n2 failed at step 12: KeyError: 'labels' (train.py:42)",
          rank=5, node="n2", failed_step=12)  # fmt: skip
    left(made, 5, "KeyError: 'labels'")
    diagnosis = diagnose_run(made.run)
    found = diagnosis.findings[0]
    assert (found.name, found.rank, found.step, found.is_known) == ("failed", 5, 12, False)
    lines = [*told(diagnosis)]
    assert "KeyError: 'labels' (train.py:42); no rule knows why" in "\n".join(lines)
    assert lines[-1].strip() == "KeyError: 'labels'"


def test_a_clear_message_of_our_own_is_a_cause_and_keeps_its_own_fix(made):
    ended(made, "user_error", "rank 0 on n1 failed: data: the set is empty", rank=0, node="n1")
    judged = asdict(failure_of(CheckError("data: the set is empty", "give it a path")))
    write_exit(
        made.run.attempt(0), ExitRecord(rank=0, node="n1", time=BEGAN + 50, step=0, **judged)
    )
    found = first(made)
    assert (found.is_known, found.fix) == (True, "give it a path")
    assert "the set is empty" in found.cause


def test_a_run_that_left_no_end_is_told_by_its_jobs_log(made):
    write(made.run.job_log("7"), "/var/x: line 4: python: command not found\nbash: x\n")
    diagnosis = diagnose_run(made.run)
    assert diagnosis.findings[0].name in ("failed", "command_missing")
    write(made.run.job_log("7"), "python: error while loading shared libraries: libssl.so.3: cannot"
          " open shared object file: No such file or directory\n")  # fmt: skip
    assert diagnose_run(made.run).findings[0].name == "shared_library"


def test_a_run_that_is_complete_is_healthy_and_its_earlier_attempts_are_notes(made):
    ended(made, "hang", "nothing moved for 300 s (limit 300 s); late: rank 5 on n2")
    made.attempt(1, 200, steps=(0, 20))
    made.end(400)
    diagnosis = diagnose_run(made.run)
    assert diagnosis.findings == ()
    assert "completed" in diagnosis.state
    assert diagnosis.notes == (
        "attempt 0 ended as hang: nothing moved for 300 s (limit 300 s); late: rank 5 on n2",
    )
    assert diagnose_run(made.run, attempt=0).findings[0].name == "hang"
    with pytest.raises(UsageError, match="--attempt 5: there is none"):
        diagnose_run(made.run, attempt=5)


def test_what_slurm_recorded_is_told_where_the_run_has_no_end(tmp_path, monkeypatch):
    made = make_run(tmp_path)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, says in {"squeue": "exit 0", "sacct": "echo 'OUT_OF_MEMORY|0:125|n2'"}.items():
        (folder / name).write_text(f"#!/bin/sh\n{says}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    made.tell(0, EventKind.SUBMITTED, job_id="7", backend="slurm")
    made.tell(10, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7", nodes=["n1", "n2"])
    monkeypatch.setattr("time.time", lambda: BEGAN + 5000)
    (found, *_) = diagnose_run(made.run).findings
    assert found.name == "host_oom"
    assert "OUT_OF_MEMORY, exit code 0:125, on n2" in found.evidence[0].text


def test_what_the_monitor_of_the_node_saw_last_is_evidence_where_memory_ran_out(made):
    reason = "rank 5 on n2: the node ran out of host memory, and its kernel killed the process"
    ended(made, "out_of_memory", reason, rank=5, node="n2")
    full = gpu_line(90) | {"memory_used_mib": 511_000, "disk_free_mib": 2048}
    made.watch("n2", [gpu_line(80), full])
    with (made.run.monitor / "n2.jsonl").open("a") as stream:
        stream.write('{"time": 3, "memory_us')  # torn
    found = first(made)
    seen = found.evidence[-1]
    assert (Path(seen.file).name, seen.line) == ("n2.jsonl", 2)
    assert (
        "n2 at its last sample: 499 of 500 GiB of memory in use, 2.0 GiB of disk free" in seen.text
    )
    assert "GPU 3 29 of 80 GiB" in seen.text


def ruin_events(run):
    whole = run.events.read_text()
    run.events.write_bytes(b"\xff\x00{\n" + whole.encode() + b'{"time": 1, "event": "attempt_en')


def unreadable(run):
    log = run.attempt(0).rank_log(0)
    log.unlink()
    log.mkdir()  # root may read all files; nobody reads a folder


def old_version(run):
    lines = [json.loads(line) for line in run.events.read_text().splitlines()]
    for line in lines:
        line.pop("reason", None)
        line["of_another_version"] = {"x": 1}
    run.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run.attempt(0).path / "exits" / "rank-5.json").write_text('{"rank": 5, "version": 0}')


RUINED = {
    "torn events": ruin_events,
    "no plan": lambda run: run.plan.unlink(missing_ok=True),
    "no attempts": lambda run: shutil.rmtree(run.attempts),
    "no events": lambda run: run.events.unlink(),
    "a log that cannot be read": unreadable,
    "an older version": old_version,
    "binary rubbish": lambda run: run.attempt(0).rank_log(0).write_bytes(bytes(range(256)) * 999),
    "torn records": lambda run: (run.attempt(0).exit_record(5)).write_text('{"rank": 5, "no'),
    "links to nothing": lambda run: run.attempt(0).rank_log(3).symlink_to("/nowhere"),
}


@pytest.mark.parametrize("how", RUINED)
def test_of_a_ruined_folder_what_is_there_is_read(made, how):
    ended(made, "network_failure", "rank 0 on n1 lost its peers first: x", rank=0, node="n1")
    write(made.run.attempt(0).rank_log(0), "Connection closed by peer\n")
    left(made, 5, "KeyError: 'labels'")
    RUINED[how](made.run)
    diagnosis = diagnose_run(made.run)
    assert diagnosis.findings
    assert [*told(diagnosis)]
    assert json.dumps(diagnosis.to_json())
    if how == "a log that cannot be read":
        assert any("cannot be read" in note for note in diagnosis.notes)
