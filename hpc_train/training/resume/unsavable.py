"""What the program put into a checkpoint and nothing can write: which part it is, and whose.

A save fails by its storage, and the training goes on; or by the program, and then the next one
fails just so. Imports no torch: whoever judges a rank's end reads it.
"""

from __future__ import annotations

import errno
import os
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from hpc_train.errors import RunFailedError
from hpc_train.runs.layout import RunDir

FIX = (
    "leave out what pickle cannot write (lambdas and functions in functions, locks, open files, "
    "generators), and make it anew as the checkpoint is loaded"
)
_ROOTS = {"model": "checkpoint", "own": "this rank's own part"}
# torch.save to a path says in a RuntimeError what its storage said (caffe2/serialize's
# inline_container.cc, torch/serialization.py).
_STORAGE = re.compile(
    r"PyTorchStreamWriter|PytorchStreamWriter|inline_container\.cc|iostream error"
    r"|Parent directory .{1,400} does not exist",
    re.DOTALL,
)
_PROTOCOL = 2  # torch.save's own
_DEEPEST = 20  # what refers to itself has no innermost part


@dataclass(frozen=True)
class Author:
    """Who puts something into a checkpoint, and `file:line` of it; empty where nobody can tell."""

    who: str = ""
    where: str = ""


Authors = Callable[[Sequence[Any]], Author]


def unknown_author(_keys: Sequence[Any]) -> Author:
    """Of a state of which nobody knows who makes it."""
    return Author()


@dataclass(frozen=True)
class Unsavable:
    """Why no checkpoint can be written, as one rank tells the others.

    Attributes:
        where: `file:line` of what stands in the way; empty where it is not known.
        traceback: Of the rank that met it.
    """

    why: str
    where: str = ""
    traceback: str = ""


class UnsavableError(RunFailedError):
    """The program has put into the checkpoint what cannot be written."""

    def __init__(self, cause: Unsavable) -> None:
        super().__init__(f"the checkpoint cannot be written: {cause.why}", FIX)
        self.cause = cause


class UnsavedEndError(RunFailedError):
    """The training has taken its steps, and the storage refused its last state."""

    def __init__(self, step: int, why: str, run: RunDir, folder: Path) -> None:
        is_full = why in (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
        again = f"hpc-train resume {run.run_id}" if run.plan.exists() else "start the script again"
        super().__init__(
            f"trained to step {step}, and its last state could not be saved: {why} ({folder})",
            f"make room there, then {again}" if is_full else f"once one can write there: {again}",
        )


@dataclass(frozen=True)
class Part:
    """A part of a state: the way to it, and what it is."""

    keys: tuple[Any, ...]
    path: str
    content: Any


def first_of(error: BaseException) -> BaseException:
    """The error that says most of why a save broke off.

    torch.distributed.checkpoint gathers one a rank, and torch's writer has one of its own as it is
    closed after one of the storage.
    """
    failures = getattr(error, "failures", None)  # of its CheckpointException: (error, stack) each
    if isinstance(failures, dict) and failures:
        error = next(iter(failures.values()))[0]
    said: BaseException | None = error
    while said is not None and not isinstance(said, OSError):
        said = said.__cause__ or (said.__context__ if _is_of_writer(said) else None)
    return said or error


def is_of_storage(error: BaseException) -> bool:
    """Whether the storage refused a save, so that another one may do."""
    return isinstance(error, OSError) or _is_of_writer(error)


def _is_of_writer(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and bool(_STORAGE.search(str(error)))


def is_full(error: BaseException, folder: Path) -> bool:
    """Whether a save into `folder` was refused for want of room."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    try:
        room = os.statvfs(folder)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < 1 << 20  # a strategy's own writer says no more


def words_of(error: BaseException) -> str:
    """What the storage said, one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def explain(error: BaseException, state: Any, authors: Authors, where: str) -> Unsavable:
    """Say what of `state` cannot be written, and who put it there, as far as that can be known.

    Args:
        error: What pickle, or an object's own code, said.
        where: `file:line` in the user's code of `error`, which is taken where nothing is nearer.
    """
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    part = unwritable_part(state)
    if part is None:
        return Unsavable(said, where)
    author = authors(part.keys)
    what = _name_of(part.content)
    told = f"{author.who} put {what} into it" if author.who else f"it holds {what}"
    code = getattr(part.content, "__code__", None)
    at_code = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return Unsavable(f"{told}, at {part.path} ({said})", at_code or where or author.where)


def unwritable_part(state: Any) -> Part | None:
    """The innermost part of `state` that pickle cannot write; None where it can write all."""
    if _is_writable(state):
        return None
    part = Part((), "the checkpoint", state)
    for _ in range(_DEEPEST):
        inner = next((item for item in _parts(part) if not _is_writable(item.content)), None)
        if inner is None:
            break
        part = inner
    return part


class _Nowhere:
    """Where a trial goes."""

    def write(self, data: Any) -> int:
        return len(data)


class _Trial(pickle.Pickler):
    """Takes all but tensors, whose bytes are many and never in the way."""

    def persistent_id(self, item: Any) -> str | None:
        return "tensor" if hasattr(type(item), "data_ptr") else None


def _is_writable(item: Any) -> bool:
    try:
        _Trial(_Nowhere(), protocol=_PROTOCOL).dump(item)
    except Exception:  # noqa: BLE001 - whatever an object's own code raises is the answer
        return False
    return True


def _parts(part: Part) -> Iterator[Part]:
    content = part.content
    if isinstance(content, dict):
        inner = [(key, f"[{key!r}]", item) for key, item in content.items()]
    elif isinstance(content, (list, tuple)):
        inner = [(at, f"[{at}]", item) for at, item in enumerate(content)]
    else:
        inner = [(name, f".{name}", item) for name, item in _attributes(content).items()]
    for key, step, item in inner:
        path = part.path + step if part.keys else _ROOTS.get(key, str(key))
        yield Part((*part.keys, key), path, item)


def _attributes(item: Any) -> dict[str, Any]:
    """What pickle takes of an object."""
    if isinstance(item, (FunctionType, ModuleType, type)):
        return {}
    try:
        reduced = item.__reduce_ex__(_PROTOCOL)
    except Exception:  # noqa: BLE001 - so it is this object itself
        return {}
    state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    return state if isinstance(state, dict) else {}


def _name_of(item: Any) -> str:
    if isinstance(item, FunctionType):
        name = f"{item.__module__}.{item.__qualname__}"
        return "a lambda" if item.__name__ == "<lambda>" else f"the function {name}"
    if isinstance(item, ModuleType):
        return f"the module {item.__name__}"
    kind = item if isinstance(item, type) else type(item)
    name = class_name(kind)
    return f"the class {name}" if kind is item else f"an object of {name}"


def class_name(kind: type) -> str:
    """`nets.Net`, or `int`."""
    prefix = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{prefix}{kind.__qualname__}"
