"""Signs of life, stacks on request and leaving when told to, in real processes."""

from __future__ import annotations

import operator
import signal
import time
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, read_heartbeats, read_progress
from hpc_train.training.heartbeat import STACKS_SIGNAL, Pace
from tests.training.ranks import Ranks, Run


def beats(run: Run) -> list[Heartbeat]:
    return read_heartbeats(RunDir(run.path).attempt(0))


def hung(run: Run) -> Ranks:
    ranks = run.start(2, "hang@step=4:rank=1")
    ranks.wait_for_step(4, rank=1)
    # The other one waits for it within its next step; what it does until then is movement.
    ranks.wait_until(
        lambda: [beat.step == 4 and beat.time > beat.moved + 2 for beat in beats(run)] == [True] * 2
    )
    return ranks


def test_a_rank_tells_its_step_and_phase_while_it_trains(tmp_path: Path) -> None:
    run = Run(tmp_path, step_s=0.1, epochs=1, samples=2000)
    ranks = run.start(2)
    # The pace is known a beat later than the step.
    ranks.wait_until(
        lambda: [beat.step >= 4 and bool(beat.steps_per_s) for beat in beats(run)] == [True] * 2
    )
    seen = beats(run)
    assert [beat.rank for beat in seen] == [0, 1]
    assert all(beat.phase == "train" and beat.step >= 4 for beat in seen)
    assert all(0.05 < (beat.step_time_s or 0) < 5 for beat in seen)
    assert all((beat.epoch, beat.epochs, beat.steps) == (1, 1, 166) for beat in seen)
    # Two beats see whole steps alone: one more or less, of some ten a second.
    assert all(0.2 < (beat.steps_per_s or 0) < 15 for beat in seen)
    ranks.send(signal.SIGTERM, 0)
    assert ranks.wait() == [75, 75]
    last = beats(run)
    assert {beat.phase for beat in last} == {"end"}
    for beat in last:
        assert beat.seconds["train"] >= 0.1 * (beat.step - 1), "it trained that long"
        assert set(beat.seconds) >= {"start", "train", "save", "end"}
    progress = read_progress(RunDir(run.path).attempt(0))
    assert progress[-1][1] == last[0].step
    assert progress == sorted(progress), "rank 0 tells when it was at which step"


def test_a_hung_rank_beats_on_but_does_not_move(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ranks = hung(run)
    first = beats(run)
    then = [beat.time for beat in first]
    ranks.wait_until(lambda: all(map(operator.gt, (beat.time for beat in beats(run)), then)))
    second = beats(run)
    ranks.kill()
    for before, after in zip(first, second, strict=True):
        assert after.time > before.time
        assert after.moved == before.moved
        assert after.step == 4


def test_stacks_of_a_hung_rank_are_dumped_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ranks = hung(run)
    attempt = RunDir(run.path).attempt(0)
    attempt.dump_request.touch()
    stacks = [attempt.stacks / f"rank-{rank}.txt" for rank in range(2)]
    # The main thread of one sleeps there, and the other waits for it.
    ranks.wait_until(
        lambda: "all_reduce" in stacks[0].read_text() and "faults.py" in stacks[1].read_text()
    )
    ranks.kill()


def test_stacks_are_dumped_by_a_signal_too(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ranks = hung(run)
    ranks.send(STACKS_SIGNAL, 1)
    path = RunDir(run.path).attempt(0).stacks / "rank-1.txt"
    ranks.wait_until(lambda: "faults.py" in path.read_text())
    ranks.kill()


def test_told_to_leave_hung_ranks_leave_at_once_with_the_code(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ranks = hung(run)
    RunDir(run.path).attempt(0).abort.write_text("77\n")
    codes = ranks.wait(60)
    assert codes[1] == 77
    assert codes[0] in (76, 77)  # its peer may have left first


def test_a_stopped_process_gives_no_sign_of_life(tmp_path: Path) -> None:
    run = Run(tmp_path, step_s=0.05, samples=400)
    ranks = run.start(1)
    ranks.wait_for_step(2)
    ranks.send(signal.SIGSTOP)
    (rank,) = ranks.processes
    threads = Path(f"/proc/{rank.pid}/task")
    ranks.wait_until(lambda: all(") T " in (one / "stat").read_text() for one in threads.iterdir()))
    (first,) = beats(run)
    time.sleep(0.8)
    (second,) = beats(run)
    ranks.kill()
    assert second.time == first.time


def test_of_a_stream_the_end_is_not_told_and_the_epoch_is(tmp_path: Path) -> None:
    run = Run(tmp_path, data="stream", samples=72, epochs=3)
    assert run.run(2) == [0, 0]
    assert [(beat.steps, beat.epoch, beat.epochs) for beat in beats(run)] == [(None, 3, 3)] * 2


def paces(*seen: tuple[float, int | None], phase: str = "train") -> list[float | None]:
    pace = Pace()
    return [pace.see(phase, step, at) for at, step in seen]


def test_the_pace_is_that_of_the_last_half_minute() -> None:
    slow = [(float(second), second // 10) for second in range(61)]
    fast = [(60.0 + second, 6 + 10 * second) for second in range(1, 61)]
    told = paces(*slow, *fast)
    assert told[9] is None  # one step alone has no pace
    assert told[60] == pytest.approx(0.1)
    assert told[60] < told[75] < told[90] == pytest.approx(10, rel=0.05)
    assert told[120] == pytest.approx(10)


@pytest.mark.parametrize("step_s", [0.001, 1.0, 45.0, 700.0])
def test_a_step_may_be_of_any_length(step_s: float) -> None:
    told = paces(*((second, int(second / step_s)) for second in range(3000)))
    assert told[-1] == pytest.approx(1 / step_s, rel=0.05)


def test_an_evaluation_and_a_save_are_no_slow_steps() -> None:
    pace = Pace()
    for second in range(5):
        pace.see("train", second, float(second))
    assert [pace.see("validate", 4, 5.0 + second) for second in range(600)] == [1.0] * 600
    assert pace.see("train", 4, 605.0) == 1.0
    assert pace.see("train", 5, 606.0) == 1.0


def test_before_training_and_where_it_goes_on_there_is_no_pace_yet() -> None:
    assert paces((0.0, None), (1.0, None), (2.0, 500), (3.0, 500)) == [None] * 4
    assert paces((2.0, 500), (3.0, 504))[-1] == 4.0
    assert paces((2.0, 0), (3.0, 10), phase="start") == [None, None]
