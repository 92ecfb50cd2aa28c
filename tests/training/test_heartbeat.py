"""Signs of life, stacks on request and leaving when told to, in real processes."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, read_heartbeats
from hpc_train.training.heartbeat import STACKS_SIGNAL
from tests.training.ranks import Ranks, Run


def beats(run: Run) -> list[Heartbeat]:
    return read_heartbeats(RunDir(run.path).attempt(0))


def hung(run: Run) -> Ranks:
    ranks = run.start(2, "hang@step=4:rank=1")
    ranks.wait_for_step(4, rank=1)
    time.sleep(0.5)
    return ranks


def test_a_rank_tells_its_step_and_phase_while_it_trains(tmp_path: Path) -> None:
    run = Run(tmp_path, step_s=0.1, epochs=1, samples=200)
    ranks = run.start(2)
    ranks.wait_for_step(4)
    time.sleep(0.3)
    seen = beats(run)
    assert [beat.rank for beat in seen] == [0, 1]
    assert all(beat.phase == "train" and beat.step >= 4 for beat in seen)
    assert all(0.05 < (beat.step_time_s or 0) < 0.5 for beat in seen)
    ranks.send(signal.SIGTERM, 0)
    assert ranks.wait() == [75, 75]
    assert {beat.phase for beat in beats(run)} == {"end"}


def test_a_hung_rank_beats_on_but_does_not_move(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ranks = hung(run)
    first = beats(run)
    time.sleep(0.6)
    second = beats(run)
    ranks.kill()
    for before, after in zip(first, second, strict=True):
        assert after.time > before.time
        assert after.moved == before.moved
        assert after.step == 4 or after.rank == 0


def test_stacks_of_a_hung_rank_are_dumped_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ranks = hung(run)
    attempt = RunDir(run.path).attempt(0)
    attempt.dump_request.touch()
    stacks = [attempt.stacks / f"rank-{rank}.txt" for rank in range(2)]
    ranks.wait_until(lambda: all("Thread" in path.read_text() for path in stacks), 5)
    time.sleep(0.2)
    text = stacks[1].read_text()
    ranks.kill()
    assert "faults.py" in text  # the main thread sleeps there
    assert "all_reduce" in stacks[0].read_text()  # and rank 0 waits for it


def test_stacks_are_dumped_by_a_signal_too(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ranks = hung(run)
    ranks.send(STACKS_SIGNAL, 1)
    path = RunDir(run.path).attempt(0).stacks / "rank-1.txt"
    ranks.wait_until(lambda: "faults.py" in path.read_text(), 5)
    ranks.kill()


def test_told_to_leave_hung_ranks_leave_within_a_second_with_the_code(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ranks = hung(run)
    before = time.monotonic()
    RunDir(run.path).attempt(0).abort.write_text("77\n")
    codes = ranks.wait(5)
    assert codes[1] == 77
    assert codes[0] in (76, 77)  # its peer may have left first
    assert time.monotonic() - before < 2


def test_a_stopped_process_gives_no_sign_of_life(tmp_path: Path) -> None:
    run = Run(tmp_path, step_s=0.05, samples=400)
    ranks = run.start(1)
    ranks.wait_for_step(2)
    ranks.send(signal.SIGSTOP)
    time.sleep(0.3)
    (first,) = beats(run)
    time.sleep(0.8)
    (second,) = beats(run)
    ranks.kill()
    assert second.time == first.time
