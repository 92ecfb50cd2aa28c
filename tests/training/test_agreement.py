"""What ranks agree on at a boundary, and how often they ask; the clock is the test's own."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch.distributed as dist

from hpc_train.training.resume.agreement import Agreed, Agreement, cpu_group, next_check
from hpc_train.training.resume.stop import StopFlag
from tests.training.threads import as_ranks


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def alone(clock: Clock, stop: StopFlag | None = None) -> Agreement:
    return Agreement(None, stop or StopFlag(), rank=0, clock=clock)


@pytest.mark.parametrize(
    ("step_time_s", "cost_s", "boundaries"),
    [
        (0.125, 1.0, 5),  # 0.7 s to react
        (0.1, 2e-4, 2),  # a thousandth of 0.2 s is the cost
        (0.1, 1e-4, 1),
        (0.7, 1.0, 1),
        (0.8, 1.0, 1),
        (0.35, 1.0, 2),
        (10.0, 1.0, 1),
        (0.001, 5e-5, 50),
        (0.0, 1.0, 1),  # a clock that stands still
        (0.1, 0.0, 1),
    ],
)
def test_ranks_ask_rarely_enough_to_cost_little_and_soon_enough_to_react(
    step_time_s: float, cost_s: float, boundaries: int
) -> None:
    assert next_check(step_time_s, cost_s) == boundaries


def asked_at(step_s: float, steps: int) -> list[int]:
    """The boundaries, counted from 1, at which a lone rank asks."""
    clock = Clock()
    agreement = alone(clock)
    asked = []
    for boundary in range(1, steps + 1):
        clock.now += step_s
        if agreement.boundary(save_due=False, written=0) is not None:
            asked.append(boundary)
    return asked


def test_every_boundary_asks_until_three_steps_have_told_their_time() -> None:
    # Alone there is no all-reduce, and 50 us stand for its cost: 50 ms between two checks.
    assert asked_at(1 / 64, 14) == [1, 2, 3, 4, 7, 10, 13]
    assert asked_at(1 / 8, 8) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_step_time_is_the_median_of_the_last_ones_without_what_came_between() -> None:
    clock = Clock()
    agreement = alone(clock)
    assert agreement.step_time_s is None
    for seconds in (5.0, 1.0, 1.0, 3.0):
        clock.now += seconds
        agreement.boundary(save_due=False, written=0)
    assert agreement.step_time_s == 1.0, "the first boundary has none before it"
    clock.now += 900
    agreement.rest()
    agreement.boundary(save_due=False, written=0)
    assert agreement.step_time_s == 1.0
    for _ in range(20):
        clock.now += 2.0
        agreement.boundary(save_due=False, written=0)
    assert agreement.step_time_s == 2.0, "the old ones are forgotten"


@pytest.mark.parametrize("cause", ["stop file", "SIGUSR1", "SIGUSR2", "SIGTERM"])
def test_a_stop_has_its_cause(cause: str) -> None:
    stop = StopFlag()
    agreement = alone(Clock(), stop)
    assert agreement.check() == Agreed("", save=False, written=0, common=0)
    stop.set(cause)
    assert agreement.check().cause == cause


def test_a_reason_that_has_no_number_is_still_a_stop() -> None:
    stop = StopFlag()
    stop.set("something new")
    assert alone(Clock(), stop).check().cause == "stop file"


def test_a_world_of_one_needs_no_group() -> None:
    assert cpu_group(1) is None


def test_one_signalled_rank_stops_all_and_the_strongest_cause_is_told() -> None:
    reasons = [None, "SIGUSR1", "SIGTERM"]

    def rank(number: int, group: dist.ProcessGroup) -> tuple[str, str | None]:
        stop = StopFlag()
        reason = reasons[number]
        if reason:
            stop.set(reason)
        cause = Agreement(group, stop, rank=number).check().cause
        return cause, stop.reason

    agreed = as_ranks(3, rank)
    assert [cause for cause, _ in agreed] == ["SIGTERM"] * 3
    assert [own for _, own in agreed] == ["SIGTERM", "SIGUSR1", "SIGTERM"]


def test_only_rank_0_says_that_a_save_is_due_and_all_hear_it() -> None:
    def rank(due: list[bool]) -> list[bool]:
        return [
            agreed.save
            for agreed in as_ranks(
                2, lambda n, group: Agreement(group, StopFlag(), rank=n).check(save_due=due[n])
            )
        ]

    assert rank([True, False]) == [True, True]
    assert rank([False, True]) == [False, False]


def test_what_all_have_written_and_what_all_have_before_them_is_the_least() -> None:
    def rank(number: int, group: dist.ProcessGroup) -> Agreed:
        agreement = Agreement(group, StopFlag(), rank=number)
        return agreement.check(written=[3, 2, 4][number], common=[7, 9, 5][number])

    assert as_ranks(3, rank) == [Agreed("", save=False, written=2, common=5)] * 3


def test_all_ranks_ask_at_the_boundaries_that_rank_0_says_whatever_their_clocks_say() -> None:
    def rank(number: int, group: dist.ProcessGroup) -> list[int]:
        clock = Clock()
        agreement = Agreement(group, StopFlag(), rank=number, clock=clock)
        asked = []
        for boundary in range(1, 15):
            clock.now += 1 / 64 if number == 0 else 5.0
            if agreement.boundary(save_due=False, written=0) is not None:
                asked.append(boundary)
        return asked

    assert as_ranks(2, rank) == [[1, 2, 3, 4, 7, 10, 13]] * 2


def test_the_cheapest_of_the_last_questions_tells_what_one_costs() -> None:
    class Costly(Clock):
        """Each look at it is later by `cost_s`: an all-reduce lies between two looks."""

        cost_s = 0.0

        def __call__(self) -> float:
            self.now += self.cost_s
            return self.now

    def rank(number: int, group: dist.ProcessGroup) -> list[int]:
        clock = Costly()
        agreement = Agreement(group, StopFlag(), rank=number, clock=clock)
        asked = []
        for boundary in range(1, 80):
            clock.now += 0.01
            clock.cost_s = 0.02 if boundary == 2 else 2e-4  # once a rank was late
            if agreement.boundary(save_due=False, written=0) is not None:
                asked.append(boundary)
        return asked

    asked = as_ranks(1, rank)[0]
    # 0.2 ms cost, 0.2 s between two checks, and 10.2 ms a step once the late one is forgotten.
    assert {after - before for before, after in pairwise(asked[5:])} == {19}
