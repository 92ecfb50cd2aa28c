"""Loaders that can go on in the middle of an epoch, made of the loaders that users return.

A loader is not built anew (its class may take any arguments) but copied, with our batch sampler in
place of its own. Dataset, collate_fn, workers, pinning and worker_init_fn stay what they were.
"""

from __future__ import annotations

import copy
import ctypes
import signal
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
)
from torch.utils.data.distributed import DistributedSampler

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Batch
from hpc_train.training.resume.sample_order import (
    DataPosition,
    GlobalBatchSampler,
    even_batches,
    sample_order,
)
from hpc_train.training.resume.seeded_fetch import SeededIndices
from hpc_train.training.resume.stop import shielded_from_signals

__all__ = [
    "EvenBatchSampler",
    "SeededBatches",
    "evaluation_loader",
    "is_shuffled",
    "loader_at",
    "map_style_loader",
    "own_generator",
    "shield",
]

Loader = DataLoader[Any]

_PR_SET_PDEATHSIG = 1


class SeededBatches:
    """A batch sampler whose batches carry the seed of each sample, see `SeededIndices`."""

    def __init__(self, inner: GlobalBatchSampler | EvenBatchSampler, seed: int) -> None:
        self.inner = inner
        self.seed = seed
        self.batch_size = inner.batch_size
        self.drop_last = inner.drop_last

    @property
    def sampler(self) -> Any:
        """What Lightning calls `set_epoch` on."""
        return self.inner

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[SeededIndices]:
        for indices in self.inner:
            yield SeededIndices(indices, self.seed, self.inner.position_epoch)


class EvenBatchSampler:
    """Evaluation batches of one rank: over all ranks every sample once, see `even_batches`."""

    drop_last = False

    def __init__(
        self, n: int, batch_size: int, *, rank: int, world_size: int, seed: int, shuffle: bool
    ) -> None:
        self.n = n
        self.batch_size = batch_size
        self.seed = seed
        self.shuffle = shuffle
        self.position_epoch = 0
        self._batches = even_batches(n, batch_size, rank=rank, world_size=world_size)

    @property
    def sampler(self) -> EvenBatchSampler:
        """Itself: Lightning looks for `set_epoch` on `batch_sampler.sampler`."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Another order each epoch, where the user shuffles evaluation."""
        self.position_epoch = epoch

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self._batches:
            positions = np.arange(batch.start, batch.stop)
            if self.shuffle:
                epoch = self.position_epoch
                positions = sample_order(positions, n=self.n, seed=self.seed, epoch=epoch)
            yield positions.tolist()


def is_shuffled(loader: Loader) -> bool:
    """Whether the user's train loader shuffles.

    Raises:
        ConfigError: its sampler is one of the user's own, whose order cannot be continued.
    """
    sampler, batch_sampler = loader.sampler, loader.batch_sampler
    if loader.batch_size is None and batch_sampler is None:
        raise ConfigError(
            "train_dataloader: batch_size=None leaves the batches to the dataset, so the global "
            "batch cannot be kept",
            "give the DataLoader a batch_size; the plan's micro batch replaces it",
        )
    if type(batch_sampler) is not BatchSampler:
        raise _unknown_sampler(type(batch_sampler).__name__)
    if isinstance(sampler, DistributedSampler):
        return sampler.shuffle
    if type(sampler) is RandomSampler and not sampler.replacement:
        return True
    if type(sampler) is SequentialSampler:
        return False
    raise _unknown_sampler(type(sampler).__name__)


def _unknown_sampler(name: str) -> ConfigError:
    return ConfigError(
        f"train_dataloader: the order that {name} gives cannot be continued by other ranks or "
        "after an interruption",
        "use shuffle=True or shuffle=False; for another order give the DataLoader an "
        "IterableDataset with state_dict() and load_state_dict()",
    )


def loader_at(
    loader: Loader,
    position: DataPosition,
    batch: Batch,
    *,
    rank: int,
    world_size: int,
    saved_size: int | None,
    may_shuffle: bool = True,
) -> Loader:
    """A copy of the user's map-style train loader that goes on at `position`.

    Args:
        saved_size: Samples in the set when the position was saved; None for a fresh start.

    Raises:
        ConfigError: the set has another size now, or is too small; or see `is_shuffled`.
    """
    n = len(cast("Any", loader.dataset))
    if n < batch.global_batch_size:
        raise ConfigError(
            f"the train set has {n} samples, fewer than global_batch_size "
            f"{batch.global_batch_size}",
            "lower global_batch_size",
        )
    if saved_size not in (None, n):
        raise ConfigError(
            f"the train set has {n} samples now and had {saved_size} before",
            "a position in one set means nothing in another: start a new run",
        )
    shuffle = is_shuffled(loader) and may_shuffle
    sampler = GlobalBatchSampler(
        n, batch, rank=rank, world_size=world_size, start=position, shuffle=shuffle
    )
    return map_style_loader(loader, sampler)


