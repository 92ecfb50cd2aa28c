"""A copy of a training's state in host memory, in buffers that are kept for the next one.

The first touch of fresh memory costs several times what copying does, so buffers are made and
touched before they are needed, and page-locked where the state is on a GPU.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["StagingBuffers", "map_tensors", "size_bytes"]

_PLAIN = (str, bytes, int, float, bool, complex, type(None))


def map_tensors(tree: Any, change: Callable[[str, Tensor], Any], path: str = "") -> Any:
    """Copy dicts, lists and tuples of `tree`, with `change(path, tensor)` in place of each tensor.

    Objects of other kinds are copied deeply: the training goes on to change them.
    """
    if isinstance(tree, Tensor):
        return change(path, tree)
    if isinstance(tree, _PLAIN):
        return tree
    if type(tree) in (list, tuple):
        items = [map_tensors(item, change, f"{path}/{at}") for at, item in enumerate(tree)]
        return tuple(items) if type(tree) is tuple else items
    if isinstance(tree, dict):
        changed = {key: map_tensors(item, change, f"{path}/{key!r}") for key, item in tree.items()}
        if type(tree) is dict:
            return changed
        try:
            # OrderedDict (a model's state_dict) and the like, with their attributes (_metadata).
            same = copy.copy(tree)
            same.update(changed)
        except (TypeError, AttributeError):
            return copy.deepcopy(tree)
        return same
    return copy.deepcopy(tree)


def size_bytes(tree: Any) -> int:
    """Bytes of all tensors in `tree`."""
    total = 0

    def count(_: str, tensor: Tensor) -> Tensor:
        nonlocal total
        total += tensor.numel() * tensor.element_size()
        return tensor

    map_tensors(tree, count)
    return total


class StagingBuffers:
    """Buffers for one state; a new copy overwrites the one before."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}

    def prepare(self, shapes: dict[str, Tensor]) -> None:
        """Make and touch buffers like the tensors in `shapes`, path by path (see `layout`).

        For a thread of its own: filling memory frees the GIL.
        """
        for path, like in shapes.items():
            self._buffer(path, like).fill_(0)

    @staticmethod
    def layout(tree: Any) -> dict[str, Tensor]:
        """Paths and tensors of `tree`; of the tensors only shape and place are looked at."""
        found: dict[str, Tensor] = {}

        def note(path: str, tensor: Tensor) -> Tensor:
            found[path] = torch.empty_like(tensor, device="meta")
            found[path].on_gpu = tensor.is_cuda  # type: ignore[attr-defined]
            return tensor

        map_tensors(tree, note)
        return found

    def copy(self, tree: Any) -> Any:
        """`tree` with its tensors on the host; returns once they are all there.

        Tensors that are the same memory (tied weights) stay one.
        """
        seen: dict[tuple[Any, ...], Tensor] = {}
        on_gpu = False

        def take(path: str, tensor: Tensor) -> Tensor:
            nonlocal on_gpu
            source = tensor.detach()
            key = (source.data_ptr(), source.dtype, source.shape, source.stride(), source.device)
            if source.numel() and key in seen:
                return seen[key]
            on_gpu |= source.is_cuda
            buffer = self._buffer(path, source)
            buffer.copy_(source, non_blocking=True)
            seen[key] = buffer
            return buffer

        copied = map_tensors(tree, take)
        if on_gpu:
            torch.cuda.current_stream().synchronize()
        return copied

    def _buffer(self, path: str, like: Tensor) -> Tensor:
        buffer = self._buffers.get(path)
        same = buffer is not None and (buffer.shape, buffer.dtype, buffer.stride()) == (
            like.shape,
            like.dtype,
            like.stride(),
        )
        if buffer is None or not same:
            pinned = like.is_cuda or bool(getattr(like, "on_gpu", False))
            buffer = torch.empty_like(like, device="cpu", pin_memory=pinned, requires_grad=False)
            self._buffers[path] = buffer
        return buffer
