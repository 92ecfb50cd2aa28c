from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.config.schema import Config, SlurmConfig
from hpc_train.errors import CheckError
from hpc_train.plan.plan import Shape
from hpc_train.plan.shape import shape_of, split_batch


def config(accelerator: str | None, **slurm: int) -> Config:
    trainer = {} if accelerator is None else {"accelerator": accelerator}
    return Config(
        name="x",
        global_batch_size=8,
        model={},
        data={},
        trainer=trainer,
        slurm=SlurmConfig(**slurm),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("accelerator", [None, "auto", "gpu"])
def test_a_rank_has_a_gpu_unless_the_config_says_cpu(accelerator: str | None) -> None:
    shape = shape_of(config(accelerator, nodes=3, gpus_per_node=4, spares=1))
    assert shape == Shape(nodes=3, ranks_per_node=4, gpus_per_node=4, spares=1)
    assert shape.world_size == 12


def test_on_cpus_the_ranks_a_node_are_kept_and_no_gpu_is_asked_for() -> None:
    shape = shape_of(config("cpu", nodes=2, gpus_per_node=2))
    assert (shape.ranks_per_node, shape.gpus_per_node) == (2, 0)


@given(
    st.integers(1, 4096),
    st.one_of(st.none(), st.integers(1, 512)),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_a_batch_is_split_exactly_or_refused(
    batch: int, micro: int | None, nodes: int, ranks: int
) -> None:
    shape = Shape(nodes, ranks, ranks)
    try:
        split = split_batch(batch, micro, shape)
    except CheckError:
        assert batch % shape.world_size
        return
    assert split.micro_batch_size * split.accumulate * shape.world_size == batch
    share = batch // shape.world_size
    larger = range(split.micro_batch_size + 1, min(share, micro or share) + 1)
    assert split.micro_batch_size <= (micro or share)
    assert all(share % size for size in larger), "a larger micro batch was possible"


def test_a_batch_that_cannot_be_split_names_the_nearest_sizes_and_shapes() -> None:
    with pytest.raises(CheckError) as caught:
        split_batch(64, None, Shape(3, 4, 4))
    assert caught.value.message == (
        "global_batch_size 64 cannot be split over 12 ranks (3 nodes x 4)"
    )
    assert "nearest global_batch_size: 60 or 72" in caught.value.hint
    assert "--nodes 4 --gpus 4" in caught.value.hint
    assert "--nodes 2 --gpus 4" in caught.value.hint


def test_every_shape_that_is_offered_can_split_the_batch() -> None:
    with pytest.raises(CheckError) as caught:
        split_batch(50, None, Shape(4, 4, 4))
    offers = caught.value.hint.partition("nearest shapes: ")[2].split(" or ")
    for offer in offers:
        _, nodes, _, ranks = offer.split()
        assert 50 % (int(nodes) * int(ranks)) == 0
    assert offers


def test_where_neither_number_can_stay_the_nearest_ranks_are_offered() -> None:
    for shape, first in (
        (Shape(3, 3, 3), "--nodes 2 --gpus 4"),
        (Shape(1, 3, 3), "--nodes 1 --gpus 2"),
        (Shape(3, 1, 1), "--nodes 2 --gpus 1"),
        (Shape(5, 7, 7), "--nodes 4 --gpus 8"),
    ):
        with pytest.raises(CheckError) as caught:
            split_batch(32, None, shape)
        offers = caught.value.hint.partition("nearest shapes: ")[2].split(" or ")
        assert offers[0] == first


def test_a_batch_smaller_than_the_ranks_offers_no_size_of_zero() -> None:
    with pytest.raises(CheckError) as caught:
        split_batch(3, None, Shape(2, 4, 4))
    assert "nearest global_batch_size: 8;" in caught.value.hint
