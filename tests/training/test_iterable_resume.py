from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from hpc_train.errors import ConfigError
from hpc_train.training.resume.iterable_resume import stream_loader
from tests.training.training import Stateless, Stream

MICRO = 4


def make(kind: str, workers: int, persistent: bool = False) -> Any:
    if kind == "stateless":
        return DataLoader(Stateless(56, 0, 2), batch_size=3, num_workers=workers)
    return DataLoader(
        Stream(56, 0, 2, sized=kind == "sized"),
        batch_size=3,
        num_workers=workers,
        persistent_workers=persistent,
    )


def epochs(loader: Any, count: int) -> list[list[Any]]:
    return [[(x.tolist(), ids.tolist()) for x, ids in loader] for _ in range(count)]


@pytest.mark.filterwarnings("ignore:Length of IterableDataset")
@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("kind", ["unsized", "sized"])
def test_a_stream_goes_on_behind_any_batch_with_the_same_samples_and_noise(
    kind: str, workers: int, persistent: bool
) -> None:
    torch.manual_seed(1)
    whole, _ = stream_loader(make(kind, workers, persistent), micro_batch_size=MICRO, start=None)
    torch.manual_seed(1)
    expected = epochs(whole, 2)
    for consumed in (1, len(expected[0]) // 2, len(expected[0]) - 1, len(expected[0])):
        loader, position = stream_loader(
            make(kind, workers, persistent), micro_batch_size=MICRO, start=None
        )
        torch.manual_seed(1)
        batches = iter(loader)
        head = []
        for _ in range(consumed):
            x, ids = next(batches)
            head.append((x.tolist(), ids.tolist()))
        next(batches, None)  # Lightning draws one batch ahead
        state = position.after(consumed)
        del batches
        resumed, _ = stream_loader(
            make(kind, workers, persistent), micro_batch_size=MICRO, start=state
        )
        tail, second = epochs(resumed, 2)
        assert head + tail == expected[0]
        assert [ids for _, ids in second] == [ids for _, ids in expected[1]]


def test_a_stream_without_state_is_read_again_up_to_where_it_was() -> None:
    expected = epochs(make_exact("stateless", None), 1)[0]
    assert epochs(make_exact("stateless", {"batches": 3}), 2) == [expected[3:], expected]


def make_exact(kind: str, start: Any) -> Any:
    return stream_loader(make(kind, 0), micro_batch_size=MICRO, start=start)[0]


def test_another_number_of_data_workers_is_refused() -> None:
    loader, position = stream_loader(make("unsized", 2), micro_batch_size=MICRO, start=None)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ConfigError, match="2 data workers"):
        stream_loader(make("unsized", 1), micro_batch_size=MICRO, start=position.after(1))


class Counting:
    """A loader of the user's own, with a state."""

    def __init__(self) -> None:
        self.at = 0

    def __iter__(self):
        while self.at < 6:
            self.at += 1
            yield self.at
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def test_a_loader_of_the_users_own_with_a_state_goes_on_and_stays_unsized() -> None:
    loader, position = stream_loader(Counting(), micro_batch_size=MICRO, start=None)
    batches = iter(loader)
    assert [next(batches), next(batches), next(batches)] == [1, 2, 3]
    resumed, _ = stream_loader(Counting(), micro_batch_size=MICRO, start=position.after(2))
    assert list(resumed) == [3, 4, 5, 6]
    assert not hasattr(resumed, "__len__")
