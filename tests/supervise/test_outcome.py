"""Who failed first: from exit records, srun's words and torch's elastic launcher's words."""

from __future__ import annotations

from hpc_train.plan.states import Outcome, RankExit
from hpc_train.store.ranks import ExitRecord
from hpc_train.supervise.outcome import (
    Death,
    Hang,
    Seen,
    classify,
    deaths_in_elastic_log,
    deaths_in_srun_log,
)

# Printed by srun 22.05 when rank 5 of 12 was killed.
SRUN_KILLED = """\
srun: error: node2: task 5: Killed
srun: Terminating StepId=3.0
slurmstepd-node1: error: *** STEP 3.0 ON node1 CANCELLED AT 2026-11-21T07:47:28 ***
srun: error: node1: tasks 0-3: Terminated
srun: error: node2: tasks 4,6-7: Terminated
srun: error: node3: tasks 8-11: Terminated
"""
ELASTIC_FAILED = """\
E1121 08:04:20.1 1 torch/distributed/elastic/multiprocessing/api.py:1] failed (exitcode: -9)
============================================================
hpc_train.train FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-21_08:04:20
  host      : vm
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 120)
  error_file: <N/A>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_08:04:19
  host      : vm
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 121)
  error_file: <N/A>
============================================================
"""


def record(rank: int, time: float, code: int, **fields: object) -> ExitRecord:
    return ExitRecord(rank=rank, node=f"node{rank // 4 + 1}", time=time, code=code, **fields)


def test_srun_names_the_killed_task_and_not_those_it_stopped_afterwards() -> None:
    assert deaths_in_srun_log(SRUN_KILLED) == [Death(rank=5, node="node2", signal=9)]


def test_srun_exit_codes_and_lists_of_tasks_are_read() -> None:
    deaths = deaths_in_srun_log("srun: error: rack1n01: tasks 1,3-4: Exited with exit code 75\n")
    assert [(death.rank, death.code) for death in deaths] == [(1, 75), (3, 75), (4, 75)]


def test_a_task_killed_for_memory_is_read_as_killed() -> None:
    assert deaths_in_srun_log("srun: error: node1: task 0: Out Of Memory\n")[0].signal == 9


def test_the_elastic_launchers_root_cause_comes_first() -> None:
    deaths = deaths_in_elastic_log(ELASTIC_FAILED)
    assert [(death.rank, death.signal, death.code) for death in deaths] == [(1, 9, 0), (0, 0, 1)]


def test_the_first_failure_by_time_is_the_culprit_even_among_broken_connections() -> None:
    seen = Seen(
        world_size=12,
        launcher_code=1,
        records=[
            record(0, 10.1, RankExit.NETWORK, kind="network", error="Connection closed by peer"),
            record(7, 10.3, 1, error="ValueError: bad label", where="model.py:12", step=50),
            record(9, 10.9, 1, error="ValueError: later", where="model.py:12", step=50),
        ],
    )
    ending = classify(seen)
    assert ending.outcome is Outcome.USER_ERROR
    assert (ending.rank, ending.node, ending.failed_step) == (7, "node2", 50)
    assert "ValueError: bad label (model.py:12)" in ending.reason


def test_a_rank_killed_from_outside_is_named_and_is_not_the_users_error() -> None:
    lost_peer = record(0, 10.0, RankExit.NETWORK, error="Connection reset")
    seen = Seen(
        world_size=12,
        launcher_code=137,
        records=[lost_peer],
        deaths=deaths_in_srun_log(SRUN_KILLED),
    )
    ending = classify(seen)
    assert ending.outcome is Outcome.NODE_FAILURE
    assert ending.reason.startswith("rank 5 on node2 was killed by SIGKILL first")


def test_a_kernel_that_kills_for_memory_is_told_from_a_failure_of_the_node() -> None:
    seen = Seen(
        world_size=4,
        launcher_code=137,
        deaths=[Death(rank=1, node="node1", signal=9)],
        oom_nodes=("node1",),
    )
    ending = classify(seen)
    assert ending.outcome is Outcome.OUT_OF_MEMORY
    assert "host memory" in ending.reason


