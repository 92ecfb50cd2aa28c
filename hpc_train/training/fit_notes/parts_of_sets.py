"""The data sets that a data set is made of, however deep: Subset, ConcatDataset, the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import ConcatDataset, Dataset, Subset

_MOST_SETS = 256
_MOST_HELD = 64  # in one list


@dataclass(frozen=True)
class HeldSet:
    """A data set within another one.

    Attributes:
        place: What a program writes before its attributes: `datasets[1].`; empty for the whole.
        rows: The samples of it that the whole takes; None for all of them, or where it is unsure.
    """

    dataset: Any
    place: str = ""
    rows: torch.Tensor | None = None

    def taken(self, values: torch.Tensor) -> torch.Tensor:
        """What of a tensor of this set the whole takes, where it has a row for each sample."""
        has_rows = self.rows is not None and values.dim() and len(values) == len(self.dataset)
        return values[self.rows] if has_rows else values


def parts_of(dataset: Any) -> Iterator[HeldSet]:
    """A data set and all that it holds, itself first, each once."""
    waits, seen = [HeldSet(dataset)], set[int]()
    while waits and len(seen) < _MOST_SETS:
        part = waits.pop(0)
        if part.dataset is None or id(part.dataset) in seen:
            continue
        seen.add(id(part.dataset))
        yield part
        waits += [
            HeldSet(inner, f"{part.place}{place}.", _rows(part, inner, number))
            for place, number, inner in _held(part.dataset)
        ]


def _held(dataset: Any) -> Iterator[tuple[str, int, Any]]:
    """Its attributes that are data sets, and those in its lists: where, which of a list, what."""
    for name, value in getattr(dataset, "__dict__", {}).items():
        if isinstance(value, Dataset) or name == "dataset":
            yield name, 0, value
        elif isinstance(value, (list, tuple, Mapping)):
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            for number, (key, item) in enumerate([*items][:_MOST_HELD]):
                if isinstance(item, Dataset):
                    yield f"{name}[{key!r}]", number, item


def _rows(part: HeldSet, inner: Any, number: int) -> torch.Tensor | None:
    """The samples of a set within another one that the whole takes."""
    try:
        if isinstance(part.dataset, Subset):
            indices = torch.as_tensor([*part.dataset.indices])
            return indices if part.rows is None else indices[part.rows]
        if part.rows is None:
            return None
        if isinstance(part.dataset, ConcatDataset):
            first = [0, *part.dataset.cumulative_sizes][number]
            rows = part.rows - first
            return rows[(rows >= 0) & (rows < len(inner))]
        return part.rows if len(inner) == len(part.dataset) else None
    except (IndexError, RuntimeError, TypeError, ValueError):  # a set of the user's own kind
        return None
