"""Ranks that agree on a step over a folder: none has passed it, and all come to it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hpc_train.training.resume.stop import StopFlag
from hpc_train.training.scripts.stop_together import StopTogether


def ranks(folder: Path, *steps: int) -> list[StopTogether]:
    made = [
        StopTogether(folder, rank=rank, world_size=len(steps), stop=StopFlag())
        for rank in range(len(steps))
    ]
    for rank, step in zip(made, steps, strict=True):
        rank.step = step
    return made


def train(rank: StopTogether, stopped: list[int | None], number: int) -> None:
    """What the main thread does, however far it is."""
    while rank.step < 1000:
        if rank.is_due():
            stopped[number] = rank.step
            return
        rank.step += 1


@pytest.mark.parametrize("steps", [(0,), (5, 5), (5, 6, 6), (7, 3, 12, 12)])
@pytest.mark.parametrize("asked", [0, -1])
def test_all_stop_at_the_same_step_whichever_was_asked_and_however_far_they_were(
    tmp_path: Path, steps: tuple[int, ...], asked: int
) -> None:
    made = ranks(tmp_path, *steps)
    assert not any(rank.is_due() for rank in made)
    made[asked]._stop.set("SIGTERM")
    made[asked].look()  # it tells the others why
    for rank in made:
        rank.look()
    assert {rank._stop.reason for rank in made} == {"SIGTERM"}
    made[0].look()
    made[-1].look()
    stopped: list[int | None] = [None] * len(steps)
    threads = [
        threading.Thread(target=train, args=(rank, stopped, number))
        for number, rank in enumerate(made)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert stopped == [max(steps) + 1] * len(steps)


def test_a_rank_waits_for_what_the_others_tell_only_where_it_might_have_to_stop(
    tmp_path: Path,
) -> None:
    slow, fast = ranks(tmp_path, 4, 4)
    fast._stop.set("SIGUSR1")
    fast.look()
    assert not fast.is_due(), "at the step that it told it goes on, since one is added"
    fast.step = 5
    answer: list[bool] = []
    waiting = threading.Thread(target=lambda: answer.append(fast.is_due()))
    waiting.start()
    waiting.join(0.05)
    assert not answer
    slow.step = 6
    slow.look()
    waiting.join(60)
    assert answer == [False], "the other one is further: all stop at 7"
    assert fast.at == 7


def test_a_rank_whose_script_is_over_keeps_nobody_waiting(tmp_path: Path) -> None:
    over, other = ranks(tmp_path, 9, 8)
    over.leave()
    other._stop.set("SIGTERM")
    other.look()
    other.step = 9
    assert other.is_due()