def test_gpu_memory_is_told_apart_by_the_ranks_own_record() -> None:
    oom = record(2, 1.0, 1, kind="gpu_memory", error="OutOfMemoryError: CUDA out of memory")
    ending = classify(Seen(world_size=4, launcher_code=1, records=[oom]))
    assert ending.outcome is Outcome.OUT_OF_MEMORY
    assert "GPU memory" in ending.reason


def test_ranks_that_saved_make_a_preemption_or_a_timeout_by_what_slurm_says() -> None:
    saved = [record(rank, 5.0, RankExit.SAVED, kind="saved", step=42) for rank in range(4)]
    for outcome in (Outcome.PREEMPTED, Outcome.TIMEOUT):
        seen = Seen(
            world_size=4,
            launcher_code=75,
            records=saved,
            stop_outcome=outcome,
            stop_reason="why",
            saved_step=42,
        )
        ending = classify(seen)
        assert ending.outcome is outcome
        assert ending.reason == "why; saved at step 42"


def test_only_broken_connections_are_a_network_failure_that_blames_nobody() -> None:
    records = [record(rank, 3.0 + rank, RankExit.NETWORK, error="timed out") for rank in range(4)]
    ending = classify(Seen(world_size=4, launcher_code=76, records=records))
    assert ending.outcome is Outcome.NETWORK_FAILURE
    assert ending.blamed == ()


def test_a_node_that_does_not_answer_is_blamed_before_the_hang_that_it_caused() -> None:
    hang = Hang(reason="nothing moved", late_ranks=(4,), nodes=("node2",))
    seen = Seen(world_size=12, launcher_code=1, hang=hang, lost_nodes=("node3",))
    ending = classify(seen)
    assert ending.outcome is Outcome.NODE_FAILURE
    assert ending.blamed == ("node3",)


def test_a_hang_names_the_late_rank_and_blames_its_node() -> None:
    hang = Hang(reason="nothing moved for 60 s", late_ranks=(4,), nodes=("node2",))
    ending = classify(Seen(world_size=12, launcher_code=137, hang=hang))
    assert ending.outcome is Outcome.HANG
    assert (ending.rank, ending.blamed) == (4, ("node2",))


def test_ranks_that_never_started_show_the_launchers_last_words() -> None:
    seen = Seen(world_size=4, launcher_code=1, launcher_tail="srun: error: Unable to create step\n")
    assert "Unable to create step" in classify(seen).reason


def test_a_cancel_wins_over_what_the_ranks_did_meanwhile() -> None:
    seen = Seen(
        world_size=1,
        launcher_code=1,
        records=[record(0, 1.0, 1, error="KeyError: 'x'")],
        stop_outcome=Outcome.CANCELLED,
        stop_reason="`hpc-train cancel` asked for it",
    )
    assert classify(seen).outcome is Outcome.CANCELLED


def test_ranks_that_the_supervisor_told_to_leave_do_not_hide_the_dead_node() -> None:
    told = "srun: error: node1: task 0: Exited with exit code 76\nsrun: Terminating StepId=3.0\n"
    seen = Seen(
        world_size=3, launcher_code=76, deaths=deaths_in_srun_log(told), lost_nodes=("node3",)
    )
    ending = classify(seen)
    assert ending.outcome is Outcome.NODE_FAILURE
    assert (ending.blamed, ending.gone) == (("node3",), ("node3",))
    assert ending.reason == "node3 no longer answers"


def test_a_stop_that_comes_before_python_has_started_is_no_error_of_the_users() -> None:
    deaths = deaths_in_srun_log("srun: error: node1: task 0: Terminated\n")
    for told, outcome in ((None, Outcome.PREEMPTED), (Outcome.TIMEOUT, Outcome.TIMEOUT)):
        seen = Seen(world_size=1, launcher_code=143, deaths=deaths, stop_outcome=told)
        assert classify(seen).outcome is outcome
        assert "nothing new was saved" in classify(seen).reason


def test_one_lost_connection_alone_is_a_network_failure_with_its_step() -> None:
    lone = record(2, 3.0, RankExit.NETWORK, error="DistNetworkError: timed out", step=17)
    ending = classify(Seen(world_size=4, launcher_code=76, records=[lone], started=True))
    assert ending.outcome is Outcome.NETWORK_FAILURE
    assert (ending.rank, ending.node, ending.failed_step) == (2, "node1", 17)
    assert ending.reason == "rank 2 on node1 lost its peers first: DistNetworkError: timed out"
