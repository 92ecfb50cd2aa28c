"""What a killed supervisor left: by what Slurm's programs say, which are made to say it here."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import Outcome, RankExit
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir, checkpoint_name
from hpc_train.runs.ranks import (
    Beginning,
    Damaged,
    ExitRecord,
    Heartbeat,
    leave_note,
    write_beginning,
    write_exit,
    write_heartbeat,
)
from hpc_train.supervisor import orphaned_attempt as past
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.orphaned_attempt import close_unfinished, refuse_if_superseded
from hpc_train.supervisor.supervisor_log import SupervisorLog

from .clock import Clock
from .programs import Slurm

LOCAL = Allocation(backend="local", job_id="7", nodes=("host/0",))


def allocation(job: str = "7", restarts: int = 0) -> Allocation:
    return Allocation(backend="slurm", job_id=job, nodes=("n1", "n2"), restarts=restarts)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(past, "time", made)
    return made


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    run.attempt(0).path.mkdir(parents=True)
    return run


def told(run: RunDir, kind: EventKind, **data: object) -> None:
    append_event(run.events, Event(1.0, kind, data))


def started(run: RunDir, job: str = "7", restarts: int = 0, attempt: int = 0) -> None:
    known = {"attempt": attempt, "nodes": ["n1", "n2"], "first_step": 10}
    told(run, EventKind.ATTEMPT_STARTED, **known, job_id=job, restarts=restarts)


def close(run: RunDir, where: Allocation) -> tuple[Outcome, str]:
    """The outcome and the reason that were given to the open attempt, as the history has them."""
    closed = close_unfinished(run, where, {}, SupervisorLog())
    assert closed is not None
    number, ending = closed
    record = next(item for item in attempts_in(read_events(run.events)) if item.attempt == number)
    assert (record.outcome, record.reason) == (ending.outcome, ending.reason)
    assert (record.node, record.blamed) == (ending.node, ending.blamed)
    return ending.outcome, ending.reason


# A job that another one has followed.


def followed(run: RunDir) -> None:
    told(run, EventKind.SUBMITTED, job_id="7")
    told(run, EventKind.WENT_ON, job_id="8")


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "COMPLETING"])
def test_a_job_that_another_living_one_followed_does_not_train_beside_it(
    state: str, run: RunDir, slurm: Slurm
) -> None:
    followed(run)
    slurm.says("scontrol", f"JobId=8 JobState={state} Reason=None")
    with pytest.raises(HpcTrainError, match="job 8 carries this run on since job 7") as caught:
        refuse_if_superseded(run, allocation("7"))
    assert caught.value.hint
    assert slurm.asked("scontrol") == ["scontrol --local show job -o 8"]


@pytest.mark.parametrize("state", ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"])
def test_a_job_whose_follower_has_ended_may_train(state: str, run: RunDir, slurm: Slurm) -> None:
    followed(run)
    slurm.says("scontrol", f"JobId=8 JobState={state} Reason=None")
    refuse_if_superseded(run, allocation("7"))


def test_a_follower_that_slurm_has_forgotten_hinders_nobody(run: RunDir, slurm: Slurm) -> None:
    followed(run)
    slurm.says("scontrol", code=1)
    refuse_if_superseded(run, allocation("7"))


def test_only_a_job_of_the_run_that_is_not_its_newest_asks_slurm(run: RunDir, slurm: Slurm) -> None:
    slurm.says("scontrol", "JobId=8 JobState=RUNNING")
    refuse_if_superseded(run, allocation("7"))  # nothing is known of the run
    followed(run)
    refuse_if_superseded(run, allocation("8"))  # the newest
    refuse_if_superseded(
        run, allocation("9")
    )  # an allocation by hand, of which nothing is told yet
    refuse_if_superseded(run, LOCAL)
    assert slurm.asked("scontrol") == []


# An attempt without an end.


def test_an_attempt_that_has_its_end_is_left_as_it_is(run: RunDir, slurm: Slurm) -> None:
    assert close_unfinished(run, allocation(), {}, SupervisorLog()) is None
    started(run)
    told(run, EventKind.ATTEMPT_ENDED, attempt=0, outcome="preempted")
    before = run.events.read_text()
    assert close_unfinished(run, allocation(), {}, SupervisorLog()) is None
    assert run.events.read_text() == before


@pytest.mark.usefixtures("clock")
def test_ranks_that_are_gone_already_are_not_ended(run: RunDir, slurm: Slurm) -> None:
    started(run)
    slurm.says("squeue", "7.batch")
    outcome, reason = close(run, allocation())
    assert (outcome, reason) == (
        Outcome.NODE_FAILURE,
        "the supervisor was killed; nothing new was saved",
    )
    assert slurm.asked("scancel") == []
    assert not run.attempt(0).abort.exists()


def test_ranks_that_save_and_leave_are_given_the_time(
    run: RunDir, slurm: Slurm, clock: Clock
) -> None:
    started(run)
    slurm.says("squeue", "7.0")

    def leave(second: float) -> None:
        if second > 25:
            slurm.says("squeue")

    clock.each = leave
    slurm.says("scancel")
    close(run, allocation())
    assert slurm.asked("scancel") == []
    assert 5 <= len(slurm.asked("squeue")) <= 12, "a controller has others to serve"
    assert clock.now < 1030


def test_ranks_that_stay_are_ended_before_others_train(
    run: RunDir, slurm: Slurm, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    started(run)
    slurm.says("squeue", "7.0 7.3 7.batch")
    slurm.says("scancel")

    def end(_second: float) -> None:
        if slurm.asked("scancel"):
            slurm.says("squeue")

    clock.each = end
    close(run, allocation())
    assert slurm.asked("scancel") == ["scancel --signal=KILL 7.0 7.3"]
    assert run.attempt(0).abort.read_text() == f"{int(RankExit.NETWORK)}\n"
    assert "ending the ranks that a killed supervisor left (7.0, 7.3)" in capsys.readouterr().out
    assert 1030 < clock.now < 1035


def test_a_signal_that_a_node_lost_is_sent_again(run: RunDir, slurm: Slurm, clock: Clock) -> None:
    started(run)
    slurm.says("squeue", "7.0")
    slurm.says("scancel")

    def end(_second: float) -> None:
        if len(slurm.asked("scancel")) == 3:
            slurm.says("squeue")

    clock.each = end
    close(run, allocation())
    assert len(slurm.asked("scancel")) == 3


def test_ranks_that_refuse_to_end_stop_the_run_with_what_to_do(
    run: RunDir, slurm: Slurm, clock: Clock
) -> None:
    started(run)
    slurm.says("squeue", "7.0")
    slurm.says("scancel")
    with pytest.raises(HpcTrainError, match=r"do not end: step 7\.0") as caught:
        close_unfinished(run, allocation(), {}, SupervisorLog())
    assert "scancel 7, and then hpc-train resume" in caught.value.hint
    assert 1050 <= clock.now < 1055
    assert attempts_in(read_events(run.events))[0].outcome is None, "it is asked again next time"


@pytest.mark.parametrize("now", [allocation("7", restarts=1), allocation("8")])
def test_another_start_has_no_ranks_of_the_one_before(
    now: Allocation, run: RunDir, slurm: Slurm
) -> None:
    started(run)
    slurm.says("squeue", "7.0")
    slurm.says("sacct", "PREEMPTED")
    close(run, now)
    assert slurm.asked("squeue") == []


def test_on_one_machine_slurm_is_not_asked(run: RunDir, slurm: Slurm) -> None:
    started(run)
    slurm.says("squeue", "7.0")
    slurm.says("sacct", "PREEMPTED")
    outcome, reason = close(run, LOCAL)
    assert outcome is Outcome.NODE_FAILURE
    assert "the supervisor was killed" in reason
    assert not slurm.notes.exists()


@pytest.mark.parametrize(
    ("said", "outcome", "words"),
    [
        (["PREEMPTED"], Outcome.PREEMPTED, "the scheduler took the job away"),
        (["REQUEUED"], Outcome.PREEMPTED, "put back into the queue (REQUEUED)"),
        (["CANCELLED by 1000"], Outcome.PREEMPTED, "put back into the queue (CANCELLED)"),
        (["FAILED"], Outcome.NODE_FAILURE, "the supervisor was killed (Slurm: FAILED)"),
        (["TIMEOUT"], Outcome.TIMEOUT, "the job's limit ended it before its ranks had saved"),
        (["PREEMPTED", "FAILED", "", "RUNNING"], Outcome.NODE_FAILURE, "(Slurm: FAILED)"),
        (["FAILED", "PREEMPTED", "PENDING"], Outcome.PREEMPTED, "took the job away"),
        (["RUNNING"], Outcome.NODE_FAILURE, "the supervisor was killed; nothing"),
        ([], Outcome.NODE_FAILURE, "the supervisor was killed; nothing"),
    ],
)
def test_an_earlier_start_ended_as_slurms_accounting_says(
    said: list[str], outcome: Outcome, words: str, run: RunDir, slurm: Slurm
) -> None:
    started(run)
    slurm.says("sacct", *said)
    ended = close(run, allocation("7", restarts=1))
    assert ended[0] is outcome
    assert words in ended[1]
    assert ended[1].endswith("; nothing new was saved")
    assert slurm.asked("sacct") == ["sacct --federation -n -P -X -D -j 7 -o State"]


def test_accounting_that_fails_or_is_not_there_leaves_the_cause_open(
    run: RunDir, slurm: Slurm
) -> None:
    started(run)
    assert close(run, allocation("8"))[1] == "the supervisor was killed; nothing new was saved"
    started(run, attempt=1)
    slurm.says("sacct", "PREEMPTED", code=1)
    assert close(run, allocation("8"))[0] is Outcome.NODE_FAILURE


def test_a_node_that_slurm_lost_is_blamed_by_name(run: RunDir, slurm: Slurm) -> None:
    started(run)
    slurm.says("sacct", "NODE_FAIL")
    slurm.says("sinfo", "n1 idle", "n2 down*", "n3 idle")
    outcome, reason = close(run, allocation("7", restarts=1))
    assert outcome is Outcome.NODE_FAILURE
    assert reason == "Slurm lost a node of the job: n2 (NODE_FAIL); nothing new was saved"
    (record,) = attempts_in(read_events(run.events))
    assert (record.node, record.blamed) == ("n2", ("n2",))


def test_a_lost_node_that_is_back_or_unknown_blames_nobody(run: RunDir, slurm: Slurm) -> None:
    started(run)
    slurm.says("sacct", "NODE_FAIL")
    slurm.says("sinfo", "n1 idle", "n2 idle")
    assert "lost a node of the job (NODE_FAIL)" in close(run, allocation("7", restarts=1))[1]
    started(run, attempt=1)
    slurm.says("sinfo", code=1)
    close(run, allocation("7", restarts=1))
    assert [record.blamed for record in attempts_in(read_events(run.events))] == [(), ()]


def record(rank: int, code: int) -> ExitRecord:
    return ExitRecord(rank=rank, node="n1", time=1.0, code=code, step=12)


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        ([RankExit.SAVED, RankExit.SAVED], Outcome.PREEMPTED),
        ([RankExit.SAVED, RankExit.NETWORK], Outcome.NODE_FAILURE),
        ([], Outcome.NODE_FAILURE),
    ],
)
def test_ranks_that_all_saved_were_asked_to_stop_whatever_slurm_remembers(
    codes: list[int], outcome: Outcome, run: RunDir, slurm: Slurm
) -> None:
    started(run)
    for rank, code in enumerate(codes):
        write_exit(run.attempt(0), record(rank, code))
    slurm.says("sacct", "FAILED")
    assert close(run, allocation("7", restarts=1))[0] is outcome


def test_what_the_ranks_left_is_counted_for_the_attempt(run: RunDir, slurm: Slurm) -> None:
    started(run)
    write_beginning(run.attempt(0), Beginning(5, (Damaged(10, "truncated"),)))
    folder = run.checkpoints / checkpoint_name(20)
    folder.mkdir(parents=True)
    (folder / "manifest.json").touch()
    times = {"time": 1.0, "moved": 1.0, "pid": 1}
    beat = Heartbeat(rank=0, node="n1", phase="train", step=23, **times)
    write_heartbeat(run.attempt(0), beat)
    slurm.says("sacct", "PREEMPTED")
    assert close(run, allocation("7", restarts=1))[1].endswith("; saved at step 20")
    (ended,) = attempts_in(read_events(run.events))
    assert (ended.first_step, ended.last_step, ended.saved_step) == (5, 23, 20)
    assert [item.step for item in ended.damaged] == [10]


def test_where_the_ranks_began_is_told_once(run: RunDir, slurm: Slurm) -> None:
    slurm.says("sacct", "PREEMPTED")
    for attempt in range(2):
        started(run, attempt=attempt)
        run.attempt(attempt).path.mkdir(parents=True, exist_ok=True)
        write_beginning(run.attempt(attempt), Beginning(5))
        if attempt == 0:
            told(run, EventKind.RANKS_BEGAN, attempt=0, first_step=5)
        close(run, allocation("7", restarts=1))
    began = [event for event in read_events(run.events) if event.kind is EventKind.RANKS_BEGAN]
    assert [event.get("attempt") for event in began] == [0, 1]


def test_only_the_newest_start_counts_as_this_one(run: RunDir, slurm: Slurm, clock: Clock) -> None:
    started(run, restarts=0)
    told(run, EventKind.ATTEMPT_ENDED, attempt=0, outcome="preempted")
    started(run, restarts=1, attempt=1)
    run.attempt(1).path.mkdir(parents=True)
    slurm.says("squeue")
    slurm.says("sacct", "PREEMPTED")
    assert close(run, allocation("7", restarts=1))[0] is Outcome.NODE_FAILURE
    assert slurm.asked("squeue")


def test_what_a_rank_left_to_be_told_is_told_of_an_attempt_without_an_end(
    run: RunDir, slurm: Slurm
) -> None:
    started(run)
    run.attempt(0).path.mkdir(parents=True, exist_ok=True)
    leave_note(run.attempt(0), "trains on the CPU")
    close(run, LOCAL)
    assert attempts_in(read_events(run.events))[0].notes == ("trains on the CPU",)
