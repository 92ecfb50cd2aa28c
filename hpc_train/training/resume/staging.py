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


class NotCopiedError(Exception):
    """An object's own code, or Python, refuses a copy of it, in words of its own."""

    def __init__(self, refused: Exception) -> None:
        super().__init__(str(refused))
        self.refused = refused


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
            return _deep_copy(tree)
        return same
    return _deep_copy(tree)


def _deep_copy(item: Any) -> Any:
    try:
        return copy.deepcopy(item)
    except Exception as error:
        raise NotCopiedError(error) from error


class StagingBuffers:
    """Buffers for one state; a new copy overwrites the one before."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}

    @staticmethod
    def layout(tree: Any) -> dict[str, Tensor]:
        """The tensors of `tree` by path, of which `prepare` looks at shape and place alone."""
        found: dict[str, Tensor] = {}
        map_tensors(tree, lambda path, tensor: found.setdefault(path, tensor.detach()))
        return found

    def prepare(self, layout: dict[str, Tensor]) -> None:
        """Make and touch a buffer for each; for a thread of its own: filling frees the GIL."""
        for path, like in layout.items():
            self._buffer(path, like).fill_(0)

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
        wanted = (like.shape, like.dtype, like.stride())
        if buffer is None or (buffer.shape, buffer.dtype, buffer.stride()) != wanted:
            buffer = torch.empty_like(
                like, device="cpu", pin_memory=like.is_cuda, requires_grad=False
            )
            self._buffers[path] = buffer
        return buffer
