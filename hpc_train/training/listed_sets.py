"""A list of data sets that a loader was given for one: its samples are whole sets."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator
from typing import Any

from hpc_train.training.frame_text import shown_file
from hpc_train.training.frame_values import attribute_of
from hpc_train.training.placed_fix import PlacedFix
from hpc_train.training.users_method import OWNERS, lines_of, own_method, parsed

_OF_NO_KIND = "default_collate: batch must contain tensors"
_HELD = ("dataset", "_dataset")  # of a fetcher, and of an iterator over a loader
_HOOKS = ("train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader")


def listed_sets(error: BaseException) -> PlacedFix:
    """Of `DataLoader(splits[1:])`: whose loader it is, and what to give it."""
    if not isinstance(error, TypeError) or _OF_NO_KIND not in str(error):
        return PlacedFix()
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    holders = (getattr(frame.f_locals.get("self"), "__dict__", {}) for frame in frames)
    given = (held[name] for held in holders for name in _HELD if name in held)
    sets = next((it for it in given if _is_of_sets(it)), None)
    if sets is None:
        return PlacedFix()
    count = f"{len(sets)} data set{'s' if len(sets) > 1 else ''}"
    for owner in (frame.f_locals.get(name) for frame in frames for name in OWNERS):
        for hook, file, line, name in _loaders_of(owner, sets):
            said = f"{hook} ({shown_file(file)}:{line}) gives the loader {name}, a list of {count}"
            return PlacedFix(f"{file}:{line}", f"{said}: {_write(name)}")
    return PlacedFix("", f"a loader was given a list of {count}: {_write('sets')}")


def _write(name: str) -> str:
    return f"take one of them, as {name}[0], or torch.utils.data.ConcatDataset({name})"


def _is_of_sets(given: Any) -> bool:
    return type(given) in (list, tuple) and bool(given) and all(map(_is_set, given))


def _is_set(value: Any) -> bool:
    return any(
        it.__name__ == "Dataset" and it.__module__.startswith("torch.utils.data")
        for it in type(value).__mro__
    )


def _loaders_of(owner: Any, sets: Any) -> Iterator[tuple[str, str, int, str]]:
    """Hook, file, line and the name there of what a loader is given, where it is these sets."""
    for hook in _HOOKS:
        method = own_method(owner, hook)
        code = getattr(method, "__code__", None)
        lines, first = lines_of(method)
        node = parsed(lines) if code is not None else None
        for call in ast.walk(node) if node is not None else ():
            if not isinstance(call, ast.Call):
                continue
            given = [*call.args[:1], *(it.value for it in call.keywords if it.arg == "dataset")]
            for it in given:
                is_own = isinstance(it, ast.Attribute) and ast.unparse(it.value) == "self"
                if is_own and code and attribute_of(owner, it.attr) is sets:  # type: ignore[attr-defined]
                    yield hook, code.co_filename, first + call.lineno - 1, f"self.{it.attr}"  # type: ignore[attr-defined]
