from __future__ import annotations

import ctypes
import os
import pickle
import random
import signal
import time
from typing import Any

import pytest
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Batch
from hpc_train.training.resume.sample_order import (
    DataPosition,
    GlobalBatchSampler,
    SeededIndices,
)
from hpc_train.training.resume.sampling import (
    evaluation_loader,
    is_shuffled,
    loader_at,
    map_style_loader,
)
from tests.training.training import Augmented


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


def test_a_subset_and_weights_are_kept_by_the_way_out() -> None:
    for sampler, way in (
        (SubsetRandomSampler([1, 2]), "torch.utils.data.Subset(DATASET, INDICES) and shuffle=True"),
        (WeightedRandomSampler([1.0] * 8, 8), "use shuffle=True and weights in the loss"),
    ):
        with pytest.raises(ConfigError) as caught:
            is_shuffled(DataLoader(Augmented(8), sampler=sampler))
        assert way in caught.value.hint


def test_the_loader_of_a_script_is_no_train_dataloader() -> None:
    """It may be one that is given to fit."""
    batch = Batch(global_batch_size=2, micro_batch_size=2, accumulate=1)
    loader = DataLoader(Augmented(8), sampler=WeightedRandomSampler([1.0] * 8, 8))
    said = {False: "train_dataloader: the order", True: "the train loader: the order"}
    for is_script, words in said.items():
        place = {"rank": 0, "world_size": 1, "saved_size": None, "is_script": is_script}
        with pytest.raises(ConfigError) as caught:
            loader_at(loader, DataPosition(0, 0, 0), batch, **place)
        assert caught.value.message.startswith(words)


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


@pytest.mark.parametrize(
    ("loader", "words"),
    [
        (DataLoader(Augmented(8), batch_sampler=[[0, 1], [2, 3]]), "the order that list gives"),
        (DataLoader(Augmented(8), batch_size=None), "batch_size=None leaves the batches"),
    ],
)
def test_why_an_order_cannot_be_continued_is_said(loader: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        is_shuffled(loader)


class Deathbed(Dataset):  # type: ignore[type-arg]
    """Tells the signal that its process gets when its parent dies (prctl(2), PR_GET_PDEATHSIG)."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        number = ctypes.c_int(0)
        ctypes.CDLL(None).prctl(2, ctypes.byref(number), 0, 0, 0)
        return number.value * 100 + _initialised[0]


_initialised = [0]


def _initialise(worker: int) -> None:
    _initialised[0] = 10 + worker


def test_a_worker_dies_with_its_rank_and_runs_the_users_own_init() -> None:
    killed = int(signal.SIGKILL) * 100
    plain = map_style_loader(DataLoader(Deathbed(), num_workers=1), sampler(8))
    assert {number for batch in plain for number in batch.tolist()} == {killed}
    own = DataLoader(Deathbed(), num_workers=1, worker_init_fn=_initialise)
    twice = map_style_loader(map_style_loader(own, sampler(8)), sampler(8))
    assert {number for batch in twice for number in batch.tolist()} == {killed + 10}
    assert own.worker_init_fn is _initialise


def at(loader: Any, *, saved_size: int | None = None, samples: int = 8, **more: Any) -> Any:
    position = DataPosition(0, samples, 3)
    return loader_at(
        loader, position, Batch(8, 4, 1), rank=0, world_size=2, saved_size=saved_size, **more
    )


def test_a_loader_goes_on_behind_what_was_consumed() -> None:
    def ids(loader: Any) -> list[list[int]]:
        return [numbers.tolist() for _, numbers in loader]

    plain = DataLoader(Augmented(26), batch_size=5)
    assert ids(at(plain)) == [[8, 9, 10, 11], [16, 17, 18, 19]]
    assert ids(at(plain, saved_size=26, samples=16)) == [[16, 17, 18, 19]]
    shuffled = DataLoader(Augmented(26), batch_size=5, shuffle=True)
    assert ids(at(shuffled)) != ids(at(plain))
    assert ids(at(shuffled, may_shuffle=False)) == ids(at(plain))


def test_a_set_that_is_too_small_or_has_changed_is_refused() -> None:
    with pytest.raises(ConfigError, match="has 7 samples, fewer than global_batch_size 8"):
        at(DataLoader(Augmented(7)), samples=0)
    assert len(at(DataLoader(Augmented(8)), samples=0)) == 1
    with pytest.raises(ConfigError, match="global_batch_size=6 or less") as caught:
        at(DataLoader(Augmented(7)), samples=0)
    assert "ranks" not in caught.value.hint  # a config's batch is the same on fewer of them
    with pytest.raises(ConfigError, match="global_batch_size=1 or less, on 1 rank at most"):
        at(DataLoader(Augmented(1)), samples=0)
    with pytest.raises(ConfigError, match="the batch size in the script, or use fewer ranks"):
        at(DataLoader(Augmented(7)), samples=0, is_script=True)
    with pytest.raises(ConfigError, match="has 26 samples now and had 25 before"):
        at(DataLoader(Augmented(26)), saved_size=25)


def test_evaluation_is_dealt_out_in_an_order_of_its_own_each_epoch() -> None:
    def ids(loader: Any) -> list[int]:
        return [number for _, numbers in loader for number in numbers.tolist()]

    def rank(number: int, **more: Any) -> Any:
        own = DataLoader(Augmented(20), batch_size=4, **more)
        return evaluation_loader(own, rank=number, world_size=2, seed=5)

    assert ids(rank(0)) + ids(rank(1)) != list(range(20))
    assert sorted(ids(rank(0)) + ids(rank(1))) == list(range(20))
    loader = rank(0, shuffle=True)
    first = ids(loader)
    assert first == ids(loader)
    loader.batch_sampler.sampler.set_epoch(1)
    assert first != ids(loader)
    assert sorted(ids(rank(0, shuffle=True)) + ids(rank(1, shuffle=True))) == list(range(20))
    alone = DataLoader(Augmented(1), batch_size=4)
    assert ids(evaluation_loader(alone, rank=1, world_size=2, seed=5)) == [0], "fewer than ranks"


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter(range(6))


def test_an_evaluation_that_cannot_be_dealt_out_is_seen_whole_by_every_rank() -> None:
    for own in (
        DataLoader(Stream(), batch_size=4),
        DataLoader(range(6), batch_sampler=[[0, 1, 2, 3], [4, 5]]),  # type: ignore[arg-type]
        DataLoader(range(6), batch_size=4, sampler=range(6)),  # type: ignore[arg-type]
    ):
        for rank in range(2):
            loader = evaluation_loader(own, rank=rank, world_size=2, seed=0)
            assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5]]
            assert loader is not own
            assert loader.generator is not None, "its start draws nothing from the model's RNG"


def test_without_workers_there_is_nothing_to_initialise() -> None:
    assert map_style_loader(DataLoader(Augmented(8)), sampler(8)).worker_init_fn is None
