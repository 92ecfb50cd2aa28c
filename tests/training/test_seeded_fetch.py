"""An augmentation is the sample's own, on every way that PyTorch has to a batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    MapDataPipe,
    StackDataset,
    Subset,
    TensorDataset,
)

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Batch
from hpc_train.training.resume.sample_order import DataPosition, GlobalBatchSampler
from hpc_train.training.resume.sampling import evaluation_loader, map_style_loader
from tests.training.training import Augmented

N = 40


def noise() -> torch.Tensor:
    return random.random() + np.random.rand() + torch.rand(4)


class Listed(Dataset):  # type: ignore[type-arg]
    """Has `__getitems__`, and draws for each sample or, as many do, for all of them at once."""

    def __init__(self, n: int = N, *, at_once: bool = False) -> None:
        self.n, self.at_once = n, at_once
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, int]]:
        self.asked.append(len(indices))
        if self.at_once:
            drawn = np.random.rand(len(indices)) + random.random() + torch.rand(1).numpy()
            return [(torch.tensor([value]), i) for value, i in zip(drawn, indices, strict=True)]
        return [(noise(), index) for index in indices]


class Arrow:
    """In the manner of Hugging Face's `datasets`: columns, and a transform of a batch of rows."""

    def __init__(self, n: int, transform: Callable[[Any], Any] | None = None) -> None:
        self.n, self.transform = n, transform

    def with_transform(self, transform: Callable[[Any], Any]) -> Arrow:
        return Arrow(self.n, transform)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, key: Any) -> Any:
        one = isinstance(key, int)
        rows = self.transform({"id": [key] if one else list(key)})  # type: ignore[misc]
        return {name: column[0] for name, column in rows.items()} if one else rows

    def __getitems__(self, keys: list[int]) -> list[Any]:
        rows = self[keys]
        return [{name: column[at] for name, column in rows.items()} for at in range(len(keys))]


def jitter(rows: dict[str, Any]) -> dict[str, Any]:
    ids = rows["id"]
    return {"x": list(torch.rand(len(ids), 2) + random.random()), "id": ids}


class Pipe(MapDataPipe):  # type: ignore[type-arg,misc]
    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return noise(), index


