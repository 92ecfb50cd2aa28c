"""The data set that gave a failed step its batch, and where the user's code makes its samples."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.frame_values import shape_of
from hpc_train.training.failures.layers import owners
from hpc_train.training.failures.samples_differ import place_of_samples
from hpc_train.training.failures.users_method import lines_of, parsed

# Methods of a step, and the Trainer's property that holds what they are given.
LOADERS = {
    "training_step": "train_dataloader",
    "validation_step": "val_dataloaders",
    "test_step": "test_dataloaders",
    "predict_step": "predict_dataloaders",
}
_MOST_SETS = 8  # in each other


def set_of_step(frames: Sequence[FrameType]) -> tuple[Any, Any]:
    """The set, and the Trainer; None for what is not known, as with several loaders."""
    for _, _, trainer, loader in loaders_of_step(frames):
        if isinstance(loader, list | tuple) and len(loader) == 1:
            loader = loader[0]
        dataset = getattr(loader, "__dict__", {}).get("dataset")
        if dataset is not None:
            return dataset, trainer
    return None, None


def loaders_of_step(frames: Sequence[FrameType]) -> Iterator[tuple[str, Any, Any, Any]]:
    """A step, each module of the user's that it was in, its Trainer, and the loaders there."""
    names = [frame.f_code.co_name for frame in frames if frame.f_code.co_name in LOADERS]
    for owner in owners(frames) if names else ():
        held = getattr(owner, "__dict__", {})
        trainer = held.get("_trainer") or held.get("trainer")
        yield names[-1], owner, trainer, getattr(trainer, LOADERS[names[-1]], None)


def shown_source(frames: Sequence[FrameType]) -> str:
    """`data.Shapes.__getitem__ (data.py:18)`; empty where no method of the user's gives them."""
    dataset, _ = set_of_step(frames)
    found = place_of_samples(dataset) if dataset is not None else None
    if found is None:
        return ""
    file, _, line = found.where.rpartition(":")
    return f"{found.of} ({shown_file(file)}:{line})"


def line_of_tensors(frames: Sequence[FrameType], meant: Any) -> tuple[str, str]:
    """Where a TensorDataset is first made of tensors like `meant`, and the name that it is given.

    As `nets.py:48` and `y`, of `TensorDataset(x[:512], y[:512])`; empty where the text of the
    data module, or of the model, does not surely tell it.
    """
    dataset, trainer = set_of_step(frames)
    for _ in range(_MOST_SETS):
        tensors = getattr(dataset, "__dict__", {}).get("tensors")
        if type(dataset).__name__ == "TensorDataset" and isinstance(tensors, tuple):
            alike = [number for number, it in enumerate(tensors) if _are_alike(it, meant)]
            homes = (getattr(trainer, "datamodule", None), *owners(frames))
            made = next(filter(None, map(_made_in, homes)), None)
            return _named(*made, alike[0]) if made and len(alike) == 1 else ("", "")
        dataset = getattr(dataset, "__dict__", {}).get("dataset")
    return "", ""


def _are_alike(tensor: Any, meant: Any) -> bool:
    one, other = shape_of(tensor), shape_of(meant)
    is_shaped = one is not None and other is not None and one[1:] == other[1:]
    return is_shaped and bool(tensor.dtype == meant.dtype)


def _made_in(home: Any) -> tuple[str, list[tuple[int, ast.Call]]] | None:
    """The one method of an object that makes such sets: its file, and each call with its line."""
    found = []
    for method in vars(type(home)).values() if home is not None else ():
        if not inspect.isfunction(method):
            continue
        lines, first = lines_of(method)
        calls = [(first + it.lineno - 1, it) for it in _calls(parsed(lines))]
        if calls:
            found.append((shown_file(method.__code__.co_filename), calls))
    return found[0] if len(found) == 1 else None


def _calls(node: ast.FunctionDef | None) -> Iterator[ast.Call]:
    for it in ast.walk(node) if node else ():
        if isinstance(it, ast.Call) and ast.unparse(it.func).endswith("TensorDataset"):
            yield it


def _named(file: str, calls: list[tuple[int, ast.Call]], place: int) -> tuple[str, str]:
    """The name alone that the argument at this place is made of, the same in each call."""
    names = set()
    for _, call in calls:
        given = call.args[place] if place < len(call.args) else None
        given = given.value if isinstance(given, ast.Subscript) else given
        names.add(given.id if isinstance(given, ast.Name) else "")
    name = names.pop() if len(names) == 1 else ""
    return (f"{file}:{min(line for line, _ in calls)}", name) if name else ("", "")
