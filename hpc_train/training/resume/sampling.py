"""Loaders that can go on in the middle of an epoch, made of the loaders that users return.

A loader is not built anew (its class may take any arguments) but copied, with our batch sampler in
place of its own. Dataset, collate_fn, workers, pinning and worker_init_fn stay what they were.
"""

from __future__ import annotations

import copy
import signal
from collections.abc import Callable, Iterator
from typing import Any, cast

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

from hpc_train.config.fit.sure_samplers import INSTEAD, PLAIN_ORDER, order_refusal
from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Batch
from hpc_train.plan.states import SUBMIT_AGAIN
from hpc_train.runs.parent_death import signal_at_parents_death
from hpc_train.training.failures.empty_data import EmptySetError
from hpc_train.training.failures.listed_sets import refuse_listed_sets
from hpc_train.training.private.torch_data import forget_iterator
from hpc_train.training.resume import seeded_fetch  # noqa: F401 - torch learns of SeededIndices
from hpc_train.training.resume.sample_order import (
    DataPosition,
    EvenBatchSampler,
    GlobalBatchSampler,
)
from hpc_train.training.resume.stop import shielded_from_signals

Loader = DataLoader[Any]


def is_shuffled(loader: Loader, name: str = "train_dataloader") -> bool:
    """Whether the user's train loader shuffles.

    Args:
        name: What the user knows it by.

    Raises:
        ConfigError: its sampler is one of the user's own, whose order cannot be continued.
    """
    sampler, batch_sampler = loader.sampler, loader.batch_sampler
    if loader.batch_size is None and batch_sampler is None:
        raise ConfigError(
            f"{name}: batch_size=None leaves the batches to the dataset, so the global "
            "batch cannot be kept",
            "give the DataLoader a batch_size; the plan's micro batch replaces it",
        )
    plain = type(batch_sampler) is BatchSampler
    if plain and isinstance(sampler, DistributedSampler):
        return sampler.shuffle
    if plain and type(sampler) is RandomSampler and not sampler.replacement:
        return True
    if plain and type(sampler) is SequentialSampler:
        return False
    said, hint = order_refusal(
        type(sampler if plain else batch_sampler).__name__,
        _instead_of(sampler) if plain else PLAIN_ORDER,
    )
    raise ConfigError(f"{name}: {said}", hint)


def _instead_of(sampler: Any) -> str:
    """What to write for a sampler, or for the one of torch's that its class derives from."""
    names = (base.__name__ for base in type(sampler).__mro__)
    return next((INSTEAD[it] for it in names if it in INSTEAD), PLAIN_ORDER)


def loader_at(
    loader: Loader,
    position: DataPosition,
    batch: Batch,
    *,
    rank: int,
    world_size: int,
    saved_size: int | None,
    may_shuffle: bool = True,
    is_script: bool = False,
) -> Loader:
    """A copy of the user's map-style train loader that goes on at `position`.

    Args:
        saved_size: Samples in the set when the position was saved; None for a fresh start.
        is_script: The batch is that of a script's loader, times its ranks, and of no config.

    Raises:
        ConfigError: the set has another size now, or is too small, or a list of sets; or see
            `is_shuffled`.
    """
    n = len(cast("Any", loader.dataset))
    if n == 0:
        raise EmptySetError(loader.dataset)
    refuse_listed_sets(loader, default_collate)
    if n < batch.global_batch_size:
        raise ConfigError(
            f"the train set has {n} samples, fewer than global_batch_size "
            f"{batch.global_batch_size}",
            _smaller_batch(n, world_size, is_script=is_script),
        )
    if saved_size not in (None, n):
        raise ConfigError(
            f"the train set has {n} samples now and had {saved_size} before",
            "a position in one set means nothing in another: start a new run",
        )
    sampler = GlobalBatchSampler(
        n,
        batch,
        rank=rank,
        world_size=world_size,
        start=position,
        shuffle=is_shuffled(loader, *(["the train loader"] if is_script else [])) and may_shuffle,
    )
    return map_style_loader(loader, sampler)


