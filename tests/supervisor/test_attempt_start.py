"""How an attempt begins: its number, where its ranks go on from, nodes on which it cannot start."""

from __future__ import annotations

import shutil
import signal

import pytest

from hpc_train.plan.states import Outcome
from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.ranks import (
    Beginning,
    Damaged,
    leave_note,
    read_exits,
    read_heartbeats,
    write_beginning,
)
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.outcome import AttemptOutcome
from tests.supervisor.attempted import NODES, Scene, beat, say, scene

__all__ = ["scene"]


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
        say(attempt, 0, 0)
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


def test_a_run_that_was_copied_without_its_links_goes_on(scene: Scene) -> None:
    """As by scp -r: a folder has the link's name."""
    copied = scene.attempt().folder.path
    scene.run.latest.unlink()
    copied.joinpath("rank-0.log").write_text("a line\n")
    shutil.copytree(copied, scene.run.latest)
    attempt = scene.attempt()
    assert scene.run.latest.resolve() == attempt.folder.path.resolve()
    attempt.look_for_notes()
    (note,) = scene.ended().notes
    assert note == "latest was a copy of attempts/0 and no link to it: it is latest-copy-1 now"
