"""A list of data sets that a loader was given for one: its samples are whole sets."""

from __future__ import annotations

import ast
import itertools
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from hpc_train.errors import ConfigError
from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.frame_values import attribute_of
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.users_method import OWNERS, lines_of, own_method, parsed

_OF_NO_KIND = "default_collate: batch must contain tensors"
_HELD = ("dataset", "_dataset")  # of a fetcher, and of an iterator over a loader
_HOOKS = ("train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader")


_PACKAGES = ("torch.utils.data", "datasets.")  # whose Dataset it is


class ListedSetsError(ConfigError):
    """The train loader would make its batches of whole data sets."""

    def __init__(self, sets: Sequence[Any]) -> None:
        super().__init__(f"the train loader's data set is {_counted(sets)}", _write("sets", sets))
        self.sets = sets

    def placed(self) -> ConfigError:
        """The same with the user's line, once it was raised; see `listed_sets`."""
        frames = [frame for frame, _ in traceback.walk_tb(self.__traceback__)]
        hook, file, line, given = _loader_of(frames, self.sets, _HOOKS[:1])
        if not hook:
            return self
        said = f"the data set of the loader that {hook} returns is {_counted(self.sets)}"
        error = ConfigError(f"{said}: {given}", _write(given, self.sets))
        error.where = f"{file}:{line}"
        return error


def refuse_listed_sets(loader: Any, default_collate: Any) -> None:
    """Refuse a loader over a list of data sets, of which torch's own collate makes no batch.

    A collate_fn of the user's may take whole sets for its samples.

    Raises:
        ListedSetsError: where it is so.
    """
    if loader.collate_fn is default_collate and _is_of_sets(loader.dataset):
        raise ListedSetsError(loader.dataset)


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
    hook, file, line, name = _loader_of(frames, sets, _HOOKS)
    if hook:
        said = f"{hook} ({shown_file(file)}:{line}) gives the loader {name}, {_counted(sets)}"
        return PlacedFix(f"{file}:{line}", f"{said}: {_write(name, sets)}")
    return PlacedFix("", f"a loader was given {_counted(sets)}: {_write('sets', sets)}")


def _counted(sets: Sequence[Any]) -> str:
    return f"a {type(sets).__name__} of {len(sets)} data set{'s' if len(sets) > 1 else ''}"


def _write(given: str, sets: Sequence[Any]) -> str:
    joined = f"torch.utils.data.ConcatDataset({given})"
    if not given.isidentifier() and not given.startswith("self."):
        return (
            f"write {joined} for all of their samples" if len(sets) > 1 else f"write {given[1:-1]}"
        )
    return f"take one of them, as {given}[0], or {joined}"


def _is_of_sets(given: Any) -> bool:
    return type(given) in (list, tuple) and bool(given) and all(map(_is_set, given))


def _is_set(value: Any) -> bool:
    is_one = any(
        it.__name__ == "Dataset" and it.__module__.startswith(_PACKAGES)
        for it in type(value).__mro__
    )
    return is_one and not isinstance(value, Mapping | Sequence)  # of which torch makes a batch


def _loader_of(
    frames: Iterable[FrameType], sets: Sequence[Any], hooks: Sequence[str]
) -> tuple[str, str, int, str]:
    """Hook, file, line and the text there of what the loader of these sets is given, if one is."""
    known = [*dict.fromkeys(_loaders_of(frames, sets, hooks))]
    sure = [it[1] for it in known if it[0]]
    likely = sure or [it[1] for it in known if len(known) == 1]
    return likely[0] if likely else ("", "", 0, "")


def _loaders_of(
    frames: Iterable[FrameType], sets: Sequence[Any], hooks: Sequence[str]
) -> Iterator[tuple[bool, tuple[str, str, int, str]]]:
    """Each loader that may be meant, and whether it has these very sets."""
    owners = {id(it): it for frame in frames for name in OWNERS if (it := frame.f_locals.get(name))}
    for owner, hook in itertools.product(owners.values(), hooks):
        method = own_method(owner, hook)
        code: Any = getattr(method, "__code__", None)
        lines, first = lines_of(method)
        node = parsed(lines) if code is not None else None
        for call in ast.walk(node) if node is not None else ():
            if not isinstance(call, ast.Call):
                continue
            for it in [*call.args[:1], *(it.value for it in call.keywords if it.arg == "dataset")]:
                is_own = isinstance(it, ast.Attribute) and ast.unparse(it.value) == "self"
                is_sure = is_own and attribute_of(owner, ast.unparse(it)[5:]) is sets
                if is_sure or (_is_loader(call) and _may_be(it, len(sets))):
                    place = (hook, code.co_filename, first + call.lineno - 1, ast.unparse(it))
                    yield is_sure, place


def _is_loader(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] == "DataLoader"


def _may_be(node: ast.expr, count: int) -> bool:
    """Whether an expression may be that many sets: a list of as many, or a name."""
    if isinstance(node, ast.List | ast.Tuple):
        is_whole = not any(isinstance(it, ast.Starred) for it in node.elts)
        return not is_whole or len(node.elts) == count
    return isinstance(node, ast.Name | ast.ListComp)