def _smaller_batch(n: int, world_size: int, *, is_script: bool) -> str:
    """What gives a global batch that `n` samples fill; a config's is the same on fewer ranks."""
    if is_script:
        return "lower the batch size in the script, or use fewer ranks"
    most = n // world_size * world_size
    fewer = "" if most else f", on {n} rank{'s' * (n > 1)} at most"
    return f"{SUBMIT_AGAIN} global_batch_size={most or n} or less{fewer}"


def map_style_loader(loader: Loader, sampler: GlobalBatchSampler | EvenBatchSampler) -> Loader:
    """A copy of `loader` that takes its micro batches from `sampler`, from its position on."""
    sampler.seeded = not _draws_nothing(loader)
    new = copy.copy(loader)
    # DataLoader forbids setting these after its __init__, since an iterator may be at work; this
    # copy has none yet.
    for name, value in {
        "batch_sampler": sampler,
        "batch_size": sampler.batch_size,
        "sampler": SequentialSampler(cast("Any", loader.dataset)),
        "drop_last": False,
    }.items():
        object.__setattr__(new, name, value)
    if getattr(new, "in_order", True) is False:
        new.in_order = True
    return own_generator(new)


def evaluation_loader(loader: Loader, *, rank: int, world_size: int, seed: int) -> Loader:
    """A copy of `loader` whose samples are dealt out over the ranks, each exactly once.

    A loader with a sampler of the user's own, with fewer samples than ranks, or over an
    IterableDataset keeps what it has: every rank then sees all it gives.
    """
    dataset: Any = loader.dataset
    if (
        isinstance(dataset, IterableDataset)
        or type(loader.batch_sampler) is not BatchSampler
        or type(loader.sampler) not in (SequentialSampler, RandomSampler)
        or loader.batch_size is None
        or len(dataset) < world_size
    ):
        return own_generator(copy.copy(loader))
    sampler = EvenBatchSampler(
        len(dataset),
        loader.batch_size,
        rank=rank,
        world_size=world_size,
        seed=seed,
        shuffle=type(loader.sampler) is RandomSampler,
    )
    return map_style_loader(loader, sampler)


class PlainLoader:
    """The batches of a loader, and nothing else of it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)


def indices_of(loader: Any) -> list[list[int]] | None:
    """The samples of this rank's batches; None where all ranks see all that the loader gives."""
    sampler = getattr(loader, "batch_sampler", None)
    return [list(batch) for batch in sampler] if isinstance(sampler, EvenBatchSampler) else None


def own_generator(loader: Loader) -> Loader:
    """Keep the start of `loader`'s workers from drawing on the model's randomness; in place.

    They are also started with the stop signals blocked, and die with the rank.
    """
    # iter(loader) draws a seed for the workers. Drawn from the global RNG, it would make the
    # model's randomness depend on how often loaders were started, which an interruption changes.
    if loader.generator is None:
        loader.generator = torch.Generator()
    if loader.num_workers > 0 and not isinstance(loader.worker_init_fn, _DieWithRank):
        loader.worker_init_fn = _DieWithRank(loader.worker_init_fn)
    forget_iterator(loader)
    if getattr(loader, "is_shielded", False):
        return loader
    inherited = cast("Callable[[Any], Iterator[Any]]", type(loader).__iter__)

    def start(self: Any) -> Iterator[Any]:
        with shielded_from_signals():
            return inherited(self)

    return replace_iter(loader, start, is_shielded=True)


def replace_iter(loader: Loader, start: Callable[[Any], Iterator[Any]], **more: Any) -> Loader:
    """Let `iter(loader)` be `start(loader)`; in place, with the class members `more`."""
    # Not a wrapper: Lightning and users ask isinstance(loader, DataLoader).
    kind = type(loader)
    members = {"__iter__": start, "__module__": kind.__module__, **more}
    object.__setattr__(loader, "__class__", type(kind.__name__, (kind,), members))
    return loader


class _DieWithRank:
    """In a data worker, first of all: be killed when the rank dies.

    A forked worker holds copies of the rank's sockets; as long as it lives, peers of a killed rank
    wait in their collectives for it.
    """

    def __init__(self, inner: Callable[[int], None] | None) -> None:
        self.inner = inner

    def __call__(self, worker: int) -> None:
        signal_at_parents_death(signal.SIGKILL)
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
