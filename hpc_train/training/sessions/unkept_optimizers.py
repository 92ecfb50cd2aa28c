"""Optimizers that a loop with a Session steps, and of which `restore` keeps nothing."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import register_optimizer_step_post_hook

from hpc_train.training.failures.frame_text import is_users, nodes_at, nodes_of_file, shown_file

_DEEPEST = 3
_OPTIMIZER = "optimizer"


class UnkeptOptimizers:
    """Looks at which optimizers take part in two steps.

    One that is made for each step anew, as of an attack on the samples, has nothing to keep, nor
    has SGD without momentum.
    """

    def __init__(self) -> None:
        self._kept: Mapping[str, Any] = {}
        self._place, self._call = "", ""
        self._steppers: list[Optimizer] = []  # in the step at hand
        self._before: list[Optimizer] = []  # in the one before it
        self._hook: Any = None

    def restored(self, objects: Mapping[str, Any]) -> None:
        """What `restore` was given, which the caller's line calls."""
        self._kept = dict(objects)
        frame = next(_users_frames(), None)
        if frame is not None:
            self._place = f"{shown_file(frame.f_code.co_filename)}:{frame.f_lineno}"
            self._call = _call_there(frame)
        if self._hook is None:
            self._hook = register_optimizer_step_post_hook(self._after_step)

    def _after_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        """Called by torch."""
        if not any(it is optimizer for it in self._steppers):
            self._steppers.append(optimizer)

    def stepped(self) -> None:
        """A step is over."""
        self._before, self._steppers = self._steppers, []

    def said(self) -> str:
        """In the second step: what is lost at a stop, and what to write; else empty."""
        both = [it for it in self._steppers if any(it is other for other in self._before)]
        stated = [it for it in both if any(map(bool, it.state.values()))]
        kept = [it for item in self._kept.values() for it in _inside(item, 0)]
        lost = [it for it in stated if not any(it is other for other in kept)]
        lost = [it for it in lost if not any(it is inner for o in both for inner in _held(o))]
        lost = [it for it in lost if not _keeps_by_itself(_names_of([it])[0])]
        if not lost:
            return ""
        kinds = " and ".join(dict.fromkeys(type(it).__name__ for it in lost))
        its = "its state begins" if len(lost) == 1 else "their states begin"
        place = f"{self._place}: " if self._place else ""
        steps = "takes" if len(lost) == 1 else "take"
        return (
            f"{place}session.restore is given no {kinds}, which {steps} the steps: {its} anew"
            f" after each stop; write {self._with(lost)}"
        )

    def end(self) -> None:
        """Ask torch for nothing more."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        self._before = self._steppers = []

    def _with(self, lost: list[Optimizer]) -> str:
        """The call of restore with them, each by the name that the loop has for it."""
        names = _names_of(lost)
        keys = {_OPTIMIZER: names[0]} if len(lost) == 1 else {it: it for it in names}
        added = [
            f"{key}_2={it}" if key in self._kept else f"{key}={it}" for key, it in keys.items()
        ]
        head = self._call or f"session.restore({', '.join(f'{it}={it}' for it in self._kept)})"
        return f"{head[:-1]}, {', '.join(added)})"


def _inside(item: Any, depth: int) -> Iterator[Optimizer]:
    """The optimizers whose state an object given to `restore` may have in its own.

    A scheduler's state is without that of its optimizer, and so is a module's.
    """
    if isinstance(item, Optimizer):
        yield item
    if depth > _DEEPEST or isinstance(item, LRScheduler):
        return
    if isinstance(item, Module) and not _has_more_state(item):
        return
    if isinstance(item, Mapping):
        held: list[Any] = list(item.values())
    elif isinstance(item, list | tuple):
        held = list(item)
    else:
        held = list(getattr(item, "__dict__", {}).values())
    for it in held:
        yield from _inside(it, depth + 1)


def _has_more_state(module: Module) -> bool:
    kind = type(module)
    own = (kind.state_dict, kind.get_extra_state)
    return own != (Module.state_dict, Module.get_extra_state)


def _held(optimizer: Optimizer) -> list[Optimizer]:
    """Optimizers that a wrapper steps: its own state is theirs."""
    return [it for it in _inside(optimizer, 0) if it is not optimizer]


def _names_of(lost: list[Optimizer]) -> list[str]:
    """What the loop calls each, where that is told."""
    names = [(name, value) for frame in _users_frames() for name, value in _bound(frame)]
    return [next((name for name, value in names if value is it), _OPTIMIZER) for it in lost]


def _bound(frame: FrameType) -> Iterator[tuple[str, Any]]:
    yield from frame.f_locals.items()
    yield from frame.f_globals.items()


def _keeps_by_itself(name: str) -> bool:
    """Whether the loop's text reads the state of what it calls so."""
    frame = next(_users_frames(), None)
    read = f"{name}.state_dict"
    nodes = nodes_of_file(frame) if frame is not None else ()
    return any(isinstance(it, ast.Attribute) and ast.unparse(it) == read for it in nodes)


def _call_there(frame: FrameType) -> str:
    """The call of restore in the frame's line, as it is written; empty where it is not told."""
    for node in nodes_at(frame, frame.f_lineno):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_open = any(it.arg is None for it in node.keywords)
            if node.func.attr == "restore" and node.keywords and not is_open:
                return ast.unparse(node)
    return ""


def _users_frames() -> Iterator[FrameType]:
    """Those of the user's, the innermost first."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back
