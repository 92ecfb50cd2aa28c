"""Ranks of one node that share a writer: what reaches the run directory, and what comes back."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.ranks import Heartbeat, read_heartbeats
from hpc_train.training.node_heartbeats import NodeHeartbeats

RANK = """
import sys, time
from pathlib import Path
from hpc_train.runs.layout import RunDir
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.node_heartbeats import NodeHeartbeats
from hpc_train.training.resume.stop import StopFlag
run, memory, rank = RunDir(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
stop = StopFlag(run.stop)
heart = HeartbeatThread(run.attempt(0), rank=rank, node="n", every_s=0.2, stop=stop)
heart.share(NodeHeartbeats.open(run.attempt(0), run.stop, "1", memory=memory))
heart.start()
while stop.reason is None:
    time.sleep(0.01)
heart.end()
"""


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path: Path, memory: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a process of the run's rank `number`, with the beat of a rank and nothing else."""
    started = []

    def begin(number: int) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", RANK, str(tmp_path / "run"), str(memory), str(number)]
        started.append(subprocess.Popen(argv))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptDir:
    folder = RunDir(tmp_path / "run").attempt(0)
    folder.path.mkdir(parents=True)
    return folder


def beat(rank: int, **told: object) -> Heartbeat:
    always = {"node": "n", "pid": 1, "time": 1.0, "moved": 1.0, "phase": "train", "step": 3}
    return Heartbeat(**{**always, "rank": rank, **told})  # type: ignore[arg-type]


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def times(attempt: AttemptDir) -> dict[int, float]:
    return {one.rank: one.time for one in read_heartbeats(attempt)}


def open_(attempt: AttemptDir, memory: Path, start: str = "1") -> NodeHeartbeats | None:
    return NodeHeartbeats.open(attempt, attempt.path / "stop", start, memory=memory)


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_the_ranks_of_a_node_are_one_file_for_the_supervisor(attempt, memory, ranks):
    for rank in reversed(range(ranks)):
        open_(attempt, memory).beat(beat(rank, step=rank), every_s=0.0)
    assert [(one.rank, one.step) for one in read_heartbeats(attempt)] == [
        (rank, rank) for rank in range(ranks)
    ]
    assert len(list(attempt.heartbeat(0).parent.iterdir())) == 1


def test_what_was_carried_a_moment_ago_is_not_carried_again(attempt, memory):
    node = open_(attempt, memory)
    for step in range(5):
        node.beat(beat(4, step=step), every_s=60)
    assert [one.step for one in read_heartbeats(attempt)] == [0]


def test_a_rank_that_stands_still_does_not_silence_its_node(attempt, start):
    stopped, _other = start(1), start(2)
    wait_until(lambda: set(times(attempt)) == {1, 2})
    stopped.send_signal(signal.SIGSTOP)
    wait_until(lambda: ") T " in Path(f"/proc/{stopped.pid}/stat").read_text())
    seen = times(attempt)[2]  # what it told before has been carried once the other has told more
    wait_until(lambda: times(attempt)[2] > seen + 0.5)
    before = times(attempt)
    wait_until(lambda: times(attempt)[2] > before[2] + 1)
    assert times(attempt)[1] == before[1]
    stopped.send_signal(signal.SIGCONT)
    wait_until(lambda: times(attempt)[1] > before[1])


def test_a_rank_that_was_killed_stays_known_and_the_others_go_on(attempt, start):
    killed, _other = start(5), start(6)
    wait_until(lambda: set(times(attempt)) == {5, 6})
    killed.kill()
    killed.wait()
    seen = times(attempt)[6]
    wait_until(lambda: times(attempt)[6] > seen + 0.5)
    before = times(attempt)
    wait_until(lambda: times(attempt)[6] > before[6] + 1)
    assert times(attempt)[5] == before[5]


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_supervisors_word_to_leave_reaches_every_rank(attempt, start, memory, ranks):
    processes = [start(rank) for rank in range(ranks)]
    wait_until(lambda: len(times(attempt)) == ranks)
    attempt.abort.write_text("77\n")
    assert [process.wait(60) for process in processes] == [77] * ranks
    assert not list(memory.iterdir())


def test_a_stop_reaches_every_rank_and_each_tells_its_end_and_leaves_nothing(
    attempt, start, memory
):
    processes = [start(rank) for rank in (0, 1, 2)]
    wait_until(lambda: len(times(attempt)) == 3)
    assert list(memory.iterdir())
    RunDir(attempt.path.parent.parent).stop.touch()
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert [one.phase for one in read_heartbeats(attempt)] == ["end"] * 3
    assert not list(memory.iterdir())


def test_ranks_in_containers_with_memories_of_their_own_have_a_file_each(attempt, tmp_path):
    for rank in (0, 1):
        memory = tmp_path / f"shm-{rank}"
        memory.mkdir()
        open_(attempt, memory).beat(beat(rank), every_s=0.0)
    assert set(times(attempt)) == {0, 1}


def test_another_start_of_the_same_attempt_does_not_tell_of_the_ranks_before(attempt, memory):
    open_(attempt, memory, "1").beat(beat(0), every_s=0.0)
    for file in attempt.heartbeat(0).parent.iterdir():
        file.unlink()  # as the supervisor does
    open_(attempt, memory, "2").beat(beat(1), every_s=0.0)
    assert set(times(attempt)) == {1}


def test_a_folder_that_others_can_write_is_not_used(attempt, memory):
    assert open_(attempt, memory) is not None
    (folder,) = memory.iterdir()
    folder.chmod(0o777)
    assert open_(attempt, memory) is None


def test_without_a_memory_folder_ranks_write_for_themselves(attempt, memory):
    assert open_(attempt, memory / "none") is None


@pytest.mark.parametrize(("beaten_s", "stays"), [(60, True), (2 * 86_400, False)])
def test_what_killed_ranks_left_is_taken_away_after_a_day_and_a_week_long_run_is_not(
    attempt, memory, beaten_s, stays
):
    open_(attempt, memory, "1").beat(beat(0), every_s=0.0)
    (folder,) = memory.iterdir()
    at = time.time()
    os.utime(folder / "heartbeat", (at - beaten_s, at - beaten_s))
    os.utime(folder, (at - 7 * 86_400, at - 7 * 86_400))
    open_(attempt, memory, "2")
    assert folder.exists() == stays


def test_a_folder_that_another_rank_takes_away_meanwhile_is_passed_over(attempt, memory):
    gone = memory / f"hpc-train-{os.getuid()}-gone"
    gone.symlink_to(memory / "gone")  # is listed, and is not there
    assert open_(attempt, memory) is not None


def test_a_stop_reaches_a_rank_whose_nodes_memory_can_not_be_used_any_more(attempt, start, memory):
    rank = start(0)
    wait_until(lambda: read_heartbeats(attempt))
    (folder,) = memory.iterdir()
    while folder.is_dir():  # the rank may be making it anew at this moment
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(IsADirectoryError):
            folder.write_text("full")
    RunDir(attempt.path.parents[1]).stop.write_text("stop")
    assert rank.wait(60) == 0


@pytest.mark.parametrize(("ranks", "shares"), [(1, False), (63, False), (64, True), (1024, True)])
def test_from_64_ranks_on_they_share(attempt, ranks, shares):
    node = NodeHeartbeats.of_run(ranks, attempt, attempt.path / "stop", {"MASTER_PORT": "1"})
    assert (node is not None) == shares
    if node is not None:
        node.beat(beat(0), every_s=0.0)
        node.leave(0)
        assert not node.requests.path.exists()
