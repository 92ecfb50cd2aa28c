"""What an attempt takes for evidence: real files, a real launcher, and Slurm's words as needed."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.config.schema import PreflightConfig
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.states import Outcome, RankExit
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import AttemptRecord, attempts_in
from hpc_train.runs.layout import RunDir, checkpoint_name
from hpc_train.runs.ranks import (
    Beginning,
    Damaged,
    ExitRecord,
    Heartbeat,
    leave_note,
    read_exits,
    read_heartbeats,
    write_beginning,
    write_exit,
    write_heartbeat,
)
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.attempt import Attempt, AttemptResult, new_attempt
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.signals import SupervisorSignals
from hpc_train.supervisor.supervisor_log import SupervisorLog
from tests.plan.configs import config

from .programs import Slurm

NODES = ("n1", "n2")
RUNNING = "JobState=RUNNING Requeue=1 Restarts=0 PreemptTime=None"
PREEMPTED = "JobState=RUNNING Requeue=0 Restarts=0 PreemptTime=2026-11-21T07:48:36"


class Scene:
    """An attempt on two nodes of a Slurm whose programs are made here."""

    def __init__(self, folder: Path, slurm: Slurm, *, there: int, gone: int) -> None:
        self.slurm = slurm
        self.run = RunDir(folder / "run")
        self.run.path.mkdir()
        self.ports = {"n1": there, "n2": there}
        self.gone = gone
        self.job = RUNNING
        self.signals = SupervisorSignals()
        self.allocation = Allocation(backend="slurm", job_id="7", nodes=NODES)
        made = config(slurm={"gpus_per_node": 1}, preflight=PreflightConfig(monitor_interval_s=0))
        self.plan = make_plan(made, workdir=str(folder), python="python3")
        self.environ = {"PATH": slurm.path}

    def attempt(self) -> Attempt:
        return new_attempt(
            self.plan, self.allocation, self.run, self.environ, self.signals, SupervisorLog()
        )

    def carry_out(self, attempt: Attempt, launcher: str) -> AttemptResult:
        """Carry it out where srun is this script."""
        rows = "".join(
            f'echo "NodeName={name} NodeAddr=127.0.0.1 Port={port}"\n'
            for name, port in self.ports.items()
        )
        self.slurm.does(
            "scontrol",
            f'case "$*" in\n*"show job"*) echo "{self.job}" ;;\n"show node"*)\n{rows};;\nesac',
        )
        self.slurm.does("srun", launcher)
        return attempt.carry_out(NODES, {}, {})

    def ended(self) -> AttemptRecord:
        return attempts_in(read_events(self.run.events))[-1]

    def save(self, step: int) -> None:
        folder = self.run.checkpoints / checkpoint_name(step)
        folder.mkdir(parents=True)
        (folder / "manifest.json").touch()

    @property
    def asked_for_nodes(self) -> bool:
        return any("show node" in line for line in self.slurm.asked("scontrol"))

    @property
    def asked_for_job(self) -> bool:
        return any("show job" in line for line in self.slurm.asked("scontrol"))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    slurm = Slurm(tmp_path)
    monkeypatch.setenv("PATH", slurm.path)
    with socket.create_server(("127.0.0.1", 0)) as there, socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        yield Scene(tmp_path, slurm, there=there.getsockname()[1], gone=gone.getsockname()[1])


def beat(attempt: Attempt, step: int, rank: int = 0) -> None:
    known = {"node": NODES[rank], "pid": 1, "time": 1.0, "moved": 1.0, "phase": "train"}
    write_heartbeat(attempt.folder, Heartbeat(rank=rank, step=step, **known))  # type: ignore[arg-type]


def say(attempt: Attempt, rank: int, code: int, **more: object) -> None:
    known = {"node": NODES[rank], "time": float(rank), **more}
    write_exit(attempt.folder, ExitRecord(rank=rank, code=code, **known))  # type: ignore[arg-type]


def test_a_complete_training_needs_no_questions(scene: Scene) -> None:
    attempt = scene.attempt()
    beat(attempt, 30)
    scene.save(20)
    scene.job = PREEMPTED  # it may be, and it does not matter any more
    result = scene.carry_out(attempt, "exit 0")
    assert result.ending.outcome is Outcome.COMPLETED
    assert (result.stop.outcome, result.stop.requeued) == (None, False)
    ended = scene.ended()
    assert ended.nodes == NODES
    assert (ended.first_step, ended.last_step, ended.saved_step) == (0, 30, 30)
    assert ended.steps_lost == 0, "what is complete need not be taken again"
    assert scene.slurm.asked("scontrol") == []
    (srun,) = scene.slurm.asked("srun")
    assert "--nodelist=n1,n2" in srun


def test_a_ranks_own_error_is_in_the_history_with_all_that_it_said(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = scene.attempt()
    beat(attempt, 12)
    scene.save(10)
    say(attempt, 1, 1, error="ValueError: bad label", where="model.py:12", step=13)
    scene.carry_out(attempt, "exit 1")
    ended = scene.ended()
    assert ended.outcome is Outcome.USER_ERROR
    assert (ended.rank, ended.node, ended.failed_step) == (1, "n2", 13)
    assert (ended.error, ended.where) == ("ValueError: bad label", "model.py:12")
    assert (ended.first_step, ended.last_step, ended.saved_step) == (0, 13, 10)
    assert ended.steps_lost == 3
    said = capsys.readouterr().out
    assert "attempt 0: 2 ranks on n1, n2" in said
    assert "attempt 0 ended: user error: rank 1 on n2 failed" in said


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("SystemExit: 2", "SystemExit: 2, after 'train.py: error: no --lrr'"),
        ("SystemExit: gave up", "SystemExit: gave up"),
    ],
)
def test_an_exit_code_is_told_with_what_was_printed_before_it(
    error: str, told: str, scene: Scene
) -> None:
    attempt = scene.attempt()
    attempt.folder.rank_log(1).write_text(
        "usage: train.py\ntrain.py: error: no --lrr\n\n"
        f"Traceback (most recent call last):\n  File x\n{error}\n\nerror: {error}\n"
    )
    say(attempt, 1, 2, error=error)
    scene.carry_out(attempt, "exit 2")
    assert scene.ended().error == told


def test_a_preemption_is_told_by_slurm_and_keeps_what_was_saved(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.save(42)
    for rank in range(2):
        say(attempt, rank, RankExit.SAVED, kind="saved", step=42)
    scene.job = PREEMPTED
    result = scene.carry_out(attempt, "exit 75")
    assert result.ending.outcome is Outcome.PREEMPTED
    assert result.ending.reason == "preempted by Slurm; saved at step 42"
    assert (result.stop.requeued, result.stop.may_requeue) == (False, False)
    assert not scene.asked_for_nodes, "the stop explains it all"


def test_an_old_checkpoint_is_not_what_this_attempt_saved(scene: Scene) -> None:
    scene.save(42)
    attempt = scene.attempt()
    scene.job = PREEMPTED
    assert "nothing new was saved" in scene.carry_out(attempt, "exit 75").ending.reason
    assert scene.ended().first_step == 42


def test_ctrl_c_is_a_cancel_and_slurm_is_not_asked(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.signals.received[signal.SIGINT] = 1
    result = scene.carry_out(attempt, "exit 75")
    assert result.ending.outcome is Outcome.CANCELLED
    assert result.ending.reason == "Ctrl-C in the foreground"
    assert not scene.asked_for_job


def test_a_sigterm_that_slurm_does_not_explain_is_a_cancel(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.signals.received[signal.SIGTERM] = 1
    assert scene.carry_out(attempt, "exit 75").ending.reason == "the job was cancelled (scancel)"


def cancel(scene: Scene, at: float) -> None:
    append_event(scene.run.events, Event(at, EventKind.CANCEL_REQUESTED, {"by": "me"}))


def test_a_cancel_counts_for_the_attempt_in_which_it_was_asked_for(scene: Scene) -> None:
    attempt = scene.attempt()
    cancel(scene, time.time())
    result = scene.carry_out(attempt, "exit 75")
    assert result.ending.reason == "`hpc-train cancel` asked for it"
    resumed = scene.attempt()
    say(resumed, 0, 1, error="KeyError: 'x'")
    assert scene.carry_out(resumed, "exit 1").ending.outcome is Outcome.USER_ERROR


def test_a_cancel_at_the_very_start_counts(scene: Scene) -> None:
    attempt = scene.attempt()
    (started,) = read_events(scene.run.events)
    cancel(scene, started.time)
    assert attempt.cancel_requested()


def test_nobody_has_cancelled_a_run_without_a_history(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.run.events.unlink()
    assert not attempt.cancel_requested()


def test_a_stop_file_counts_if_it_was_made_while_the_ranks_ran(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.run.stop.touch()  # of the attempt before
    say(attempt, 0, 1, error="KeyError: 'x'")
    assert scene.carry_out(attempt, "exit 1").ending.outcome is Outcome.USER_ERROR
    attempt = scene.attempt()
    result = scene.carry_out(attempt, f"touch '{scene.run.stop}'; exit 75")
    assert result.ending.outcome is Outcome.CANCELLED
    assert "the file `stop`" in result.ending.reason


@pytest.mark.parametrize(
    "words",
    [
        "srun: error: n2: task 1: Out Of Memory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.",
    ],
)
def test_a_kernel_that_kills_for_memory_says_so_through_slurm(words: str, scene: Scene) -> None:
    attempt = scene.attempt()
    beat(attempt, 3)
    killed = "srun: error: n2: task 1: Killed"
    launcher = f"echo '{words}' >&2; echo '{killed}' >&2; exit 137"
    assert scene.carry_out(attempt, launcher).ending.outcome is Outcome.OUT_OF_MEMORY


def test_a_rank_killed_without_a_word_of_memory_is_no_memory_trouble(scene: Scene) -> None:
    attempt = scene.attempt()
    result = scene.carry_out(attempt, "echo 'srun: error: n2: task 1: Killed' >&2; exit 137")
    assert result.ending.outcome is Outcome.NODE_FAILURE
    assert result.ending.reason.startswith("rank 1 on n2 was killed by SIGKILL first")


def test_a_node_that_does_not_answer_is_found_where_nothing_else_explains(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.ports["n2"] = scene.gone
    result = scene.carry_out(attempt, "exit 1")
    assert result.ending.outcome is Outcome.NODE_FAILURE
    assert (result.ending.blamed, result.ending.gone) == (("n2",), ("n2",))
    assert scene.ended().blamed == ("n2",)


def test_without_scontrol_no_node_is_called_lost(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.slurm.does("srun", f"rm '{scene.slurm.bin}/scontrol'; exit 1")
    scene.slurm.says("scontrol")
    assert attempt.carry_out(NODES, {}, {}).ending.blamed == ()


@pytest.mark.parametrize(
    ("beats", "words"),
    [
        (0, "the ranks never started (the launcher exited 3): srun: no such step"),
        (1, "the launcher exited 3 and no rank says why: srun: no such step"),
    ],
)
def test_whether_any_rank_gave_a_sign_of_life_is_told(beats: int, words: str, scene: Scene) -> None:
    attempt = scene.attempt()
    for rank in range(beats):
        beat(attempt, 1, rank)
    result = scene.carry_out(attempt, "echo 'srun: no such step' >&2; exit 3")
    assert result.ending.reason == words
    assert not (attempt.folder.path / "disk-check").exists()


def test_a_run_directory_that_cannot_be_written_explains_silent_ranks(scene: Scene) -> None:
    attempt = scene.attempt()
    (attempt.folder.path / "disk-check").mkdir()
    result = scene.carry_out(attempt, "exit 1")
    assert result.ending.outcome is Outcome.USER_ERROR
    assert result.ending.error == f"Is a directory ({attempt.folder.path})"


def test_where_a_stop_explains_the_end_the_disk_is_not_tried(scene: Scene) -> None:
    attempt = scene.attempt()
    (attempt.folder.path / "disk-check").mkdir()
    scene.job = PREEMPTED
    assert scene.carry_out(attempt, "exit 75").ending.outcome is Outcome.PREEMPTED


def test_a_preflight_that_refuses_ends_the_attempt_without_ranks(scene: Scene) -> None:
    scene.save(9)
    attempt = scene.attempt()
    ending = AttemptOutcome(outcome=Outcome.NODE_FAILURE, reason="no-go", node="n1", blamed=("n1",))
    result = attempt.refuse(ending)
    assert (result.ending, result.stop.outcome) == (ending, None)
    ended = scene.ended()
    assert (ended.outcome, ended.reason, ended.blamed) == (ending.outcome, "no-go", ("n1",))
    assert (ended.first_step, ended.last_step, ended.saved_step) == (9, 9, 9)
    assert scene.slurm.asked("srun") == []


def test_where_the_ranks_began_is_told_once_and_counted_from(scene: Scene) -> None:
    scene.save(30)
    attempt = scene.attempt()
    attempt.look_for_beginning()
    assert scene.ended().first_step == 30, "until they say so"
    write_beginning(attempt.folder, Beginning(20, (Damaged(30, "truncated"),)))
    attempt.look_for_beginning()
    attempt.look_for_beginning()
    say(attempt, 0, 1, error="KeyError: 'x'", step=33)
    scene.carry_out(attempt, "exit 1")
    kinds = [event.kind for event in read_events(scene.run.events)]
    assert kinds.count(EventKind.RANKS_BEGAN) == 1
    assert kinds.count(EventKind.CHECKPOINT_DAMAGED) == 1
    assert (scene.ended().first_step, scene.ended().last_step) == (20, 33)


def test_attempts_are_numbered_and_the_newest_is_linked(scene: Scene) -> None:
    for number in range(3):
        attempt = scene.attempt()
        assert attempt.number == number
        assert scene.run.latest.resolve() == attempt.folder.path.resolve()
        assert attempt.log.file == attempt.folder.supervisor_log
    started = scene.ended()
    assert (started.job_id, started.nodes, started.outcome) == ("7", NODES, None)
    assert [path.name for path in scene.run.path.iterdir() if path.is_symlink()] == ["latest"]


def test_a_link_that_a_killed_supervisor_left_is_in_nobodys_way(scene: Scene) -> None:
    (scene.run.path / ".latest-0").symlink_to("attempts/0")
    assert scene.attempt().number == 0


def test_on_one_machine_no_node_is_asked_for(scene: Scene) -> None:
    scene.allocation = Allocation(backend="local", job_id="-", nodes=NODES)
    attempt = scene.attempt()
    scene.slurm.says("python3", code=1)  # the elastic launcher, by the plan's python
    result = scene.carry_out(attempt, "exit 0")
    assert result.ending.outcome is Outcome.NODE_FAILURE
    assert result.ending.blamed == ()
    assert scene.slurm.asked("scontrol") == []
    assert len(scene.slurm.asked("python3")) == 2


UNLAUNCHED = (
    "echo 'srun: error: Task launch for StepId=7.0 failed on node n2: "
    "Communication connection failure' >&2; exit 1"
)


@pytest.mark.parametrize(
    ("nodes", "again"), [(("n1", "n2", "n3"), True), (("n1", "n2"), False)], ids=["spare", "none"]
)
def test_a_node_that_srun_cannot_start_on_is_left_out_where_a_spare_is_there(
    nodes: tuple[str, ...], again: bool, scene: Scene
) -> None:
    scene.allocation = Allocation(backend="slurm", job_id="7", nodes=nodes)
    attempt = scene.attempt()
    beat(attempt, 0)  # the other node's rank was there for a moment
    say(attempt, 0, 1, error="its peer did not come")
    attempt.folder.abort.touch()
    result = scene.carry_out(attempt, UNLAUNCHED)
    assert (result is None) is again
    if again:
        assert attempt.unreachable == {"n2": "Communication connection failure"}
        assert not read_heartbeats(attempt.folder), "of the ranks that did not train"
        assert not read_exits(attempt.folder)
        assert not attempt.folder.abort.exists()
        kept = attempt.folder.path / "launcher-1.log"
        assert "failed on node n2" in kept.read_text()
        assert scene.carry_out(attempt, "exit 0") is not None
        assert scene.ended().outcome is Outcome.COMPLETED


def test_a_node_that_did_not_start_is_not_left_out_when_the_job_was_stopped(scene: Scene) -> None:
    nodes = ("n1", "n2", "n3")
    scene.allocation = Allocation(backend="slurm", job_id="7", nodes=nodes)
    attempt = scene.attempt()
    scene.signals.received[signal.SIGINT] = 1
    result = scene.carry_out(attempt, UNLAUNCHED)
    assert result is not None
    assert result.ending.outcome is Outcome.CANCELLED


def test_where_the_ranks_began_is_told_also_when_they_end_before_anybody_looks(
    scene: Scene,
) -> None:
    attempt = scene.attempt()
    write_beginning(attempt.folder, Beginning(20, ()))
    scene.carry_out(attempt, "exit 0")
    kinds = [event.kind for event in read_events(scene.run.events)]
    assert kinds.index(EventKind.RANKS_BEGAN) < kinds.index(EventKind.ATTEMPT_ENDED)
    assert scene.ended().first_step == 20


def test_what_a_rank_leaves_to_be_told_is_told_once(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = scene.attempt()
    attempt.look_for_notes()
    leave_note(attempt.folder, "trains on the CPU")
    for _ in range(2):
        attempt.look_for_notes()
    leave_note(attempt.folder, "trains on the CPU")
    leave_note(attempt.folder, "another")
    attempt.look_for_notes()
    assert scene.ended().notes == ("trains on the CPU", "another")
    assert capsys.readouterr().out.count("note: trains on the CPU\n") == 1