def map_style_loader(loader: Loader, sampler: GlobalBatchSampler) -> Loader:
    """A copy of `loader` that takes its micro batches from `sampler`, from its position on."""
    batches: Any = sampler
    if not _draws_nothing(loader):
        batches = SeededBatches(sampler, sampler.position.seed)
    return _with_batches(loader, batches, sampler.batch_size)


def evaluation_loader(loader: Loader, *, rank: int, world_size: int, seed: int) -> Loader:
    """A copy of `loader` whose samples are dealt out over the ranks, each exactly once.

    A loader with a sampler of the user's own, with fewer samples than ranks, or over an
    IterableDataset keeps what it has: every rank then sees all it gives.
    """
    dataset, sampler = loader.dataset, loader.sampler
    known = type(sampler) in (SequentialSampler, RandomSampler)
    if isinstance(dataset, IterableDataset) or type(loader.batch_sampler) is not BatchSampler:
        return own_generator(copy.copy(loader))
    n = len(cast("Any", dataset))
    if not known or n < world_size or loader.batch_size is None:
        return own_generator(copy.copy(loader))
    batches: Any = EvenBatchSampler(
        n,
        loader.batch_size,
        rank=rank,
        world_size=world_size,
        seed=seed,
        shuffle=type(sampler) is RandomSampler,
    )
    if not _draws_nothing(loader):
        batches = SeededBatches(batches, seed)
    return _with_batches(loader, batches, loader.batch_size)


def _with_batches(loader: Loader, batches: Any, batch_size: int) -> Loader:
    new = copy.copy(loader)
    # DataLoader forbids setting these after its __init__, since an iterator may be at work; this
    # copy has none yet.
    for name, value in {
        "batch_sampler": batches,
        "batch_size": batch_size,
        "sampler": SequentialSampler(cast("Any", loader.dataset)),
        "drop_last": False,
        "_iterator": None,
    }.items():
        object.__setattr__(new, name, value)
    if getattr(new, "in_order", True) is False:
        new.in_order = True
    return own_generator(new)


def own_generator(loader: Loader) -> Loader:
    """Keep the start of `loader`'s workers from drawing on the model's randomness; in place."""
    # iter(loader) draws a seed for the workers. Drawn from the global RNG, it would make the
    # model's randomness depend on how often loaders were started, which an interruption changes.
    if loader.generator is None:
        loader.generator = torch.Generator()
    if loader.num_workers > 0 and not isinstance(loader.worker_init_fn, _DieWithRank):
        loader.worker_init_fn = _DieWithRank(loader.worker_init_fn)
    object.__setattr__(loader, "_iterator", None)
    return shield(loader)


class _DieWithRank:
    """In a data worker, first of all: be killed when the rank dies.

    A forked worker holds copies of the rank's sockets; as long as it lives, peers of a killed rank
    wait in their collectives for it (prctl(2), PR_SET_PDEATHSIG).
    """

    def __init__(self, inner: Callable[[int], None] | None) -> None:
        self.inner = inner

    def __call__(self, worker: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if self.inner is not None:
            self.inner(worker)


def _draws_nothing(loader: Loader) -> bool:
    """Loaders known to use no RNG: they need no seeding, which costs some 20 us a sample."""
    return loader.collate_fn is default_collate and _is_deterministic(loader.dataset)


def _is_deterministic(dataset: Dataset[Any]) -> bool:
    if type(dataset) is TensorDataset:
        return True
    if type(dataset) is Subset:
        return _is_deterministic(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return all(_is_deterministic(part) for part in dataset.datasets)
    return False


_shielded: dict[type, type] = {}


def shield(loader: Loader) -> Loader:
    """Let `loader` start its workers with the stop signals blocked; in place."""
    kind = type(loader)
    if kind not in _shielded.values():
        if kind not in _shielded:
            _shielded[kind] = _shielded_class(kind)
        # Not a wrapper: Lightning and users ask isinstance(loader, DataLoader).
        object.__setattr__(loader, "__class__", _shielded[kind])
    return loader


def _shielded_class(kind: type) -> type:
    inherited = cast("Callable[[Any], Iterator[Any]]", kind.__iter__)  # type: ignore[attr-defined]

    def start(self: Any) -> Iterator[Any]:
        with shielded_from_signals():
            return inherited(self)

    return type(kind.__name__, (kind,), {"__iter__": start, "__module__": kind.__module__})
