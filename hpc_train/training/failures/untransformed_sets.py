"""Images of PIL that a data set of torchvision's gives, where its transform makes no tensor of one.

Without `transform=` it gives each image as it was read (torchvision/datasets/vision.py).
"""

from __future__ import annotations

import ast
import inspect
import sys
import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_in_file, shown_file
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.samples_differ import sets_of

_OF_PIL = "default_collate: batch must contain tensors"
_PIL = "found <class 'PIL."
_GIVEN = ("transform", "transforms")
_IMPORT = "from torchvision.transforms import ToTensor"
_MOST_TOLD = 4


def untransformed(error: BaseException) -> PlacedFix:
    """What to write in the lines that make the set.

    Returns:
        The place is that of the first of them.
    """
    said = str(error)
    if not isinstance(error, TypeError) or _OF_PIL not in said or _PIL not in said:
        return PlacedFix()
    dataset = next((it for it in sets_of(error) if _is_torchvisions(it)), None)
    if dataset is None:
        return PlacedFix()
    name, held = type(dataset).__name__, vars(dataset)
    given = next((held[it] for it in _GIVEN if held.get(it) is not None), None)
    calls = [*_calls_of(type(dataset), error, is_given=given is not None)]
    first = f"{calls[0][0]}:{calls[0][1]}" if calls else ""
    places = ", ".join(f"{shown_file(file)}:{line}" for file, line in calls[:_MOST_TOLD])
    of = f"{name}(...){f' ({places})' if places else ''}"
    if given is None:
        write = f"write {name}(..., transform=ToTensor()), with {_IMPORT}"
        return PlacedFix(first, f"{of} has no transform, and gives images of PIL: {write}")
    write = f"write Compose([..., ToTensor()]) for it, with {_IMPORT}, Compose"
    return PlacedFix(first, f"the transform of {of} leaves images of PIL: {write}")


def _is_torchvisions(dataset: Any) -> bool:
    """Whether it gives its samples by a method of torchvision's, and takes a transform."""
    method = getattr(type(dataset), "__getitem__", None)
    code = getattr(inspect.unwrap(method), "__code__", None) if method else None
    file = getattr(code, "co_filename", "").replace("\\", "/")
    return "/torchvision/" in file and "transform" in getattr(dataset, "__dict__", {})


def _calls_of(
    kind: type[Any], error: BaseException, *, is_given: bool
) -> Iterator[tuple[str, int]]:
    """File and line of each call in the user's files that makes such a set; of all where given."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = {getattr(it, "__file__", None): it for it in [*sys.modules.values()]}
    files = dict.fromkeys([*frames, *(it for it in modules if isinstance(it, str))])
    for file in filter(is_users, files):
        for call in nodes_in_file(file):
            if not isinstance(call, ast.Call) or not _makes(call, kind, modules.get(file)):
                continue
            named = {it.arg for it in call.keywords}
            if is_given or not named & {*_GIVEN, None}:
                yield file, call.lineno


def _makes(call: ast.Call, kind: type[Any], module: ModuleType | None) -> bool:
    """Whether it is surely this class that is called, and no other of the same name."""
    names = ast.unparse(call.func).split(".")
    if names[-1] != kind.__name__:
        return False
    if module is None or names[0] not in vars(module):  # imported in the function, or defined there
        return kind.__module__.startswith("torchvision.") or kind.__module__ == getattr(
            module, "__name__", ""
        )
    found = vars(module)[names[0]]
    for name in names[1:]:
        found = getattr(found, name, None)
    return found is kind
