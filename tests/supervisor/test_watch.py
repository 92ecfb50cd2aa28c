"""When nothing moves, by the supervisor's own clock, whatever the clocks of the nodes say."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from hpc_train.config.schema import WatchdogConfig
from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import Heartbeat
from hpc_train.supervisor import watch as watching
from hpc_train.supervisor.deaths import deaths_in_srun_log
from hpc_train.supervisor.launch import Ranks
from hpc_train.supervisor.watch import Movement, Watched


def beat(rank: int, step: int, *, time: float, phase: str = "train", **more: object) -> Heartbeat:
    fields = {"node": f"node{rank + 1}", "pid": 1, "moved": time, "step_time_s": 0.1, **more}
    return Heartbeat(rank=rank, time=time, phase=phase, step=step, **fields)


def movement(**limits: object) -> Movement:
    return Movement(WatchdogConfig(**limits), started=0.0)


def test_ranks_that_move_never_hang_even_with_clocks_an_hour_apart() -> None:
    seen = movement(floor_s=10)
    for second in range(100):
        seen.see([beat(0, second, time=second), beat(1, second, time=second + 3600)], second)
        assert seen.hang(2, second) is None


def test_a_stopped_process_is_named_and_its_node_blamed() -> None:
    seen = movement(floor_s=30)
    seen.see([beat(0, 5, time=1.0), beat(1, 5, time=1.0)], 1.0)
    for second in range(2, 40):
        # Rank 0 waits in a collective but its heart beats; rank 1 is stopped (SIGSTOP).
        seen.see([beat(0, 5, time=second, moved=1.0), beat(1, 5, time=1.0)], second)
    hang = seen.hang(2, 40.0)
    assert hang is not None
    assert hang.late_ranks == (1,)
    assert hang.nodes == ("node2",)
    assert "nothing moved for" in hang.reason


def test_a_rank_behind_the_others_is_the_late_one() -> None:
    seen = movement(floor_s=10)
    for second in range(1, 30):
        seen.see([beat(0, 7, time=second, moved=1.0), beat(1, 6, time=second, moved=1.0)], second)
    hang = seen.hang(2, 30.0)
    assert hang is not None
    assert hang.late_ranks == (1,)


def test_nobody_is_blamed_when_all_ranks_are_equally_late() -> None:
    seen = movement(floor_s=10)
    for second in range(1, 30):
        seen.see([beat(r, 7, time=second, moved=1.0) for r in range(2)], second)
    hang = seen.hang(2, 30.0)
    assert hang is not None
    assert hang.nodes == ()


def test_the_limit_follows_the_phase_and_the_step_times() -> None:
    seen = movement(start_timeout_s=900, floor_s=60, save_timeout_s=300)
    assert seen.limit_s(2, 3.0) == 900
    seen.see([beat(0, 1, time=1.0, step_time_s=10.0), beat(1, 1, time=1.0, step_time_s=10.0)], 1.0)
    assert seen.limit_s(2, 3.0) == 300.0  # 30 steps of 10 s
    seen.see([beat(0, 1, time=2.0, step_time_s=0.1), beat(1, 1, time=2.0, step_time_s=0.1)], 2.0)
    assert seen.limit_s(2, 3.0) == 60
    seen.see([beat(0, 1, time=3.0, phase="save")], 3.0)
    assert seen.limit_s(2, 3.0) == 300


def test_a_rank_that_is_stopped_before_it_tells_of_its_first_step_is_not_starting() -> None:
    seen = movement(start_timeout_s=900, floor_s=30)
    for second in range(1, 60):
        starting = beat(1, 0, time=1.0, phase="start", step_time_s=None)
        seen.see([beat(0, min(second, 3), time=second, moved=3.0), starting], second)
        assert (seen.hang(2, second) is not None) == (second > 33)
    hang = seen.hang(2, 60.0)
    assert hang is not None
    assert (hang.late_ranks, hang.nodes) == ((1,), ("node2",))


@pytest.mark.parametrize("steps_taken", [False, True])
def test_a_rank_that_starts_slowly_is_waited_for(steps_taken: bool) -> None:
    """Silent, as where an import holds the GIL, or not; the others may wait in the first step."""
    seen = movement(start_timeout_s=900, floor_s=30)
    for second in range(1, 600):
        told_s = second if steps_taken else 1.0
        starting = beat(1, 0, time=told_s, phase="start", step_time_s=None)
        times = {"step_time_s": 0.1 if steps_taken else None}
        seen.see([beat(0, 0, time=second, moved=1.0, **times), starting], second)
        assert seen.hang(2, second) is None


def test_a_node_is_suspected_when_all_its_ranks_are_silent() -> None:
    seen = movement()
    seen.see([beat(0, 1, time=1.0), beat(1, 1, time=1.0)], 1.0)
    seen.see([beat(0, 2, time=20.0)], 20.0)
    assert seen.suspects(20.0) == ("node2",)
    assert seen.suspects(60.0) == ("node1", "node2")


def test_ranks_that_are_all_silent_hang_even_while_they_start() -> None:
    seen = movement(start_timeout_s=900)
    seen.see([beat(0, 0, time=1.0, phase="start"), beat(1, 0, time=1.0, phase="start")], 1.0)
    assert seen.hang(2, 100.0) is None
    hang = seen.hang(2, 130.0)
    assert hang is not None
    assert (hang.late_ranks, hang.nodes) == ((0, 1), ())


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Ranks]:
    """An srun that neither starts the ranks nor ends by itself."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield Ranks([process], tmp_path / "launcher.log", deaths_in_srun_log)
    process.kill()
    process.wait()


