from __future__ import annotations

import os
import pickle
import random
import signal
import time
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, WeightedRandomSampler

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Batch
from hpc_train.train.position import DataPosition, GlobalBatchSampler
from hpc_train.train.sampling import evaluation_loader, is_shuffled, map_style_loader
from hpc_train.train.seeded_fetch import SeededIndices
from tests.train.training import Augmented


def sampler(n: int, *, rank: int = 0, world_size: int = 1, epoch: int = 0) -> GlobalBatchSampler:
    return GlobalBatchSampler(
        n,
        Batch(8, 8 // world_size, 1),
        rank=rank,
        world_size=world_size,
        start=DataPosition(epoch, 0, 3),
        shuffle=True,
    )


def samples(loader: Any) -> dict[int, list[float]]:
    return {
        number: x.tolist() for xs, ids in loader for x, number in zip(xs, ids.tolist(), strict=True)
    }


def test_augmentation_is_the_samples_own_whatever_workers_and_ranks() -> None:
    alone = samples(map_style_loader(DataLoader(Augmented(40)), sampler(40)))
    assert len(alone) == 40
    in_workers = samples(map_style_loader(DataLoader(Augmented(40), num_workers=2), sampler(40)))
    assert in_workers == alone
    second = samples(map_style_loader(DataLoader(Augmented(40)), sampler(40, rank=1, world_size=2)))
    assert second
    assert all(alone[number] == value for number, value in second.items())


def test_persistent_workers_learn_of_a_new_epoch() -> None:
    loader = map_style_loader(
        DataLoader(Augmented(40), num_workers=1, persistent_workers=True), sampler(40)
    )
    first = samples(loader)
    loader.batch_sampler.sampler.set_epoch(1)  # type: ignore[union-attr]
    second = samples(loader)
    assert all(first[number] != second[number] for number in first)
    assert second == samples(map_style_loader(DataLoader(Augmented(40)), sampler(40, epoch=1)))


def test_loading_in_the_ranks_process_does_not_touch_its_rngs() -> None:
    torch.manual_seed(5)
    random.seed(5)
    expected = torch.rand(3).tolist(), random.random()
    torch.manual_seed(5)
    random.seed(5)
    samples(map_style_loader(DataLoader(Augmented(40)), sampler(40)))
    assert (torch.rand(3).tolist(), random.random()) == expected


def test_indices_go_to_workers_whole() -> None:
    copy = pickle.loads(pickle.dumps(SeededIndices([4, 5], seed=1, epoch=2)))
    assert (list(copy), copy.seed, copy.epoch) == ([4, 5], 1, 2)


class OwnLoader(DataLoader):  # type: ignore[type-arg]
    """Takes arguments that nobody could guess, and adds to each batch."""

    def __init__(self, secret: int, data: Dataset[Any]) -> None:
        super().__init__(data, batch_size=2, shuffle=True, collate_fn=self.collate)
        self.secret = secret

    def collate(self, items: list[Any]) -> Any:
        return self.secret, [number for _, number in items]


def test_a_loader_class_of_the_users_own_keeps_what_it_does() -> None:
    own = OwnLoader(7, Augmented(40))
    assert is_shuffled(own)
    exact = map_style_loader(own, sampler(40))
    assert isinstance(exact, OwnLoader)
    assert len(exact) == 5
    batches = list(exact)
    assert {secret for secret, _ in batches} == {7}
    assert sorted(number for _, ids in batches for number in ids) == list(range(40))
    assert len(own) == 20  # the user's own is as it was


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Augmented(8), sampler=WeightedRandomSampler([1.0] * 8, 8)),
        DataLoader(Augmented(8), batch_sampler=[[0, 1], [2, 3]]),
        DataLoader(Augmented(8), batch_size=None),
    ],
    ids=["sampler", "batch sampler", "no batches"],
)
def test_an_order_that_cannot_be_continued_is_refused_with_a_way_out(loader: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        is_shuffled(loader)
    assert caught.value.hint


def test_evaluation_has_every_sample_once_over_the_ranks() -> None:
    seen = []
    lengths = []
    for rank in range(3):
        data = Subset(TensorDataset(torch.arange(50)), range(1, 50))
        loader = evaluation_loader(DataLoader(data, batch_size=4), rank=rank, world_size=3, seed=0)
        lengths.append(len(loader))
        seen += [int(number) for (batch,) in loader for number in batch]
    assert sorted(seen) == list(range(1, 50))
    assert len(set(lengths)) == 1


def test_an_evaluation_sampler_of_the_users_own_is_left_alone() -> None:
    mine = DataLoader(Augmented(8), sampler=[5, 3], batch_size=2)
    loader = evaluation_loader(mine, rank=0, world_size=2, seed=0)
    assert [ids.tolist() for _, ids in loader] == [[5, 3]]


class Slow(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> int:
        time.sleep(0.01)
        return index


def test_stop_signals_do_not_kill_data_workers() -> None:
    loader = map_style_loader(DataLoader(Slow(), num_workers=2), sampler(64))
    batches = iter(loader)
    first = next(batches).tolist()
    for worker in batches._workers:  # type: ignore[attr-defined]
        os.kill(worker.pid, signal.SIGTERM)
        os.kill(worker.pid, signal.SIGUSR1)
    rest = [number for batch in batches for number in batch.tolist()]
    assert sorted(first + rest) == list(range(64))
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