SETS: dict[str, Callable[[], Any]] = {
    "__getitem__": lambda: Augmented(N),
    "__getitems__": Listed,
    "__getitems__ that draws for all at once": lambda: Listed(at_once=True),
    "Subset": lambda: Subset(Augmented(N + 3), range(3, N + 3)),
    "Subset of __getitems__": lambda: Subset(Listed(N + 3), range(3, N + 3)),
    "Subset of a Subset": lambda: Subset(Subset(Listed(N + 3), range(N + 3)), range(3, N + 3)),
    "ConcatDataset": lambda: ConcatDataset([Listed(N // 2), Augmented(N - N // 2)]),
    "Subset of a ConcatDataset": lambda: Subset(ConcatDataset([Listed(30), Listed(30)]), range(N)),
    "StackDataset": lambda: StackDataset(Augmented(N), Augmented(N)),
    "StackDataset of __getitems__": lambda: StackDataset(a=Listed(), b=Augmented(N)),
    "with_transform": lambda: Arrow(N).with_transform(jitter),
    "Subset of with_transform": lambda: Subset(Arrow(N).with_transform(jitter), range(N)),
    "MapDataPipe": Pipe,
}


def loader(
    data: Any, *, workers: int = 0, rank: int = 0, world: int = 1, done: int = 0, **options: Any
) -> Any:
    batches = GlobalBatchSampler(
        N,
        Batch(8, 8 // world, 1),
        rank=rank,
        world_size=world,
        start=DataPosition(options.pop("epoch", 1), done, 3),
        shuffle=True,
    )
    return map_style_loader(DataLoader(data, num_workers=workers, **options), batches)


def samples(data: Any, **place: Any) -> dict[int, str]:
    """All that a sample came with, by its place in the set (the order in which it is listed)."""
    exact = loader(data, **place)
    order = [index for batch in exact.batch_sampler for index in batch]
    rows = [row for batch in exact for row in zip(*_leaves(batch), strict=True)]
    return {index: str(row) for index, row in zip(order, rows, strict=True)}


def _leaves(batch: Any) -> list[list[Any]]:
    if isinstance(batch, torch.Tensor):
        return [batch.tolist()]
    parts = batch.values() if isinstance(batch, dict) else batch
    return [leaf for part in parts for leaf in _leaves(part)]


@pytest.mark.parametrize("make", SETS.values(), ids=SETS.keys())
def test_an_augmentation_depends_on_seed_epoch_and_sample_alone(make: Callable[[], Any]) -> None:
    alone = samples(make())
    assert len(set(alone.values())) == N
    assert samples(make()) == alone, "another start"
    torch.manual_seed(99)
    np.random.seed(99)
    random.seed(99)
    assert samples(make(), workers=2) == alone, "two workers"
    for workers in (0, 2):
        halves = [samples(make(), workers=workers, rank=rank, world=2) for rank in range(2)]
        assert {**halves[0], **halves[1]} == alone, "two ranks, and other batch mates"
        rest = samples(make(), workers=workers, done=24)
        assert rest == {index: alone[index] for index in rest}, "a resume"
        assert len(rest) == N - 24
    assert not set(samples(make(), epoch=2).values()) & set(alone.values())


@pytest.mark.parametrize("make", SETS.values(), ids=SETS.keys())
def test_loading_in_the_rank_itself_leaves_its_rngs_as_they_were(make: Callable[[], Any]) -> None:
    exact = loader(make())
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    expected = noise()
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    list(exact)
    assert torch.equal(noise(), expected)


def masking(items: list[Any]) -> Any:
    """As collators for language models do: what is masked is drawn for the whole batch."""
    ids = torch.tensor([int(item[-1]) for item in items])
    return torch.rand(len(items)) + random.random() + np.random.rand(), ids


@pytest.mark.parametrize(
    "data", [Augmented(N), Listed(), TensorDataset(torch.arange(N))], ids=["one", "listed", "plain"]
)
def test_a_collate_fn_that_draws_gives_the_same_batches_anywhere(data: Any) -> None:
    alone = samples(data, collate_fn=masking)
    assert len(set(alone.values())) == N
    torch.manual_seed(99)
    assert samples(data, collate_fn=masking, workers=2) == alone
    for workers in (0, 2):
        rest = samples(data, collate_fn=masking, workers=workers, done=24)
        assert rest == {index: alone[index] for index in rest}


def test_a_collate_fn_does_not_draw_the_numbers_of_the_only_sample() -> None:
    batches = GlobalBatchSampler(
        N, Batch(1, 1, 1), rank=0, world_size=1, start=DataPosition(0, 0, 3), shuffle=False
    )
    exact = map_style_loader(
        DataLoader(Listed(), collate_fn=lambda items: (items[0][0], noise())), batches
    )
    assert all(not torch.equal(mine, collated) for mine, collated in exact)


@pytest.mark.parametrize("workers", [0, 2])
def test_evaluation_is_seeded_as_well(workers: int) -> None:
    def of(rank: int, world: int, workers: int) -> dict[int, Any]:
        plain = DataLoader(Listed(), batch_size=4, num_workers=workers)
        exact = evaluation_loader(plain, rank=rank, world_size=world, seed=3)
        return {int(i): x.tolist() for xs, ids in exact for x, i in zip(xs, ids, strict=True)}

    assert {**of(0, 2, workers), **of(1, 2, workers)} == of(0, 1, 0)


class Even(Listed):
    """Draws nothing, and pads nothing: one call a batch is as good as many."""

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, int]]:
        self.asked.append(len(indices))
        return [(torch.tensor([float(index)]), index) for index in indices]


def test_a_set_that_draws_nothing_is_asked_for_whole_batches() -> None:
    data = Even()
    list(loader(data))
    assert data.asked == [8] * 5


def test_a_set_that_draws_is_asked_once_too_often_and_then_one_by_one() -> None:
    data = Listed()
    list(loader(data))
    assert data.asked == [8] + [1] * N


class Sometimes(Listed):
    """Draws for one sample in ten, and counts its batch mates where it draws nothing."""

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, int]]:
        self.asked.append(len(indices))
        drawn = {index: noise() for index in indices if index % 10 == 0}
        mates = torch.full((4,), float(len(indices)))
        return [(drawn.get(index, mates), index) for index in indices]


