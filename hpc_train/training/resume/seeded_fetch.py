"""Random augmentation that belongs to the sample: batches whose fetching is seeded by sample.

PyTorch fetches a batch as `[dataset[index] for index in indices]`, or, where the set has
`__getitems__` (Subset, StackDataset, Hugging Face's datasets), by one call with all indices
(torch/utils/data/_utils/fetch.py). Then it collates. This happens in the rank or in a data worker;
what is drawn from `random`, `numpy.random` or torch's default generator must not depend on which.

- Each sample is made with the RNGs seeded by (seed, epoch, index). To seed `random` and NumPy takes
  four times as long as torch's, and few sets draw from them: after a batch that drew from neither
  they are seeded once a batch, until a sample draws. Then its batch is made anew.
- `__getitems__` gets all indices at once as long as it draws nothing. Where it draws, one call
  would give each sample the numbers that follow from its batch mates, so it is called once for
  each index. Which of both is found out anew for each batch, by looking at the RNGs.
- `collate_fn` sees the whole batch, so it is seeded by (seed, epoch, indices of the batch).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import StackDataset, Subset, default_collate, get_worker_info

from hpc_train.errors import ConfigError
from hpc_train.training.private.torch_data import Fetcher, fetch_by
from hpc_train.training.resume.sample_order import SeededIndices, mixed_seed, sample_seeds

_UNUSED = 0  # the seed of what is not drawn from
_FIRST_UNUSED = random.Random(_UNUSED).random(), np.random.RandomState(_UNUSED).random_sample()
_COLLATE = 0x636F6C6C617465  # so that a batch of one sample is not collated with its own numbers
_NOTE = (
    "NOTE: {}.__getitems__ draws random numbers, so it is called for one sample at a time, each "
    "with its own seed; what needs the whole batch (padding, mixing) belongs into collate_fn"
)


def fetch(indices: SeededIndices, fetcher: Fetcher) -> Any:
    """The batch; in the rank's own process its RNGs are as they were before.

    Raises:
        ConfigError: `__getitems__` draws, and does not give one sample for one index.
    """
    outside = None
    if get_worker_info() is None:
        outside = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        samples = _samples(indices, fetcher)
        if fetcher.collate_fn is not default_collate:
            _seed(mixed_seed(_COLLATE, indices.seed, indices.epoch, *indices))
        return fetcher.collate_fn(samples)
    finally:
        if outside is not None:
            random.setstate(outside[0])
            np.random.set_state(outside[1])
            torch.set_rng_state(outside[2])


fetch_by(SeededIndices, fetch)


def _samples(indices: SeededIndices, fetcher: Any) -> Any:
    dataset, seed, epoch = fetcher.dataset, indices.seed, indices.epoch
    if not _is_batched(dataset):
        return _by_index(indices, fetcher)
    if getattr(fetcher, "draws", False):  # it did before: probably it does again
        samples, drawn = _one_by_one(dataset, indices)
        if drawn:
            return samples
    first = _first_after(mixed_seed(seed, epoch, *indices))
    samples = dataset.__getitems__(list(indices))
    if _draw() == first:
        return samples
    info = get_worker_info()
    if not hasattr(fetcher, "draws") and epoch == 0 and (info is None or info.id == 0):
        print(_NOTE.format(type(dataset).__name__), flush=True)  # noqa: T201 - a rank's log
    fetcher.draws = True
    return _one_by_one(dataset, indices)[0]


def _by_index(indices: SeededIndices, fetcher: Any) -> list[Any]:
    dataset, keys = fetcher.dataset, sample_seeds(indices)
    draws: bool | None = getattr(fetcher, "draws", None)  # from `random` or NumPy, as far as seen
    if draws is False:
        _seed_slow(_UNUSED)
        samples = []
        for index, key in zip(indices, keys, strict=True):
            _seed_torch(key)
            samples.append(dataset[index])
        if _draw_slow() == _FIRST_UNUSED:
            return samples
        draws = True
    samples = []
    drawn = bool(draws)
    for index, key in zip(indices, keys, strict=True):
        _seed(key)
        samples.append(dataset[index])
        if not drawn:
            after = _draw_slow()
            _seed_slow(key)
            drawn = after != _draw_slow()
    fetcher.draws = drawn
    return samples


def _one_by_one(dataset: Any, indices: SeededIndices) -> tuple[list[Any], bool]:
    """The samples, and whether one of them has drawn."""
    samples: list[Any] = []
    drawn = False
    for index in indices:
        key = mixed_seed(indices.seed, indices.epoch, index)
        first = None if drawn else _first_after(key)
        if drawn:
            _seed(key)
        found = dataset.__getitems__([index])
        drawn = drawn or _draw() != first
        if not isinstance(found, list | tuple) or len(found) != 1:
            raise ConfigError(
                f"{type(dataset).__name__}.__getitems__ draws random numbers and gave a "
                f"{type(found).__name__} for one index, so its samples cannot be seeded",
                "return a list with one sample for each index, or draw in collate_fn",
            )
        samples.append(found[0])
    return samples, drawn


def _is_batched(dataset: Any) -> bool:
    """Whether several samples are made in one call of the user's."""
    if type(dataset) is Subset:
        return _is_batched(dataset.dataset)
    if type(dataset) is StackDataset:
        parts: Any = dataset.datasets
        return any(map(_is_batched, parts.values() if isinstance(parts, dict) else parts))
    return callable(getattr(dataset, "__getitems__", None))


def _seed(key: int) -> None:
    _seed_slow(key)
    _seed_torch(key)


def _seed_slow(key: int) -> None:
    random.seed(key)
    np.random.seed(key & 0xFFFFFFFF)


def _seed_torch(key: int) -> None:
    torch.default_generator.manual_seed(key >> 1)


def _draw_slow() -> tuple[float, float]:
    return random.random(), np.random.random()


def _draw() -> tuple[float, float, float]:
    return *_draw_slow(), torch.rand(()).item()


def _first_after(key: int) -> tuple[float, float, float]:
    """What is drawn first after seeding with `key`; seeds.

    Drawing tells whether others have drawn in between, and costs a fifth of comparing states.
    """
    _seed(key)
    first = _draw()
    _seed(key)
    return first
