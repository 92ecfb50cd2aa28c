"""What makes the samples of a set alike: images, the boxes of each, windows of a series.

Sources: Pillow's Image.open, whose mode is that of the file; torchvision's Resize, which with one
number matches the shorter side alone.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_in_file, shown_file
from hpc_train.training.failures.samples_differ import below_torchs, sets_of
from hpc_train.training.failures.users_method import lines_of, own_method, parsed
from hpc_train.training.failures.windows_past_the_end import whole_windows

_SHAPES = re.compile(r"but got \[([\d, ]+)\] at entry \d+ and \[([\d, ]+)\] at entry")
_MOST_CHANNELS = 4
_MOST_LOOKED_AT = 50


def how_to_make_alike(error: BaseException) -> str:
    """What to write; empty where the set is of another kind, or is none of the user's."""
    of_channels, of_sizes = _how_they_differ(str(error))
    for dataset in map(below_torchs, sets_of(error)):
        if other := whole_windows(dataset) or _boxes(dataset):
            return other
        told = []
        side = next(_one_sided(dataset), None)
        if side and not of_channels:
            both = f"Resize(({side}, {side}))"
            told.append(f"Resize({side}) keeps the ratio of the sides: write {both}")
        if not of_sizes:
            told += [*_opened_as_they_are(dataset)][:1]
        if told:
            return "; ".join(told)
    return f"they differ in channels, {of_channels}: give each as many" if of_channels else ""


def _boxes(dataset: Any) -> str:
    """Targets of a detection, whose number differs: `{"boxes": ..., "labels": ...}`."""
    definition = parsed(lines_of(own_method(dataset, "__getitem__"))[0])
    nodes = [*ast.walk(definition)] if definition is not None else []
    keys = [key for it in nodes if isinstance(it, ast.Dict) for key in it.keys]
    keys += [it.slice for it in nodes if isinstance(it, ast.Subscript)]
    held = {it.value for it in keys if isinstance(it, ast.Constant)}
    if "boxes" not in held:
        return ""
    return (
        "each has boxes of its own number: keep them as a list, by collate_fn=collate of the"
        " DataLoader, with def collate(batch): return tuple(zip(*batch)) in that file"
    )


def _how_they_differ(said: str) -> tuple[str, bool]:
    """`3 and 1` of images that differ in channels alone; and whether they differ in size alone."""
    found = _SHAPES.search(said)
    if not found:
        return "", False
    one, other = ([int(it) for it in text.split(",")] for text in found.groups())
    if len(one) != 3 or len(other) != 3 or max(one[0], other[0]) > _MOST_CHANNELS:
        return "", False
    if one[1:] == other[1:]:
        return f"{one[0]} and {other[0]}", False
    return "", one[0] == other[0]


def _one_sided(dataset: Any) -> Iterator[int]:
    """The number of each Resize among the transforms that a set holds, where it has one alone."""
    waiting, seen = [*getattr(dataset, "__dict__", {}).values()], 0
    while waiting and seen < _MOST_LOOKED_AT:
        held, seen = waiting.pop(0), seen + 1
        name = type(held).__name__
        values = getattr(held, "__dict__", {})
        if name == "Resize" and (side := _side(values.get("size"))):
            yield side
        elif name in ("Compose", "Sequential", "StandardTransform"):
            waiting += [it for it in values.values() if not isinstance(it, list)]
            waiting += [one for it in values.values() if isinstance(it, list) for one in it]
            waiting += [*(values.get("_modules") or {}).values()]


def _side(size: object) -> int | None:
    size = size[0] if isinstance(size, list | tuple) and len(size) == 1 else size
    return size if isinstance(size, int) else None


def _opened_as_they_are(dataset: Any) -> Iterator[str]:
    """What to write for each image that the set's file opens, where nothing there converts one."""
    try:
        file = inspect.getsourcefile(type(dataset)) or ""
    except TypeError:  # of Python's own
        return
    nodes = [*nodes_in_file(file)] if is_users(file) else []
    if any(isinstance(it, ast.Attribute) and it.attr == "convert" for it in nodes):
        return
    own = [it for it in nodes if isinstance(it, ast.ClassDef) and it.name == type(dataset).__name__]
    first = [call for it in own for call in ast.walk(it)]
    for call in (it for it in (*first, *nodes) if isinstance(it, ast.Call)):
        name, whole = ast.unparse(call.func), ast.unparse(call)
        place = f"({shown_file(file)}:{call.lineno})"
        gives = f"{whole} gives as many channels as the file has: write"
        if name.endswith("Image.open"):
            yield f'{gives} {whole}.convert("RGB") {place}'
        elif name.rpartition(".")[2] == "read_image" and len(call.args) + len(call.keywords) == 1:
            yield f"{gives} {whole[:-1]}, mode='RGB') {place}"
