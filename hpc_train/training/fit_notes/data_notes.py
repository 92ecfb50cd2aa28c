"""What is worth knowing of a train set before its first step, though the training goes on."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from types import GeneratorType
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.rank_config import RankConfig

# A word of what tells one rank from another. Splitting over workers alone does not.
_TELLS_RANKS = re.compile(r"rank|world|shard|distributed|\bdist\b|replica|process_index|split_data")
_OF_LIBRARIES = {"torch", "pytorch_lightning", "lightning", *sys.stdlib_module_names}


def tell_of_data(rank: RankConfig, loader: Any, maker: object, epochs: int | None) -> None:
    """On rank 0: samples that no epoch has, in its log; samples that each rank has, as a note.

    Args:
        loader: The user's train loader.
        maker: The data or the model that gave it.
        epochs: Of the Trainer's; None or -1 where it has no such limit.
    """
    if rank.rank != 0:
        return
    if said := left_out(loader, rank.batch.global_batch_size):
        print(said, flush=True)  # noqa: T201 - a rank's log
    split = "" if rank.is_script else not_split(loader, maker, rank.world_size)
    attempt = rank.run.attempt(rank.attempt)
    for said in filter(None, (split, read_once(loader, epochs))):
        if said not in read_notes(attempt):
            leave_note(attempt, said)


def left_out(loader: Any, global_batch_size: int) -> str:
    """The samples of a map-style set that fill no global batch; empty where all do."""
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return ""
    samples = len(loader.dataset)  # type: ignore[arg-type]
    if not (rest := samples % (global_batch_size or 1)):
        return ""
    fill = f"{rest} of {samples} samples fill no global batch of {global_batch_size}"
    return f"{fill}: each epoch leaves as many out, others each time where it shuffles"


def read_once(loader: Any, epochs: int | None) -> str:
    """That a loader cannot begin anew, where there may be a second epoch; empty otherwise."""
    is_of_torch = isinstance(loader, Iterator) and type(loader).__module__ == DataLoader.__module__
    if epochs == 1 or not (is_of_torch or isinstance(loader, GeneratorType)):
        return ""
    what = f"train_dataloader gives a {type(loader).__name__.lstrip('_')}, which is read once"
    fix = "return the DataLoader itself, without iter(), or an object whose __iter__ begins anew"
    return f"{what}: behind its end later epochs have no batch; {fix}"


def not_split(loader: Any, maker: object, world_size: int) -> str:
    """That each rank reads the whole of a stream, as its class's text tells; empty otherwise."""
    dataset = loader.dataset if isinstance(loader, DataLoader) else None
    if world_size == 1 or not isinstance(dataset, IterableDataset):
        return ""
    texts = [users_text(kind) or "" for kind in (type(dataset), type(maker))]
    if not all(texts) or any(map(_TELLS_RANKS.search, texts)):
        return ""
    name = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
    what = f"nothing in {name} tells the {world_size} ranks apart, so each seems to read all of it"
    return f"{what}, {world_size} times the work; see Iterable sets in docs/resuming.md"


def users_text(kind: type) -> str | None:
    """The text of a class and of what it derives from, up to torch's and Lightning's own.

    None where nobody can tell, as of a class that was made in a notebook or by a library.
    """
    texts = []
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in _OF_LIBRARIES - {"__main__"}:
            continue
        try:
            texts.append(inspect.getsource(base))
        except (OSError, TypeError):
            return None
    return "\n".join(texts)
