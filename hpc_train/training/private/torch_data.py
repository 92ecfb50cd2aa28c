"""How a DataLoader fetches a batch, and which of its workers it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Protocol, cast

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.data import DataLoader
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter


class Fetcher(Protocol):
    """What makes a batch of a map-style set, in the rank or in one of its data workers."""

    dataset: Any
    collate_fn: Callable[[Any], Any]


def fetch_by(kind: type, fetch: Callable[[Any, Fetcher], Any]) -> None:
    """Batches whose indices are a `kind` are made by `fetch(indices, fetcher)`, for good.

    `_MapDatasetFetcher.fetch` is the one place that all loaders go through; other batches are
    fetched as before.
    """
    plain = cast("Any", _MapDatasetFetcher).fetch

    def replaced(self: Any, indices: Any) -> Any:
        return fetch(indices, self) if isinstance(indices, kind) else plain(self, indices)

    cast("Any", _MapDatasetFetcher).fetch = replaced


def forget_iterator(loader: DataLoader[Any]) -> None:
    """A copied loader must not take over the workers that live on for the one it was copied of."""
    object.__setattr__(loader, "_iterator", None)


def follow_batches(drawn: Callable[..., None], raised: Callable[[Exception], None]) -> None:
    """Each batch of any loader is told from now on, and each error that it fails with."""
    kind = cast("Any", _BaseDataLoaderIter)
    take = kind.__next__

    def told(self: Any) -> Any:
        try:
            batch = take(self)
        except StopIteration:
            raise
        except Exception as error:
            raised(error)
            raise
        drawn(is_last=self._num_yielded == _length(self))
        return batch

    kind.__next__ = told


def _length(batches: Any) -> int | None:
    """How many batches there are; None of a set that does not tell."""
    try:
        return len(batches)
    except TypeError:
        return None


def has_ended(batches: Any) -> bool:
    """Whether an iterator without workers has met the end of its iterable set."""
    return bool(batches._dataset_fetcher.ended)


class _RotatedIterator(_MultiProcessingDataLoaderIter):
    """Asks worker `first` for the first batch, where PyTorch always asks worker 0."""

    first = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_worker_queue_idx_cycle" and self.first:
            value, self.first = islice(value, self.first, None), 0
        super().__setattr__(name, value)


def iterate_from(loader: DataLoader[Any], first: int) -> Iterator[Any]:
    """`iter(loader)`, but worker number `first` is asked for the first batch."""
    kind = type("_Rotated", (_RotatedIterator,), {"first": first})
    iterator = cast("Iterator[Any]", kind(loader))
    if loader.persistent_workers:
        object.__setattr__(loader, "_iterator", iterator)
    return iterator


def is_batch_norm(layer: nn.Module) -> bool:
    """Whether a layer normalises over the batch, and so over what its rank alone sees."""
    return isinstance(layer, _BatchNorm)
