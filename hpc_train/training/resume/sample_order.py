"""Where a run stands in its data, as a count of samples that all ranks consumed together. Pure.

The order of samples is a function of (seed, epoch, number of samples) and of nothing else: not of
the number of ranks, of data workers, of a library's version. It is a Feistel network with cycle
walking (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), so a position in an
epoch of a billion samples costs no memory and nothing has to be shuffled at start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpc_train.plan.plan import Batch

_ROUNDS = 8
_BLOCK = 1 << 14  # positions computed at once: numpy's overhead is paid once per block
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class DataPosition:
    """Samples consumed by all ranks together since the epoch began.

    Attributes:
        epoch: Epoch the next sample belongs to.
        samples: Consumed within it; a multiple of the global batch size.
        seed: Of the order.
    """

    epoch: int
    samples: int
    seed: int


def _mix(value: int) -> int:
    """One step of splitmix64 (Steele, Lea, Flood 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def mixed_seed(*numbers: int) -> int:
    """One 64-bit seed out of several numbers, the same in every process and version."""
    state = 0
    for number in numbers:
        state = _mix(state ^ (number & _MASK))
    return state


def sample_seeds(indices: SeededIndices) -> list[int]:
    """`mixed_seed(seed, epoch, index)` of each sample, in a third of the time."""
    state = mixed_seed(indices.seed, indices.epoch)
    return [_mix(state ^ index) for index in indices]


def _round_keys(seed: int, epoch: int) -> list[np.uint64]:
    state = mixed_seed(seed, epoch)
    return [np.uint64(_mix(state + number)) for number in range(_ROUNDS)]


def _feistel(
    values: NDArray[np.uint64], half_bits: int, keys: list[np.uint64]
) -> NDArray[np.uint64]:
    shift, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    left, right = values >> shift, values & mask
    for key in keys:
        mixed = (right + key) * np.uint64(0xFF51AFD7ED558CCD)
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        left, right = right, left ^ ((mixed >> np.uint64(29)) & mask)
    return (left << shift) | right


def sample_order(
    positions: NDArray[np.int64], *, n: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Which samples stand at `positions` of the shuffled epoch.

    Args:
        positions: Any positions in [0, n), one dimension.
        n: Number of samples in the whole set.

    Returns:
        Indices in [0, n), one per position; over all positions a permutation.
    """
    half_bits = max(1, -(-(n - 1).bit_length() // 2))
    keys = _round_keys(seed, epoch)
    values = _feistel(positions.astype(np.uint64), half_bits, keys)
    limit = np.uint64(n)
    # The network permutes the next power of four; walking on until inside [0, n) permutes [0, n).
    while (outside := values >= limit).any():
        values[outside] = _feistel(values[outside], half_bits, keys)
    return values.astype(np.int64)


class SeededIndices(list[int]):
    """Indices of one micro batch, with what its samples' RNGs are seeded by.

    The indices carry it to data workers that live on, and never learn of a new epoch.
    """

    def __init__(self, indices: list[int], seed: int, epoch: int) -> None:
        super().__init__(indices)
        self.seed = seed
        self.epoch = epoch

    def __reduce__(self) -> tuple[Any, ...]:
        return SeededIndices, (list(self), self.seed, self.epoch)


class _RankSampler:
    """Micro batches of one rank in the epoch of `position`.

    Attributes:
        seeded: Whether batches carry the seed of each sample.
    """

    batch_size: int
    drop_last: bool
    seeded = False

    def __init__(self, n: int, position: DataPosition, *, shuffle: bool) -> None:
        self.n = n
        self.position = position
        self.shuffle = shuffle

    @property
    def sampler(self) -> _RankSampler:
        """Itself: Lightning looks for `set_epoch` on `batch_sampler.sampler`."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Begin `epoch` at its first sample, or stay where it was resumed."""
        if epoch != self.position.epoch:
            self.position = DataPosition(epoch, 0, self.position.seed)

    def _order(self, first: int, last: int) -> NDArray[np.int64]:
        positions = np.arange(first, last)
        if not self.shuffle:
            return positions
        epoch, seed = self.position.epoch, self.position.seed
        return sample_order(positions, n=self.n, seed=seed, epoch=epoch)

    def _batch(self, indices: NDArray[np.int64]) -> list[int]:
        batch: list[int] = indices.tolist()
        if not self.seeded:
            return batch
        return SeededIndices(batch, self.position.seed, self.position.epoch)


class GlobalBatchSampler(_RankSampler):
    """Micro batches of one rank, cut from global batches that do not depend on the ranks.

    Global batch b is order[b * G : (b + 1) * G]; it is cut into accumulate x world x micro, so
    that every shape sees the same samples between the same optimizer steps. The incomplete
    global batch at an epoch's end is left out; shuffled, it is other samples each epoch.

    `len()` is the whole epoch in micro batches of this rank, also when the iteration starts
    behind its beginning: Lightning takes the epoch's end from it.

    Args:
        n: Number of samples in the whole set.
        world_size: global = micro * accumulate * world_size, exactly.
        start: Where the first iteration begins; later epochs begin at 0 (see `set_epoch`).
    """

    drop_last = True

    def __init__(
        self,
        n: int,
        batch: Batch,
        *,
        rank: int,
        world_size: int,
        start: DataPosition,
        shuffle: bool,
    ) -> None:
        if batch.micro_batch_size * batch.accumulate * world_size != batch.global_batch_size:
            raise ValueError(f"{batch} cannot be split over {world_size} ranks")
        if start.samples % batch.global_batch_size:
            raise ValueError(f"{start} is not at a border of {batch.global_batch_size} samples")
        super().__init__(n, start, shuffle=shuffle)
        self.batch = batch
        self.batch_size = batch.micro_batch_size
        self.rank = rank
        self.world_size = world_size

    def __len__(self) -> int:
        return self.n // self.batch.global_batch_size * self.batch.accumulate

    def __iter__(self) -> Iterator[list[int]]:
        size = self.batch.global_batch_size
        first, last = self.position.samples // size, self.n // size
        per_block = max(1, _BLOCK // size)
        for begin in range(first, last, per_block):
            end = min(last, begin + per_block)
            order = self._order(begin * size, end * size).reshape(
                -1, self.batch.accumulate, self.world_size, self.batch_size
            )
            for micro in order[:, :, self.rank].reshape(-1, self.batch_size):
                yield self._batch(micro)


class EvenBatchSampler(_RankSampler):
    """Evaluation batches of one rank: over all ranks every sample once, see `even_batches`.

    Args:
        seed: Of the order, another one each epoch, where the user shuffles evaluation.
    """

    drop_last = False

    def __init__(
        self, n: int, batch_size: int, *, rank: int, world_size: int, seed: int, shuffle: bool
    ) -> None:
        super().__init__(n, DataPosition(0, 0, seed), shuffle=shuffle)
        self.batch_size = batch_size
        self._batches = even_batches(n, batch_size, rank=rank, world_size=world_size)

    @property
    def sizes(self) -> list[int]:
        """Those that the batches have, the smallest first; two of them differ by one."""
        return sorted({len(batch) for batch in self._batches})

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self._batches:
            yield self._batch(self._order(batch.start, batch.stop))


def even_batches(n: int, batch_size: int, *, rank: int, world_size: int) -> list[range]:
    """Positions for evaluation: each exactly once over all ranks, in as equal shares as can be.

    Every rank gets the same number of batches (a collective per batch must not wait for a rank that
    has none), unless there are fewer samples than that takes.

    Returns:
        This rank's batches, each of 1 to `batch_size` consecutive positions in [0, n).
    """
    slots = min(n, -(-n // (batch_size * world_size)) * world_size)
    borders = [n * slot // slots for slot in range(slots + 1)] if slots else []
    return [range(borders[slot], borders[slot + 1]) for slot in range(rank, slots, world_size)]