def test_how_a_batch_is_made_does_not_depend_on_the_batches_before_it() -> None:
    alone = samples(Sometimes())
    for done in (8, 16, 24, 32):
        rest = samples(Sometimes(), done=done)
        assert rest == {index: alone[index] for index in rest}


DRAWS: dict[str, Callable[[], Any]] = {
    "random": random.random,
    "numpy": np.random.rand,
    "numpy's normal": np.random.randn,
    "torch": lambda: torch.rand(()).item(),
    "the seed itself": torch.initial_seed,
    "all": lambda: noise().sum().item(),
}


class Rarely(Dataset):  # type: ignore[type-arg]
    """Draws for one sample in ten: in some batches for none, in others for one or two."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        self.draw = draw
        self.drawing = set(range(0, N, 10))
        self.asked: list[int] = []

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        self.asked.append(index)
        drawn = self.draw() if index in self.drawing else 0.0
        return torch.tensor(drawn, dtype=torch.float64), index


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_a_set_that_draws_rarely_is_seeded_by_sample_all_the_same(draw: Callable[[], Any]) -> None:
    alone = samples(Rarely(draw))
    assert len(set(alone.values())) == N
    for done in (8, 16, 24, 32):
        rest = samples(Rarely(draw), done=done)
        assert rest == {index: alone[index] for index in rest}, "another batch comes first"
    for workers in (0, 2):
        halves = [samples(Rarely(draw), workers=workers, rank=rank, world=2) for rank in range(2)]
        assert {**halves[0], **halves[1]} == alone


@pytest.mark.parametrize(
    ("name", "batches", "again"),
    [
        ("random", [], 0),
        ("random", [0], 0),
        ("random", [1], 8),
        ("numpy", [2, 3], 8),
        ("numpy", [0, 4], 0),
        ("torch", [1, 2], 0),
    ],
)
def test_at_most_one_batch_is_made_twice(name: str, batches: list[int], again: int) -> None:
    data = Rarely(DRAWS[name])
    order = [list(batch) for batch in loader(data).batch_sampler]
    data.drawing = {order[batch][5] for batch in batches}
    list(loader(data))
    assert len(data.asked) == N + again
    assert set(data.asked) == set(range(N))


class Columns(Listed):
    """Gives a batch and not a list of samples, which PyTorch passes on as it is."""

    def __getitems__(self, indices: list[int]) -> Any:
        x = torch.tensor(indices).float()
        return {"x": x + torch.rand(len(indices)) if self.at_once else x}


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_cannot_be_seeded_by_sample_are_refused_with_a_way_out(workers: int) -> None:
    exact = loader(Columns(at_once=True), workers=workers, collate_fn=lambda batch: batch)
    batches = iter(exact)
    with pytest.raises(ConfigError, match="gave a dict for one index") as caught:
        next(batches)
    if workers:
        batches._shutdown_workers()  # else Python's end would wait: they do not hear SIGTERM
    assert "one sample for each index" in str(caught.value)
    whole = [row["x"] for row in loader(Columns(), workers=workers, collate_fn=lambda batch: batch)]
    assert sorted(torch.cat(whole).tolist()) == list(range(N))


def test_that_samples_are_made_one_by_one_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    list(loader(Listed(), epoch=0))
    said = capfd.readouterr().out
    assert said.count("NOTE: Listed.__getitems__ draws random numbers") == 1
    list(loader(Even(), epoch=0))
    assert "NOTE" not in capfd.readouterr().out


def test_a_loader_that_is_none_of_ours_is_fetched_as_before() -> None:
    data = Listed()
    list(DataLoader(data, batch_size=8))
    assert data.asked == [8] * 5
