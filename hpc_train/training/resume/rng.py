"""The random number generators of one rank: python, numpy, torch, and each visible CUDA device."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def capture_rngs() -> dict[str, Any]:
    """State of all generators, as tensors and plain numbers so that weights_only can read it."""
    version, words, gauss = random.getstate()
    numpy_state: dict[str, Any] = dict(np.random.get_state(legacy=False))
    inner = numpy_state["state"]
    state: dict[str, Any] = {
        "python": [version, torch.tensor(words, dtype=torch.int64), gauss],
        "numpy": [
            torch.from_numpy(inner["key"].astype(np.int64)),
            int(inner["pos"]),
            int(numpy_state["has_gauss"]),
            float(numpy_state["gauss"]),
        ],
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        # A rank that owns one GPU of several visible ones must not create contexts on the others.
        state["cuda"] = torch.cuda.get_rng_state(torch.cuda.current_device())
    return state


@contextmanager
def kept_rngs() -> Iterator[None]:
    """Leave the generators as they are, whatever draws on them meanwhile."""
    state = capture_rngs()
    try:
        yield
    finally:
        restore_rngs(state)


def restore_rngs(state: dict[str, Any]) -> None:
    """Put every generator back; a CUDA state without a CUDA device is left aside."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    keys, position, has_gauss, cached = state["numpy"]
    words_u32 = keys.numpy().astype(np.uint32)
    np.random.set_state(("MT19937", words_u32, position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"], torch.cuda.current_device())
