"""What a model keeps of one step for the next, with the graph that is gone by then.

torch raises in the backward pass, so that no frame names it. It is not imported here: ranks that
fail before they need it are judged, too.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpc_train.training.failures.unset_attributes import assigned_in

_TWICE = "Trying to backward through the graph a second time"
_MOST = 3


@dataclass(frozen=True)
class _Kept:
    """An attribute, as `self.net.hidden (nets.py:47)`; `name` is its last part."""

    shown: str
    name: str
    place: str
    is_pair: bool


def kept_graph(error: BaseException) -> str:
    """The attributes that have a graph, and where they are assigned; empty without any."""
    if not isinstance(error, RuntimeError) or _TWICE not in str(error):
        return ""
    kept = list(dict.fromkeys(_kept(error)))
    if not 0 < len(kept) <= _MOST:
        return ""
    have = "has" if len(kept) == 1 else "have"
    shown = " and ".join(it.shown for it in kept)
    where = f"{shown} {have} the graph of the step that assigned it"
    pairs = [it for it in kept if it.is_pair and it.place]
    if len(pairs) == len(kept) == 1:  # as that of an LSTM, which has no detach
        own = f"self.{pairs[0].name}"
        return f"{where}: write {own} = tuple(it.detach() for it in {own}) below that line"
    return f"{where}: what the next step reads of it needs .detach()"


def _kept(error: BaseException) -> Iterator[_Kept]:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    values = (it for frame in frames for it in frame.f_locals.values())
    for module in {id(it): it for it in values if hasattr(type(it), "training_step")}.values():
        for path, part in module.named_modules() if hasattr(module, "named_modules") else ():
            for name, value in {**vars(part), **dict(part.named_buffers(recurse=False))}.items():
                if not name.startswith("_") and any(_has_graph(it) for it in _parts(value)):
                    dotted = ".".join(filter(None, ("self", path, name)))
                    place = assigned_in(type(part), name)
                    shown = f"{dotted}{f' ({place})' if place else ''}"
                    is_pair = type(value) is tuple and all(_is_torchs(it) for it in value)
                    yield _Kept(shown, name, place, is_pair)


def _parts(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _is_torchs(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _has_graph(value: Any) -> bool:
    return _is_torchs(value) and getattr(value, "grad_fn", None) is not None
