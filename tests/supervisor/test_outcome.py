"""Who failed first, and what the attempt's end is called: every judge of `supervisor.outcome`."""

from __future__ import annotations

import dataclasses

import pytest

from hpc_train.plan.states import Outcome, RankExit, RunState
from hpc_train.runs.ranks import ExitRecord
from hpc_train.supervisor.deaths import (
    Death,
    deaths_in_srun_log,
)
from hpc_train.supervisor.evidence import AttemptEvidence, Hang
from hpc_train.supervisor.outcome import classify
from tests.supervisor.rank_ends import SRUN_KILLED, killed


def record(rank: int, time: float, code: int, **fields: object) -> ExitRecord:
    return ExitRecord(rank=rank, node=f"node{rank // 4 + 1}", time=time, code=code, **fields)


def test_the_first_failure_by_time_is_the_culprit_even_among_broken_connections() -> None:
    seen = AttemptEvidence(
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
    seen = AttemptEvidence(
        world_size=12,
        launcher_code=137,
        records=[lost_peer],
        deaths=deaths_in_srun_log(SRUN_KILLED),
    )
    ending = classify(seen)
    assert ending.outcome is Outcome.NODE_FAILURE
    assert ending.reason.startswith("rank 5 on node2 was killed by SIGKILL first")


def test_a_kernel_that_kills_for_memory_is_told_from_a_failure_of_the_node() -> None:
    seen = AttemptEvidence(
        world_size=4,
        launcher_code=137,
        deaths=[Death(rank=1, node="node1", signal=9)],
        oom_nodes=("node1",),
    )
    ending = classify(seen)
    assert ending.outcome is Outcome.OUT_OF_MEMORY
    assert "host memory" in ending.reason


def test_a_data_worker_that_was_killed_is_out_of_memory_where_the_kernel_counted_it() -> None:
    said = "DataLoader worker (pid 7) is killed by signal: Killed"
    failed = [record(1, 1.0, 1, kind="worker_killed", error=said)]
    seen = AttemptEvidence(world_size=4, launcher_code=1, records=failed, oom_nodes=("node0",))
    ending = classify(seen)
    assert ending.outcome is Outcome.OUT_OF_MEMORY
    assert ending.reason.endswith("ran out of host memory, and its kernel killed the data worker")
    ending = classify(AttemptEvidence(world_size=4, launcher_code=1, records=failed))
    assert ending.outcome is Outcome.USER_ERROR
    assert ending.reason.endswith(said)


def test_gpu_memory_is_told_apart_by_the_ranks_own_record() -> None:
    oom = record(2, 1.0, 1, kind="gpu_memory", error="OutOfMemoryError: CUDA out of memory")
    ending = classify(AttemptEvidence(world_size=4, launcher_code=1, records=[oom]))
    assert ending.outcome is Outcome.OUT_OF_MEMORY
    assert "GPU memory" in ending.reason


def test_ranks_that_saved_make_a_preemption_or_a_timeout_by_what_slurm_says() -> None:
    saved = [record(rank, 5.0, RankExit.SAVED, kind="saved", step=42) for rank in range(4)]
    for outcome in (Outcome.PREEMPTED, Outcome.TIMEOUT):
        seen = AttemptEvidence(
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
    ending = classify(AttemptEvidence(world_size=4, launcher_code=76, records=records))
    assert ending.outcome is Outcome.NETWORK_FAILURE
    assert ending.blamed == ()


def test_a_node_that_does_not_answer_is_blamed_before_the_hang_that_it_caused() -> None:
    hang = Hang(reason="nothing moved", late_ranks=(4,), nodes=("node2",))
    seen = AttemptEvidence(world_size=12, launcher_code=1, hang=hang, lost_nodes=("node3",))
    ending = classify(seen)
    assert ending.outcome is Outcome.NODE_FAILURE
    assert ending.blamed == ("node3",)


@pytest.mark.parametrize(
    ("taken", "reason"),
    [
        (("node2", "node3"), "Slurm took node3 from the job (node failure; sinfo -R may say why)"),
        (("node2",), "node3 no longer answers"),
        ((), "node3 no longer answers"),
    ],
)
def test_slurm_takes_a_lost_node_only_where_it_runs_the_step(
    taken: tuple[str, ...], reason: str
) -> None:
    """A step over ssh says "Node failure on" as srun does, of hosts that no Slurm has."""
    said = "hpc-train ssh: error: Node failure on node3\n"
    seen = AttemptEvidence(
        world_size=12,
        launcher_code=1,
        lost_nodes=("node3",),
        taken_nodes=taken,
        launcher_tail=said,
    )
    assert classify(seen).reason == reason


def test_a_hang_names_the_late_rank_and_blames_its_node() -> None:
    hang = Hang(reason="nothing moved for 60 s", late_ranks=(4,), nodes=("node2",))
    ending = classify(AttemptEvidence(world_size=12, launcher_code=137, hang=hang))
    assert ending.outcome is Outcome.HANG
    assert (ending.rank, ending.blamed) == (4, ("node2",))


def test_ranks_that_never_started_show_the_launchers_last_words() -> None:
    seen = AttemptEvidence(
        world_size=4, launcher_code=1, launcher_tail="srun: error: Unable to create step\n"
    )
    assert "Unable to create step" in classify(seen).reason


def test_a_cancel_wins_over_what_the_ranks_did_meanwhile() -> None:
    seen = AttemptEvidence(
        world_size=1,
        launcher_code=1,
        records=[record(0, 1.0, 1, error="KeyError: 'x'")],
        stop_outcome=Outcome.CANCELLED,
        stop_reason="`hpc-train cancel` asked for it",
    )
    assert classify(seen).outcome is Outcome.CANCELLED


def test_ranks_that_the_supervisor_told_to_leave_do_not_hide_the_dead_node() -> None:
    told = "srun: error: node1: task 0: Exited with exit code 76\nsrun: Terminating StepId=3.0\n"
    seen = AttemptEvidence(
        world_size=3, launcher_code=76, deaths=deaths_in_srun_log(told), lost_nodes=("node3",)
    )
    ending = classify(seen)
    assert ending.outcome is Outcome.NODE_FAILURE
    assert (ending.blamed, ending.gone) == (("node3",), ("node3",))
    assert ending.reason == "node3 no longer answers"


def test_a_stop_that_comes_before_python_has_started_is_no_error_of_the_users() -> None:
    deaths = deaths_in_srun_log("srun: error: node1: task 0: Terminated\n")
    for told, outcome in ((None, Outcome.PREEMPTED), (Outcome.TIMEOUT, Outcome.TIMEOUT)):
        seen = AttemptEvidence(world_size=1, launcher_code=143, deaths=deaths, stop_outcome=told)
        assert classify(seen).outcome is outcome
        assert "nothing new was saved" in classify(seen).reason


def test_a_step_that_srun_could_not_start_blames_that_node_and_not_the_ranks_it_stopped() -> None:
    ending = classify(
        AttemptEvidence(
            world_size=12,
            launcher_code=233,
            records=[record(0, 1.0, 1, error="RuntimeError: stopped while it started")],
            deaths=deaths_in_srun_log(SRUN_KILLED),
            unlaunched={"node3": "Communication connection failure"},
        )
    )
    assert (ending.outcome, ending.blamed, ending.gone) == (
        Outcome.NODE_FAILURE, ("node3",), ("node3",),
    )  # fmt: skip
    assert "node3: Communication connection failure" in ending.reason


def test_a_checkpoint_that_a_node_cannot_read_is_not_told_as_a_lost_peer() -> None:
    words = "UnreadableCheckpointError: step-000000010 cannot be read on this node: I/O error"
    unread = record(0, 3.0, RankExit.NETWORK, kind="storage", error=words)
    ending = classify(AttemptEvidence(world_size=2, launcher_code=76, records=[unread]))
    assert ending.outcome is Outcome.NETWORK_FAILURE
    assert ending.reason == f"rank 0 on node1 cannot begin: {words}"


def test_one_lost_connection_alone_is_a_network_failure_with_its_step() -> None:
    lone = record(2, 3.0, RankExit.NETWORK, error="DistNetworkError: timed out", step=17)
    ending = classify(AttemptEvidence(world_size=4, launcher_code=76, records=[lone], started=True))
    assert ending.outcome is Outcome.NETWORK_FAILURE
    assert (ending.rank, ending.node, ending.failed_step) == (2, "node1", 17)
    assert ending.reason == "rank 2 on node1 lost its peers first: DistNetworkError: timed out"


def test_a_crash_without_a_python_error_is_the_trainings_own() -> None:
    ending = classify(AttemptEvidence(world_size=1, launcher_code=139, deaths=[killed(signal=11)]))
    assert ending.outcome is Outcome.USER_ERROR
    assert ending.reason == ("rank 1 on node1 was killed by SIGSEGV first, without a Python error")
    ending = classify(
        AttemptEvidence(world_size=2, launcher_code=9, deaths=[killed(code=9)], started=True)
    )
    assert ending.outcome is Outcome.USER_ERROR
    assert ending.reason.startswith("rank 1 on node1 exited 9 first")
    assert ending.reason == "rank 1 on node1 exited 9 first, without a Python error"
    unnamed = classify(
        AttemptEvidence(world_size=1, launcher_code=1, deaths=[killed(signal=63, node="")])
    )
    assert unnamed.reason.startswith("rank 1 was killed by signal 63 first")
    assert (unnamed.rank, unnamed.error) == (1, "was killed by signal 63")


def test_a_rank_that_has_spoken_or_left_in_our_own_words_did_not_vanish() -> None:
    spoken = record(1, 1.0, RankExit.NETWORK, error="timed out")
    seen = AttemptEvidence(world_size=2, launcher_code=9, records=[spoken], deaths=[killed(code=9)])
    assert classify(seen).outcome is Outcome.NETWORK_FAILURE
    for code in (0, 75, 76, 77):
        seen = AttemptEvidence(
            world_size=2, launcher_code=1, deaths=[killed(code=code)], started=True
        )
        assert "no rank says why" in classify(seen).reason


def test_the_first_of_several_that_were_killed_is_the_culprit() -> None:
    deaths = [killed(rank=3, signal=9), killed(rank=1, signal=9)]
    assert classify(AttemptEvidence(world_size=4, launcher_code=137, deaths=deaths)).rank == 3


def test_memory_is_the_cause_where_the_killed_rank_was_or_may_have_been() -> None:
    def outcome(node: str, oom_nodes: tuple[str, ...]) -> Outcome:
        death = killed(signal=9, node=node)
        seen = AttemptEvidence(world_size=2, launcher_code=137, deaths=[death], oom_nodes=oom_nodes)
        return classify(seen).outcome

    assert outcome("node1", ("node1",)) is Outcome.OUT_OF_MEMORY
    assert outcome("node1", ("node2",)) is Outcome.NODE_FAILURE
    assert outcome("", ("node2",)) is Outcome.OUT_OF_MEMORY
    assert outcome("", ()) is Outcome.NODE_FAILURE


def test_a_rank_that_died_with_its_node_blames_the_node_and_two_nodes_both() -> None:
    lost = ("node1", "node2")
    seen = AttemptEvidence(
        world_size=2, launcher_code=1, deaths=[killed(signal=9)], lost_nodes=lost
    )
    ending = classify(seen)
    assert (ending.reason, ending.blamed, ending.node) == (
        "node1, node2 no longer answer",
        lost,
        "node1",
    )


def test_a_hang_that_nobody_caused_alone_blames_nobody() -> None:
    ending = classify(
        AttemptEvidence(world_size=2, launcher_code=0, hang=Hang(reason="nothing moved"))
    )
    assert (ending.outcome, ending.rank, ending.node) == (Outcome.HANG, None, "")
    killed_too = AttemptEvidence(
        world_size=2, launcher_code=9, hang=Hang(reason="x"), deaths=[killed(signal=9)]
    )
    assert classify(killed_too).outcome is Outcome.HANG, "we killed them"


def test_ranks_that_were_asked_to_stop_by_somebody_unknown_go_on_later() -> None:
    saved = record(0, 1.0, RankExit.SAVED, kind="saved", step=4)
    for cause, words in (("SIGUSR1", "SIGUSR1"), ("", "signal")):
        asked = ExitRecord(rank=1, node="node1", time=0.5, code=RankExit.SAVED, cause=cause)
        seen = AttemptEvidence(world_size=2, launcher_code=75, records=[asked, saved], saved_step=0)
        assert classify(seen).outcome is Outcome.PREEMPTED
        assert classify(seen).reason == f"the ranks were asked to stop ({words}); saved at step 0"
    unsaved = AttemptEvidence(
        world_size=1, launcher_code=75, stop_outcome=Outcome.TIMEOUT, stop_reason="late"
    )
    assert classify(unsaved).reason == "late; nothing new was saved"


def test_a_ranks_own_words_come_with_their_step_and_place_where_it_has_them() -> None:
    def reason(world_size: int, **more: object) -> str:
        own = record(0, 1.0, 1, error="ValueError: x", **more)
        return classify(
            AttemptEvidence(world_size=world_size, launcher_code=1, records=[own])
        ).reason

    assert reason(1) == "rank 0 on node1 failed: ValueError: x"
    assert reason(1, step=0) == "rank 0 on node1 failed at step 0: ValueError: x"
    assert reason(2, where="a.py:1") == "rank 0 on node1 failed: ValueError: x (a.py:1)"


def test_a_last_state_that_was_not_saved_is_the_reason_in_the_ranks_words() -> None:
    said = "trained to step 24, and its last state could not be saved: No space left on device (/x)"
    own = [record(rank, 1.0 + rank, 10, error=said, kind="unsaved", step=24) for rank in (0, 1)]
    ending = classify(AttemptEvidence(world_size=2, launcher_code=10, records=own))
    assert (ending.outcome, ending.reason) == (Outcome.USER_ERROR, said)
    assert ending.outcome.follows.state is RunState.FAILED


def test_the_launchers_last_line_is_quoted_if_it_said_any() -> None:
    silent = classify(AttemptEvidence(world_size=2, launcher_code=5))
    assert silent.reason == "the ranks never started (the launcher exited 5)"
    talks = AttemptEvidence(
        world_size=2, launcher_code=5, launcher_tail="first\nlast\n", started=True
    )
    assert classify(talks).reason == "the launcher exited 5 and no rank says why: last"
    spoke = AttemptEvidence(
        world_size=2, launcher_code=5, records=[record(0, 1.0, RankExit.FINISHED)]
    )
    assert classify(spoke).reason == "the launcher exited 5 and no rank says why"
    full = AttemptEvidence(world_size=2, launcher_code=5, disk_trouble="Disk quota exceeded")
    assert (classify(full).outcome, classify(full).error) == (
        Outcome.USER_ERROR,
        "Disk quota exceeded",
    )


def test_a_step_that_no_controller_answered_is_no_nodes_failure() -> None:
    words = "srun: error: Unable to confirm allocation: Unable to contact slurm controller"
    away = AttemptEvidence(world_size=2, launcher_code=1, launcher_tail=f"{words} (connect)\n")
    ending = classify(away)
    assert (ending.outcome, ending.node, ending.blamed) == (Outcome.NETWORK_FAILURE, "", ())
    said = "Slurm's controller did not answer, and the ranks never started (the launcher exited 1)"
    assert ending.reason.startswith(said)
    assert classify(dataclasses.replace(away, started=True)).outcome is Outcome.NODE_FAILURE


def test_a_rank_that_died_of_a_full_run_directory_is_told_with_its_path_and_a_fix() -> None:
    ending = classify(
        AttemptEvidence(
            world_size=2,
            launcher_code=1,
            deaths=[Death(rank=0, code=1)],
            last_words={0: "error: OSError: [Errno 28] No space left on device"},
            disk_trouble="No space left on device (/runs/x/attempts/0)",
        )
    )
    assert ending.outcome is Outcome.USER_ERROR
    assert ending.reason == (
        "rank 0 exited 1 first, and the run directory cannot be written: No space left on device "
        "(/runs/x/attempts/0): see df -h and quota there, then hpc-train resume"
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "bash: sorce: not found\nhpc-train: error: env.setup.0: `sorce x` exited\n  fix: see\n",
            "env.setup.0: `sorce x` exited: see",
        ),
        (
            "hpc-train: env.conda: conda is not on the PATH: x\n",
            "env.conda: conda is not on the PATH: x",
        ),
    ],
)
def test_an_environment_that_cannot_be_made_is_not_tried_again(said: str, reason: str) -> None:
    seen = AttemptEvidence(world_size=2, launcher_code=1, launcher_tail=said)
    ending = classify(seen)
    assert ending.outcome is Outcome.USER_ERROR
    assert ending.reason == f"the ranks' environment could not be made: {reason}"
    note = dataclasses.replace(
        seen, launcher_tail="hpc-train: env.setup.0 exited with 1; the job goes on\n"
    )
    assert classify(note).outcome is Outcome.NODE_FAILURE, "it was not that"


def test_what_ended_a_training_early_is_how_it_completed() -> None:
    early = ExitRecord(rank=0, node="n", time=1.0, code=0, kind="finished", cause="Timer ended it")
    rest = [ExitRecord(rank=rank, node="n", time=1.0, code=0, kind="finished") for rank in (1, 2)]
    ends = [
        classify(AttemptEvidence(world_size=3, launcher_code=0, records=records)).reason
        for records in ([early, *rest], rest)
    ]
    assert ends == ["Timer ended it", "all ranks finished"]
