"""What launchers and Slurm say of the end of a job, and what is a consequence of it."""

from __future__ import annotations

import re

import pytest

from tests.diagnose.test_causes import findings

CLOSED = {
    "torchrun": "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
    "record": '    "message": "RendezvousClosedError: ",',
    "etcd": "Rendezvous for run_id=j1 was observed to be closed",
}


@pytest.mark.parametrize("line", CLOSED.values())
def test_a_rendezvous_that_was_closed_was_reached(line):
    (found,) = findings(f"{line}\n")
    assert "its store answered" in found.cause
    assert "--rdzv-id" in found.fix
    assert not re.search(r"resolve|port |reach", found.fix)


def test_what_another_process_raised_is_told_before_the_rendezvous_that_closed_for_it():
    trace = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: seven\n'
    (found,) = findings(trace + CLOSED["torchrun"])
    assert found.cause == "a process raised ValueError: seven"


EXITED = "srun: error: node1: tasks 2-3: Exited with exit code 1"
REQUEUED = (
    "slurmstepd: error: *** JOB 6 ON node1 CANCELLED AT 2026-08-12T03:06:12 DUE TO JOB REQUEUE ***"
)
PREEMPTED = "WARNING - Caught signal SIGUSR2 on node1: this job is preempted."


def test_a_preemption_outranks_the_exit_codes_that_follow_it():
    (found,) = findings(f"{PREEMPTED}\n{REQUEUED}\n{EXITED}")
    assert (found.name, found.is_known) == ("preempted", True)


def test_processes_that_could_not_be_killed_are_of_the_node_that_slurm_names():
    (found,) = findings(
        "slurmstepd: error: *** STEP 6.0 ON cx206 CANCELLED AT 2026-12-14T09:13:55 ***\n"
        "slurmstepd: error: *** STEP 6.0 STEPD TERMINATED ON cx206 AT 2026-12-14T09:14:56 DUE TO"
        " JOB NOT ENDING WITH SIGNALS ***\n"
    )
    assert (found.name, found.node) == ("unkillable", "cx206")
    assert "drains" in found.fix


@pytest.mark.parametrize("has_frames", [False, True])
def test_frames_of_python_are_spoken_of_where_the_log_has_them(has_frames):
    fatal = "Fatal Python error: Segmentation fault\n" * has_frames
    (found,) = findings(f"{fatal}[node1:16086] Signal: Segmentation fault (11)\n")
    assert ("below Fatal Python error" in found.fix) is has_frames


@pytest.mark.parametrize("xid", [79, 94, 145, 119])
def test_what_the_driver_ended_after_a_failure_of_the_hardware_is_no_second_failure(xid):
    lines = [f"NVRM: Xid (PCI:0000:{gpu}:00): {n}, pid=7" for gpu, n in (("dc", xid), ("97", 45))]
    (found,) = findings("\n".join(lines))
    assert f"Xid {xid}" in found.cause
    assert "Xid 45" not in found.cause + found.alike


def test_a_closed_terminal_ends_torchrun_also_under_nohup():
    (found,) = findings(
        "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down"
    )
    assert "nohup does not help" in found.fix
    assert "tmux" in found.fix


SHAPE = (
    "        size mismatch for {}: copying a param with shape torch.Size({}) from checkpoint,"
    " the shape in current model is torch.Size({})."
)


def test_a_checkpoint_with_one_true_shape_that_differs_holds_weights():
    bias, weight = SHAPE.format("b", [1], [9]), SHAPE.format("w", [1, 64], [9, 64])
    assert [item.name for item in findings(f"{bias}\n{weight}")] == ["weights_shape"]
    (found,) = findings("\n".join([SHAPE.format("a", [1], [64, 9]), bias]))
    assert found.name == "weights_placeholder"


def report(*ranks: int) -> str:
    """torchrun's, as torch/distributed/elastic/multiprocessing/errors writes it."""
    fields = "[{0}]:\n  time      : 2026-04-01_06:16:50\n  host      : nx02\n  rank      : {0}"
    fields += " (local_rank: {0})\n  exitcode  : 1 (pid: 1{0})\n  error_file: <N/A>\n"
    first, *others = (fields.format(rank) for rank in ranks)
    failures = "".join(others) or "  <NO_OTHER_FAILURES>\n"
    return f"Failures:\n{failures}{'-' * 60}\nRoot Cause (first observed failure):\n{first}"


def test_a_report_of_torchrun_names_all_ranks_that_failed():
    (found,) = findings(report(4, 5, 6, 7))
    assert found.cause.startswith(
        "rank 4 (the first; its torchrun saw 5-7 fail as well) ended with exit code 1"
    )
    (cut,) = findings(report(4, 6, 7).partition("[6]:")[2])
    assert "saw 6-7 fail as well" in cut.cause
    assert "as well" not in findings(report(4, 5) + report(2))[0].alike


def test_a_rank_that_was_ended_with_the_first_one_has_not_failed():
    text = report(4, 5, 6).replace("1 (pid: 15)", "-15 (pid: 15)")
    assert "torchrun saw 6 fail as well" in findings(text)[0].cause


def test_a_report_of_torchrun_that_was_copied_flat_is_read():
    flat = "rank2 (local rank: 2)exitcode: -9 (pid: 36071)error file: <N/A>"
    signal = "traceback : signal 9 (SIGKILL) received by PID 36071"
    for text in (flat, f"{flat}\n{signal}"):
        (found,) = findings(text)
        assert found.cause.startswith("rank 2 was killed (SIGKILL)")
        assert "record" not in found.fix
    assert "was killed (SIGKILL)" in findings(signal)[0].cause


EXIT = """Error waiting on exit barrier. Elapsed: 300.1 seconds
Traceback (most recent call last):
  File "/o/torch/distributed/elastic/agent/server/api.py", line 947, in _exit_barrier
    store_util.barrier(
  File "/o/torch/distributed/elastic/utils/store.py", line 79, in barrier
    synchronize(store, data, rank, world_size, key_prefix, barrier_timeout)
RuntimeError: Socket Timeout
"""


def test_agents_that_waited_for_each_other_at_the_end_rank_last():
    (found,) = findings(EXIT)
    assert found.cause.startswith("torchrun's agents waited for each other at the end")
    assert "store_key" not in [item.name for item in findings(EXIT)]
    (other,) = findings(
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\n'
        f"ValueError: seven\n{EXIT}"
    )
    assert other.cause == "a process raised ValueError: seven"


BACK_OFF = (
    "back-off 40s restarting failed container=trainer pod=job-worker-1_team-a(0f1-2)",
    "kubectl logs -n team-a job-worker-1 -c trainer --previous",
)
ENDED = "INFO Pod: team-a.job-worker-1 exited with code {}"


def test_a_container_that_is_started_again_and_again_has_its_reason_in_its_own_log():
    for text, fix in (
        BACK_OFF,
        (ENDED.format(1), "kubectl logs -n team-a job-worker-1 --previous"),
        ('  "reason": "CrashLoopBackOff",', "kubectl logs POD --previous"),
    ):
        (found,) = findings(text)
        assert (found.name, fix in found.fix) == ("crash_loop", True)
    assert findings(ENDED.format(0)) == ()
