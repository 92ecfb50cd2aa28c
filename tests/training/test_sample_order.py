from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.plan.plan import Batch
from hpc_train.training.resume.sample_order import (
    DataPosition,
    GlobalBatchSampler,
    even_batches,
    sample_order,
)


def order(n: int, seed: int = 0, epoch: int = 0) -> list[int]:
    return sample_order(np.arange(n), n=n, seed=seed, epoch=epoch).tolist()


@given(st.integers(1, 3000), st.integers(0, 2**63), st.integers(0, 1000))
def test_the_order_has_every_sample_once(n: int, seed: int, epoch: int) -> None:
    assert sorted(order(n, seed, epoch)) == list(range(n))


def test_the_order_is_the_same_in_every_version() -> None:
    assert order(12, seed=42, epoch=3) == [6, 5, 11, 7, 4, 0, 2, 10, 8, 1, 3, 9]


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = {tuple(order(100, seed, epoch)) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


def test_every_sample_comes_to_every_place_about_equally_often() -> None:
    counts = np.zeros((10, 10))
    for epoch in range(2000):
        counts[np.arange(10), order(10, 7, epoch)] += 1
    chi_square = ((counts - 200) ** 2 / 200).sum()
    assert chi_square < 120  # 81 degrees of freedom: 99.7 % of fair orders are below


def steps(world_size: int, accumulate: int, *, start: int = 0, n: int = 103) -> list[list[int]]:
    """Samples of each global step, over all ranks, sorted."""
    batch = Batch(12, 12 // (world_size * accumulate), accumulate)
    ranks = [
        list(
            GlobalBatchSampler(
                n,
                batch,
                rank=rank,
                world_size=world_size,
                start=DataPosition(2, start, 5),
                shuffle=True,
            )
        )
        for rank in range(world_size)
    ]
    assert len({len(batches) for batches in ranks}) == 1
    return [
        sorted(
            sample
            for batches in ranks
            for micro in batches[at : at + accumulate]
            for sample in micro
        )
        for at in range(0, len(ranks[0]), accumulate)
    ]


@pytest.mark.parametrize(("world_size", "accumulate"), [(1, 12), (2, 3), (3, 2), (4, 1), (12, 1)])
def test_every_shape_sees_the_same_samples_in_each_step(world_size: int, accumulate: int) -> None:
    assert steps(world_size, accumulate) == steps(1, 1)


@given(st.integers(0, 8), st.sampled_from([(1, 1), (2, 2), (4, 3), (6, 1)]))
def test_from_any_position_on_any_shape_gives_the_rest_of_the_epoch(
    done: int, shape: tuple[int, int]
) -> None:
    assert steps(*shape, start=12 * done) == steps(1, 1)[done:]


def test_the_length_is_that_of_the_whole_epoch_also_in_its_middle() -> None:
    sampler = GlobalBatchSampler(
        103,
        Batch(12, 3, 2),
        rank=0,
        world_size=2,
        start=DataPosition(0, 24, 0),
        shuffle=True,
    )
    assert len(sampler) == 16
    assert len(list(sampler)) == 12
    sampler.set_epoch(0)
    assert len(list(sampler)) == 12
    sampler.set_epoch(1)
    assert len(list(sampler)) == 16


def test_an_incomplete_global_batch_is_other_samples_each_epoch() -> None:
    left_out = set()
    for epoch in range(20):
        sampler = GlobalBatchSampler(
            13,
            Batch(12, 12, 1),
            rank=0,
            world_size=1,
            start=DataPosition(epoch, 0, 0),
            shuffle=True,
        )
        left_out |= set(range(13)) - {sample for micro in sampler for sample in micro}
    assert len(left_out) > 5


def test_a_shape_that_does_not_give_the_global_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be split"):
        GlobalBatchSampler(
            100,
            Batch(12, 5, 1),
            rank=0,
            world_size=2,
            start=DataPosition(0, 0, 0),
            shuffle=False,
        )


@given(st.integers(0, 300), st.integers(1, 9), st.integers(1, 7))
def test_evaluation_has_every_sample_once_in_batches_that_are_not_too_large(
    n: int, batch_size: int, world_size: int
) -> None:
    ranks = [
        even_batches(n, batch_size, rank=rank, world_size=world_size) for rank in range(world_size)
    ]
    assert sorted(sample for batches in ranks for batch in batches for sample in batch) == list(
        range(n)
    )
    assert all(0 < len(batch) <= batch_size for batches in ranks for batch in batches)
    counts = [len(batches) for batches in ranks]
    assert max(counts) - min(counts) <= 1
    if batch_size > 1 and n >= world_size * -(-n // (batch_size * world_size)):
        assert max(counts) == min(counts)


def test_a_sampler_shows_what_torch_and_lightning_ask_of_one() -> None:
    start = DataPosition(2, 24, 7)
    sampler = GlobalBatchSampler(
        103, Batch(12, 3, 2), rank=1, world_size=2, start=start, shuffle=False
    )
    assert (sampler.batch_size, sampler.drop_last, sampler.sampler) == (3, True, sampler)
    assert sampler.position == start
    # Unshuffled, global batch 2 is samples 24 to 35, and rank 1 has the second half of each.
    assert list(sampler)[:2] == [[27, 28, 29], [33, 34, 35]]
    sampler.set_epoch(3)
    assert sampler.position == DataPosition(3, 0, 7)


def test_a_position_within_a_global_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="not at a border of 12 samples"):
        GlobalBatchSampler(
            100,
            Batch(12, 6, 1),
            rank=0,
            world_size=2,
            start=DataPosition(0, 13, 0),
            shuffle=False,
        )
