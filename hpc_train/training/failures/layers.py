"""Layers of a model as its code writes them: `self.layers[0]`, `nn.Linear(16, 4)`.

torch is not imported here: ranks that fail before they need it are judged, too.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users
from hpc_train.training.failures.frame_values import shape_of
from hpc_train.training.failures.unset_attributes import set_in

_SIZES = {  # a layer's arguments by place
    "Linear": ("in_features", "out_features"),
    "Embedding": ("num_embeddings", "embedding_dim"),
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), ("in_channels", "out_channels")),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), ("input_size", "hidden_size")),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), ("num_features",)),
    **dict.fromkeys(("MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d"), ("kernel_size",)),
}


def frames_of(error: BaseException) -> list[FrameType]:
    """From the outermost to the innermost."""
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def owners(frames: Sequence[FrameType]) -> Iterator[Any]:
    """The modules whose methods the user's frames are, from the innermost on."""
    for frame in reversed(frames):
        owner = frame.f_locals.get("self")
        # Before its super().__init__() a module has none yet, and says so by an error.
        is_made = "_modules" in getattr(owner, "__dict__", {})
        if is_made and is_users(frame.f_code.co_filename):
            yield owner


def failed_layer(frames: Sequence[FrameType]) -> tuple[Any, Any] | None:
    """The layer of torch's that the error came out of, and the tensor that it was given."""
    for frame in reversed(frames):
        layer, given = frame.f_locals.get("self"), frame.f_locals.get("input")
        if frame.f_code.co_name == "forward" and type(layer).__name__ in _SIZES:
            is_torchs = type(layer).__module__.startswith("torch.nn.")
            return (layer, given) if is_torchs and shape_of(given) is not None else None
    return None


def shown_layer(layer: Any, frames: Sequence[FrameType]) -> str:
    """`self.layers[0] = nn.Linear(16, 4) (nets.py:14)`, as far as all that is known."""
    written = as_written(layer)
    for owner in owners(frames):
        for path, module in owner.named_modules():
            if module is layer and path:
                place = set_in(type(owner), path.partition(".")[0])
                return f"self{_subscripts(path)} = {written}{f' ({place})' if place else ''}"
    return written


def as_written(layer: Any, **changed: int) -> str:
    """`nn.Linear(16, 4)`, of the sizes that it has, or of others."""
    kind = type(layer).__name__
    sizes = [str(changed.get(it, getattr(layer, it, "?"))) for it in _SIZES[kind]]
    more = ", ..." if kind.startswith(("Conv", "LSTM", "GRU", "RNN")) else ""
    return f"nn.{kind}({', '.join(sizes)}{more})"


def _subscripts(path: str) -> str:
    return "".join(f"[{it}]" if it.isdigit() else f".{it}" for it in path.split("."))
