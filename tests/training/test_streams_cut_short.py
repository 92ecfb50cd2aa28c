"""Epochs of a stream that end by a number of batches, and not where the stream does."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from hpc_train.training.resume.iterable_resume import enter_epoch, goes_on, stream_loader

BATCHES = 4  # of an epoch


class Endless(IterableDataset[int]):
    """Goes on where it was, whoever asks; each worker has thousands of its own."""

    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Any:
        info = get_worker_info()
        of_worker = 1000 * info.id if info else 0
        while True:
            self.at += 1
            yield of_worker + self.at - 1

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class ReadAnew(Endless):
    """Begins anew with each `iter()`, as Hugging Face's do; only a loaded state is gone on from."""

    def __init__(self) -> None:
        super().__init__()
        self.first = 0

    def __iter__(self) -> Any:
        self.at, self.first = self.first, 0
        return super().__iter__()

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = self.first = state["at"]


class Counts:
    """A loader of the user's own that goes on where it was."""

    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Any:
        while True:
            self.at += 1
            yield torch.tensor([self.at])

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


def loader_of(kind: type[Any], workers: int, persistent: bool) -> Any:
    if kind is Counts:
        return Counts()
    options: Any = {"num_workers": workers, "persistent_workers": persistent}
    return DataLoader(kind(), batch_size=2, **options)


def epoch(loader: Any, batches: int = BATCHES) -> list[Any]:
    return [it.tolist() for it in islice(iter(loader), batches)]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "workers", "persistent"),
    [
        (Endless, 0, False),
        (Endless, 2, False),
        (Endless, 2, True),
        (ReadAnew, 0, False),
        (ReadAnew, 2, False),
        (ReadAnew, 2, True),
        (Counts, 0, False),
    ],
)
def test_an_attempt_that_begins_at_the_end_of_an_epoch_gives_the_next_one_all_its_samples(
    kind: type[Any], workers: int, persistent: bool, at: int
) -> None:
    """The first batch of the next epoch was drawn, and lost."""
    loader, position = stream_loader(
        loader_of(kind, workers, persistent), micro_batch_size=2, start=None
    )
    epochs = []
    for number in range(4):
        enter_epoch(loader, position, epoch=number, seed=1, cut=True)
        epochs.append(epoch(loader))
        if number == at:
            saved = position.after(BATCHES)
    again, position = stream_loader(
        loader_of(kind, workers, persistent), micro_batch_size=2, start=saved
    )
    enter_epoch(again, position, epoch=at, seed=1)
    for number in range(at + 1, 4):
        enter_epoch(again, position, epoch=number, seed=1, cut=True)
        assert epoch(again) == epochs[number], number


@pytest.mark.parametrize(("persistent", "first"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("batches", [1, 2, 3])
def test_an_attempt_that_begins_within_a_later_epoch_goes_on_in_each_worker(
    persistent: bool, first: int, batches: int
) -> None:
    """Of workers that live on, once each has given a batch of it; before, the others begin anew."""
    loader, position = stream_loader(
        loader_of(Endless, 2, persistent), micro_batch_size=2, start=None
    )
    enter_epoch(loader, position, epoch=0, seed=1, cut=True)
    epoch(loader)
    enter_epoch(loader, position, epoch=1, seed=1, cut=True)
    whole = epoch(loader)
    saved = position.after(batches)
    again, position = stream_loader(
        loader_of(Endless, 2, persistent), micro_batch_size=2, start=saved
    )
    enter_epoch(again, position, epoch=1, seed=1, cut=True)
    assert (epoch(again, BATCHES - batches) == whole[batches:]) == (batches >= first)


@pytest.mark.parametrize(("kind", "expected"), [(Endless, True), (ReadAnew, False), (Counts, True)])
@pytest.mark.parametrize("at", [1, 2, 7])
def test_whether_a_set_goes_on_is_asked_without_moving_it(
    kind: type[Any], expected: bool, at: int
) -> None:
    source = kind()
    for _ in islice(iter(source), at):
        pass
    state = source.state_dict()
    assert goes_on(source, state) is expected
    assert source.state_dict() == state
    plain = [int(it) for it in islice(iter(source), 3)]
    source.load_state_dict(state)
    assert [int(it) for it in islice(iter(source), 3)] == plain
