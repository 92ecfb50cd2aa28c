"""torchrun's events and error files, and tracebacks that JSON or a paste has changed."""

from __future__ import annotations

import json

import pytest

from hpc_train.diagnose.read_logs import ReadLogs

LAUNCHER = (
    "Traceback (most recent call last):\n"
    '  File "/env/bin/torchrun", line 8, in <module>\n'
    "    sys.exit(main())\n"
    '  File "/env/lib/python3.10/site-packages/torch/distributed/launcher/api.py", line 250, in'
    " launch_agent\n"
    "    raise {}\n"
)


def event(rank: int | None = 3, *, error: object = "<NONE>", codes: object = None) -> str:
    """As `_construct_event` and json.dumps write it."""
    worker = {"group_world_size": 2, "local_rank": [1]}
    said = {
        "run_id": "a",
        "global_rank": rank,
        "group_rank": 1,
        "worker_id": "7",
        "role": "default",
        "hostname": "node07",
        "state": "FAILED",
        "total_run_time": 43,
        "rdzv_backend": "c10d",
        "raw_error": json.dumps({"message": error}),
        "metadata": json.dumps({**worker, "exit_code": codes} if codes else worker),
        "agent_restarts": 3,
    }
    name = "torchelastic.worker.status.FAILED"
    source = "AGENT" if rank is None else "WORKER"
    return json.dumps({"name": name, "source": source, "timestamp": 0, "metadata": said})


def diagnosis(tmp_path, text: str):
    log = tmp_path / "a.log"
    log.write_text(text)
    logs = ReadLogs()
    logs.read(str(log))
    return logs.diagnosis("a")


def test_an_event_of_torchrun_tells_which_rank_failed_where(tmp_path):
    first = diagnosis(tmp_path, event() + "\n").findings[0]
    assert (first.rank, first.node) == (3, "node07")
    assert "rank 3 on node07 failed after 43 s, with 3 restarts" in first.cause
    assert "torch.distributed.elastic" in first.fix
    assert not first.is_known


def test_an_event_tells_the_error_that_the_rank_has_recorded(tmp_path):
    error = {"message": "RuntimeError: CUDA error: an illegal memory access was encountered\nmore"}
    first = diagnosis(tmp_path, event(error=error) + "\n").findings[0]
    assert (first.name, first.rank, first.node) == ("cuda_kernel", 3, "node07")


def test_an_event_tells_the_signal_that_ended_the_rank(tmp_path):
    first = diagnosis(tmp_path, event(codes=[-9]) + "\n").findings[0]
    assert first.cause.startswith("rank 3 was killed (SIGKILL)")


@pytest.mark.parametrize(
    "line", [event(None), event().replace("FAILED", "SUCCEEDED"), event()[:200]]
)
def test_what_is_no_failure_of_a_rank_is_none(line, tmp_path):
    assert diagnosis(tmp_path, line + "\nstep 2\n").findings == ()


def test_beside_a_cause_that_names_no_rank_the_event_does(tmp_path):
    text = event() + '\n{\n  "message": {\n    "message": "MemoryError: std::bad_alloc",\n'
    found = diagnosis(tmp_path, text).findings
    assert [item.name for item in found] == ["host_memory", "worker_failed"]
    text = event() + "\n[rank3]: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert [item.name for item in diagnosis(tmp_path, text).findings] == ["torch_oom"]


def test_a_traceback_that_json_has_put_into_one_line_is_read(tmp_path):
    error = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    text = json.dumps({"py_callstack": LAUNCHER.format("ChildFailedError(") + error})
    told = diagnosis(tmp_path, text + "\n")
    assert told.findings[0].name == "child_failed"
    assert told.traceback[-1].strip().endswith("ChildFailedError:")
    text = json.dumps({"exc_info": LAUNCHER.format("x") + "ImportError: libcuda.so: wrong\n"})
    assert diagnosis(tmp_path, text + "\n").findings[0].name == "import_failed"


@pytest.mark.parametrize(
    ("file", "todo"),
    [
        ("/env/lib/python3.10/site-packages/torch/distributed/run.py", ""),
        ("C:\\\\env\\\\Lib\\\\site-packages\\\\torch\\\\serialization.py", ""),
        ("/home/u/train.py", "the line of the program that the traceback names"),
    ],
)
def test_only_a_line_of_the_program_itself_is_named_as_what_to_mend(file, todo, tmp_path):
    text = f'Traceback (most recent call last):\n  File "{file}", line 3, in f\n    g()\nOdd: 3\n'
    (found,) = diagnosis(tmp_path, text).findings
    assert todo == found.fix


def test_a_traceback_that_lost_its_blanks_is_still_one(tmp_path):
    frames = 'File "/a/b.py", line 3, in f\nx = g()\nFile "/a/c.py", line 4, in g\nh()\n~~^^\n'
    text = f"Traceback (most recent call last):\n{frames}Odd: bad\nstep 2\n"
    told = diagnosis(tmp_path, text)
    assert told.findings[0].cause == "a traceback ends with Odd: bad"
    assert told.traceback == tuple(text.splitlines()[:-1])


STORE = (
    "Traceback (most recent call last):\n"
    'File "/env/lib/python3.6/site-packages/torch/distributed/{}\n'
    "store = TCPStore(master_addr, master_port, world_size, start_daemon)\n"
    "RuntimeError: {}\n"
)


@pytest.mark.parametrize("why", ["Connection timed out", "Connection refused", "No route to host"])
@pytest.mark.parametrize(
    "frame",
    [
        'rendezvous.py", line 143, in _env_rendezvous_handler',
        'rendezvous.py", line 189, in _create_c10d_store',
        'elastic/rendezvous/c10d_rendezvous_backend.py", line 155, in _create_tcp_store',
    ],
)
def test_who_does_not_come_to_the_store_is_told_its_address_and_port(frame, why, tmp_path):
    first = diagnosis(tmp_path, STORE.format(frame, why)).findings[0]
    assert (first.name, first.is_known) == ("store_connect", True)
    assert f"(MASTER_ADDR, MASTER_PORT) could not be reached ({why})" in first.cause
    assert "does rank 0 run" in first.fix


def test_a_connection_of_the_program_itself_is_none_to_the_store(tmp_path):
    text = STORE.format('../../own/feed.py", line 7, in read', "Connection timed out")
    assert diagnosis(tmp_path, text).findings[0].name == "raised"


REPORT = (
    "train.py FAILED\n-----\nFailures:\n{}-----\nRoot Cause (first observed failure):\n[0]:\n"
    "  time      : 2026-01-02_10:00:00\n  host      : node07\n  rank      : 2 (local_rank: 2)\n"
    "  exitcode  : -9 (pid: 7)\n"
)


def test_where_torchrun_saw_no_other_rank_fail_that_is_told(tmp_path):
    alone = diagnosis(tmp_path, REPORT.format("  <NO_OTHER_FAILURES>\n")).findings[0]
    assert alone.cause.startswith("rank 2 (the only one that its torchrun saw fail) was killed")
    other = "[1]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : -15 (pid: 8)\n"
    assert diagnosis(tmp_path, REPORT.format(other)).findings[0].cause.startswith("rank 2 was ki")
