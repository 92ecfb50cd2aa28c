"""Iterable train sets: where they stand after each batch, and how they go on from there.

The protocol, on the dataset or on the loader: `state_dict()` tells where it stands after the last
sample it gave; after `load_state_dict(state)`, `iter()` gives what comes next. States are per rank
and per data worker, are taken when a batch is made and kept with it, so neither workers nor
Lightning's prefetching move the position. The RNGs a stream uses are its own and kept as well.

A set without that protocol is read again from its beginning, and what was already seen is thrown
away: exact if it gives the same samples each time, and slower the later the interruption.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Protocol, cast, runtime_checkable

from torch.utils.data import BatchSampler, DataLoader, get_worker_info

from hpc_train.errors import ConfigError
from hpc_train.training.private.torch_data import has_ended, iterate_from
from hpc_train.training.resume.rng import capture_rngs, restore_rngs
from hpc_train.training.resume.sample_order import mixed_seed
from hpc_train.training.resume.sampling import own_generator, replace_iter
from hpc_train.training.resume.stop import shielded_from_signals

Loader = DataLoader[Any]
State = dict[str, Any]


@runtime_checkable
class Stateful(Protocol):
    """What can tell where it stands, and go on from there."""

    def state_dict(self) -> State:
        """Where it stands after the last sample (dataset) or batch (loader) it gave."""

    def load_state_dict(self, state: State) -> None:
        """The next `iter()` gives what comes after `state`."""


@dataclass
class StreamPosition:
    """The states of one rank's stream after each of the last batches it made.

    Attributes:
        start: What the first iteration goes on from; None for the beginning, and once it is used.
        exact: False where the stream has no state and is read again.
        started_in: The epoch that `start` belongs to.
        cut: That epoch ended at a number of batches known before; nothing was drawn behind them.
    """

    exact: bool
    start: State | None = None
    started_in: int | None = None
    cut: bool = False
    _after: dict[int, State] = field(default_factory=dict)

    def note(self, state: State) -> None:
        """Keep `state`, the one after `state["batches"]` batches of the epoch."""
        self._after[state["batches"]] = state

    def after(self, batches: int) -> State:
        """The state after `batches` consumed batches; older ones are forgotten."""
        for number in [number for number in self._after if number < batches]:
            del self._after[number]
        return self._after.get(batches) or {"batches": batches}

    def begin(self) -> State:
        """What an iteration that begins now goes on from; only the first one gets `start`."""
        self._after.clear()
        start, self.start = self.start or {"batches": 0}, None
        self.note(start)
        return start


def stream_loader(
    loader: Any, *, micro_batch_size: int, start: State | None
) -> tuple[Any, StreamPosition]:
    """A loader over an iterable set that knows its position.

    Args:
        loader: A DataLoader over an IterableDataset, or any iterable of batches.
        start: From `StreamPosition.after` of this rank in an earlier attempt.

    Returns:
        The loader for Lightning, and the position to ask at each step.

    Raises:
        ConfigError: the saved state is one of another number of workers.
    """
    if not isinstance(loader, DataLoader):
        position = StreamPosition(exact=isinstance(loader, Stateful), start=start)
        kind = _SizedObjectStream if hasattr(loader, "__len__") else _ObjectStream
        return kind(loader, position), position
    exact = isinstance(loader, Stateful) or isinstance(loader.dataset, Stateful)
    _check_workers(loader, start)
    position = StreamPosition(exact=exact, start=start)
    new = own_generator(copy.copy(loader))
    if loader.batch_size is not None:
        sampler, drop_last = cast("Any", loader).sampler, loader.drop_last
        object.__setattr__(new, "batch_size", micro_batch_size)
        batches = BatchSampler(sampler, micro_batch_size, drop_last)
        object.__setattr__(new, "batch_sampler", batches)
    return _with_position(new, position), position


def enter_epoch(
    loader: Any, position: StreamPosition, *, epoch: int, seed: int, cut: bool = False
) -> None:
    """Tell a loader of `stream_loader` which epoch its next iteration is.

    Where an epoch was resumed at its very end, nobody has iterated: that is made up for, since data
    workers that live on have to come to the end of the old epoch first.

    Args:
        cut: As `StreamPosition.cut`: by `limit_train_batches`, or the loader's own length. Then a
            set that has more is at its next sample, and must not give it away.
    """
    if position.start is not None and position.started_in not in (None, epoch):
        position.cut = cut
        next(iter(loader), None)
        position.cut = False
    position.started_in = epoch if position.started_in is None else position.started_in
    source = loader.inner if isinstance(loader, _ObjectStream) else loader
    for item in (source, getattr(source, "dataset", None)):
        tell = getattr(item, "set_epoch", None)
        if callable(tell):
            tell(epoch)
    if isinstance(loader, DataLoader) and loader.generator is not None:
        # The data workers' RNGs begin where (seed, epoch) says, whichever attempt starts them.
        loader.generator.manual_seed(mixed_seed(seed, epoch) >> 1)


def _check_workers(loader: Loader, start: State | None) -> None:
    saved = len(start["workers"]) if start and "workers" in start else 0
    if start and ("workers" in start or "dataset" in start) and saved != loader.num_workers:
        raise ConfigError(
            f"the train set's position was saved by {saved} data workers a rank, and there are "
            f"{loader.num_workers} now",
            "each worker of an iterable set keeps its own position: use as many as before",
        )


class _ObjectStream:
    """An iterable of batches that is no DataLoader, with its position."""

    def __init__(self, inner: Any, position: StreamPosition) -> None:
        self.inner = inner
        self.position = position

    def __iter__(self) -> Iterator[Any]:
        return _iterate(self.inner, self.position, lambda: iter(self.inner))


class _SizedObjectStream(_ObjectStream):
    """Lightning takes the presence of a length for a sized loader."""

    def __len__(self) -> int:
        return len(self.inner)


def goes_on(source: Any, state: State) -> bool:
    """Whether each `iter()` gives what comes next; else the set from its beginning.

    Both are right where an epoch ends with the set. Where it ends before, the one has each sample
    once over the epochs (an endless stream), the other has the same ones in each.

    Args:
        source: With the protocol, standing at `state`; it does so afterwards.
    """

    def after_two(*counts: int) -> bytes:
        source.load_state_dict(copy.deepcopy(state))
        for count in counts:
            samples = iter(source)
            for _ in range(count):
                next(samples, None)
        return pickle.dumps(source.state_dict())

    same = after_two(2) == after_two(1, 1)
    source.load_state_dict(copy.deepcopy(state))
    return same


def _with_position(loader: Loader, position: StreamPosition) -> Loader:
    inherited = cast("Callable[[Any], Iterator[Any]]", type(loader).__iter__)

    def start(self: Any) -> Iterator[Any]:
        if isinstance(self, Stateful) or not isinstance(self.dataset, Stateful):
            return _iterate(self, position, lambda: inherited(self))
        if self.num_workers > 0:
            return _iterate_workers(self, position, inherited)
        return _iterate_dataset(self, position, inherited)

    return replace_iter(loader, start)


def _iterate(
    source: Any, position: StreamPosition, begin: Callable[[], Iterator[Any]]
) -> Iterator[Any]:
    """Batches of a loader that has a state, or that has none and is read again."""
    start, exact = position.begin(), isinstance(source, Stateful)
    if exact and "loader" in start:
        source.load_state_dict(start["loader"])
        if position.cut and goes_on(source, start["loader"]):
            return
    with shielded_from_signals():
        batches = begin()
    if not exact:
        batches = islice(batches, start["batches"], None)
    for done, batch in enumerate(batches, start["batches"] + 1):
        state = {"loader": copy.deepcopy(source.state_dict())} if exact else {}
        position.note({"batches": done, **state})
        yield batch


def _iterate_dataset(
    loader: Any, position: StreamPosition, inherited: Callable[[Any], Iterator[Any]]
) -> Iterator[Any]:
    """Batches of a stateful set that is read in this process, with RNGs of its own."""
    start, outside = position.begin(), capture_rngs()
    if "dataset" in start:
        loader.dataset.load_state_dict(start["dataset"])
        if start["ended"] or (position.cut and goes_on(loader.dataset, start["dataset"])):
            restore_rngs(outside)
            return
        restore_rngs(start["rng"])
    batches = inherited(loader)
    for done, batch in enumerate(batches, start["batches"] + 1):
        own = capture_rngs()
        state = copy.deepcopy(loader.dataset.state_dict())
        ended = has_ended(batches)
        position.note({"batches": done, "dataset": state, "rng": own, "ended": ended})
        restore_rngs(outside)
        yield batch
        outside = capture_rngs()
        restore_rngs(own)
    restore_rngs(outside)


def _collate_with_state(
    inner: Callable[[Any], Any], batch_size: int | None, samples: Any
) -> tuple[Any, int, bytes]:
    """In a data worker: sends the set's state along with the batch, as bytes.

    A batch that is not full has met the end of the set, which may have begun anew behind it.
    """
    info: Any = get_worker_info()
    batch = inner(samples)
    state = {
        "dataset": info.dataset.state_dict(),
        "rng": capture_rngs(),
        "ended": batch_size is not None and len(samples) < batch_size,
    }
    return batch, info.id, pickle.dumps(state)


def _resume_worker(
    inner: Callable[[int], None] | None, states: list[State | None], worker: int
) -> None:
    """In a data worker, before it asks the set for its first sample: puts it back."""
    if inner is not None:
        inner(worker)
    info: Any = get_worker_info()
    state = states[worker]
    if state is not None:
        info.dataset.load_state_dict(state["dataset"])
        restore_rngs(state["rng"])
        if state["ended"]:
            _give_nothing_once(info.dataset)


def _give_nothing_once(dataset: Any) -> None:
    kind = type(dataset)

    def nothing(self: Any) -> Iterator[Any]:
        self.__class__ = kind
        return iter(())

    dataset.__class__ = type(kind.__name__, (kind,), {"__iter__": nothing})


def _iterate_workers(
    loader: Any, position: StreamPosition, inherited: Callable[[Any], Iterator[Any]]
) -> Iterator[Any]:
    """Batches of a stateful set that is read in data workers, each with a state of its own."""
    start, workers = position.begin(), loader.num_workers
    states: list[State | None] = list(start.get("workers", [None] * workers))
    collate, prepare = loader.collate_fn, loader.worker_init_fn
    loader.collate_fn = partial(_collate_with_state, collate, loader.batch_size)
    with shielded_from_signals():
        if "workers" in start:
            loader.worker_init_fn = partial(_resume_worker, prepare, states)
            batches = iterate_from(loader, (start["last_worker"] + 1) % workers)
        else:
            batches = inherited(loader)
    loader.collate_fn, loader.worker_init_fn = collate, prepare
    if position.cut:  # the workers are as far ahead as they were
        return
    for done, (batch, worker, packed) in enumerate(batches, start["batches"] + 1):
        states[worker] = pickle.loads(packed)
        position.note({"batches": done, "workers": list(states), "last_worker": worker})
        yield batch