def watched(ranks: Ranks, lost: Collection[str] = ()) -> Watched:
    return watching.watch(
        ranks,
        AttemptDir(ranks.log.parent),
        WatchdogConfig(),
        ["node1", "node2", "node3"],
        3,
        lost_nodes=lambda: lost,
        each_second=lambda: None,
    )


def test_an_srun_that_says_it_cannot_start_on_a_node_is_ended_at_once(hanging: Ranks) -> None:
    hanging.log.write_text(
        "srun: error: Task launch for StepId=1.0 failed on node node2: Connection refused\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    )
    started = time.monotonic()
    assert watched(hanging).launcher_code != 0
    assert time.monotonic() - started < 60
    assert hanging.unlaunched(["node1", "node2", "node3"]) == {"node2": "Connection refused"}


@pytest.mark.slow
def test_an_srun_that_hangs_is_ended_where_the_node_of_a_silent_rank_does_not_answer(
    hanging: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FIRST_BEATS_S", 0.5)
    assert watched(hanging, ["node3"]).lost_nodes == ("node3",)


def still(*beats: Heartbeat) -> Movement:
    """Ranks that gave these beats at second 1, and nothing since."""
    seen = movement()
    seen.see(list(beats), 1.0)
    return seen


def test_a_step_that_takes_far_longer_than_usual_stalls() -> None:
    quick = still(beat(0, 3, time=1.0, step_time_s=0.1), beat(1, 3, time=1.0, step_time_s=0.1))
    assert not quick.stalls(6.0)
    assert quick.stalls(6.1)
    slow = still(beat(0, 3, time=1.0, step_time_s=2.0), beat(1, 3, time=1.0, step_time_s=2.0))
    assert not slow.stalls(21.0)
    assert slow.stalls(21.1)


def test_nothing_stalls_before_any_rank_knows_how_long_a_step_takes() -> None:
    assert not movement().stalls(1000.0)
    assert not still(beat(0, 1, time=1.0, step_time_s=None)).stalls(1000.0)
    one_knows = still(beat(0, 1, time=1.0, step_time_s=None), beat(1, 1, time=1.0))
    assert one_knows.stalls(1000.0)


def test_nothing_stalls_while_a_rank_does_something_else_than_train() -> None:
    for other in ("start", "save", "validate", "end"):
        mixed = still(beat(0, 3, time=1.0), beat(1, 3, time=1.0, phase=other))
        assert not mixed.stalls(1000.0)
        assert not still(beat(0, 3, time=1.0, phase=other)).stalls(1000.0)


def test_one_rank_that_moves_is_enough_for_no_stall() -> None:
    seen = still(beat(0, 3, time=1.0), beat(1, 3, time=1.0))
    seen.see([beat(1, 4, time=50.0)], 50.0)
    assert not seen.stalls(55.0)
    assert seen.stalls(55.1)
