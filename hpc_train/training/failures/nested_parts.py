"""Parts of a batch that are groups themselves, as two views of each image beside its label.

torch's default_collate keeps the structure of a sample: `(v1, v2), label` gives a list of two
tensors, and the labels (torch/utils/data/_utils/collate.py, `default_collate`).
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import nodes_of
from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of

_WHOLE = re.compile(
    r"must be (?:a )?Tensors?, not (?:list|tuple)\b"
    r"|combination of arguments - got \((?:list|tuple),|'(?:list|tuple)' object has no attribute"
)
_LABELS = re.compile(r"y|ys|y_\w+|labels?|targets?|class(?:es)?|gt|truth", re.IGNORECASE)
_MOST = 4  # parts, of a batch and of a part, that are looked at


def told_of_part(part: object) -> str:
    """A part by its shape, or by its kind and what is in it."""
    shape = shape_of(part)
    if shape is not None:
        return f"a tensor of shape {list(shape)}"
    if counted := tensors_in(part):
        return f"a {type(part).__name__} of {counted} tensors"
    return type(part).__name__


def tensors_in(part: Any) -> int:
    """How many a group of several tensors has; 0 of anything else."""
    is_group = type(part) in (list, tuple) and 1 < len(part) <= _MOST
    return len(part) if is_group and all(shape_of(it) is not None for it in part) else 0


def nested_names(value: Sequence[Any], names: Sequence[str]) -> str:
    """`(v1, v2), y` where the names fit parts and the parts of groups in one way; else empty."""
    groups = [number for number, it in enumerate(value) if tensors_in(it)]
    fit = []
    for count in range(1, len(groups) + 1):
        for chosen in itertools.combinations(groups, count):
            sizes = [tensors_in(it) if at in chosen else 1 for at, it in enumerate(value)]
            fit += [sizes] if sum(sizes) == len(names) else []
    if len(fit) != 1:
        return ""
    rest = iter(names)
    parts = [", ".join(itertools.islice(rest, size)) for size in fit[0]]
    return ", ".join(f"({it})" if size > 1 else it for it, size in zip(parts, fit[0], strict=True))


def group_for_tensor(error: BaseException) -> str:
    """What to write where a layer is given such a group; empty of anything else."""
    if not isinstance(error, TypeError | AttributeError) or not _WHOLE.search(str(error)):
        return ""
    frame, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call)]
    given = [it.id for call in calls for it in call.args if isinstance(it, ast.Name)]
    if frame is None:
        return ""
    told = {_of_name(it, frame) for it in given if tensors_in(frame.f_locals.get(it))} - {""}
    return told.pop() if len(told) == 1 else ""


def _of_name(name: str, frame: FrameType) -> str:
    """Of a name that the function took from a batch: how to take its parts."""
    group = frame.f_locals[name]
    said = f"{name} is {told_of_part(group)}"
    for node in nodes_of(frame):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Tuple):
            continue
        names, batch = [*map(ast.unparse, target.elts)], value_of(node.value, frame)
        if name not in names or type(batch) not in (list, tuple) or len(batch) != len(names):
            continue
        at = names.index(name)
        if batch[at] is not group:
            continue
        others = [it for number, it in enumerate(names) if number != at]
        parts = [f"{name}{number}" for number in range(1, len(group) + 1)]
        if len(names) == len(group) and not any(map(_LABELS.fullmatch, others)):
            parts, names = names, ["_"] * len(names)  # the names were meant for its parts
        written = [*names[:at], f"({', '.join(parts)})", *names[at + 1 :]]
        return f"{said}: write {', '.join(written)} = {ast.unparse(node.value)}"
    return ""
