"""The worker processes of a loader's iterator. Imports nothing of torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def workers_of(holders: Iterable[Any]) -> list[Any]:
    """Those of the first that has any: torch's _MultiProcessingDataLoaderIter keeps them."""
    kept = (getattr(holder, "_workers", None) for holder in holders)
    return next((it for it in kept if isinstance(it, list) and it), [])
