"""A line that takes apart what has another number of parts: what stands there."""

from __future__ import annotations

import ast
import re
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_at, shown_file
from hpc_train.training.failures.frame_values import shape_of, value_of
from hpc_train.training.failures.nested_parts import nested_names, told_of_part
from hpc_train.training.failures.samples_differ import place_of_samples
from hpc_train.training.failures.step_data import LOADERS

_UNFIT = re.compile(r"(?:too many|not enough) values to unpack|cannot unpack non-iterable")
_GIVES = {"LSTM": ("{}", "({}, {})"), "GRU": ("{}", "{}"), "RNN": ("{}", "{}")}  # torch.nn's
_NAMES = {"LSTM": ("out", "h", "c"), "GRU": ("out", "h"), "RNN": ("out", "h")}
_SPLITS = ("split", "rsplit", "splitlines")  # of a text
_SHOWN = 60  # characters of it
_MOST = 6  # parts that are told one by one


def taken_apart(error: BaseException) -> str:
    """What the value is, and what to write; empty where the line does not tell."""
    if not isinstance(error, ValueError | TypeError) or not _UNFIT.search(str(error)):
        return ""
    frames = [*traceback.walk_tb(error.__traceback__)]
    if not frames or not is_users(frames[-1][0].f_code.co_filename):
        return ""
    frame, line = frames[-1]
    told = {*_of_line(frame, line)}
    return told.pop() if len(told) == 1 else ""


def _of_line(frame: FrameType, line: int) -> Iterator[str]:
    for node in nodes_at(frame, line):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        if not isinstance(target, ast.Tuple | ast.List):
            continue
        if isinstance(node.value, ast.Call) and (said := _of_text(node.value, frame)):
            yield said
        elif isinstance(node.value, ast.Call):
            yield from filter(None, (_of_recurrent(target, node.value, frame),))
        elif (value := value_of(node.value, frame)) is not None:
            yield from filter(None, (_of_value(target, ast.unparse(node.value), value, frame),))


def _of_recurrent(target: ast.Tuple | ast.List, call: ast.Call, frame: FrameType) -> str:
    """Of a layer of torch's that surely gives two values."""
    layer = value_of(call.func, frame)
    kind = type(layer).__name__
    if kind not in _GIVES or not type(layer).__module__.startswith("torch.nn."):
        return ""
    has = [it.id for it in ast.walk(target) if isinstance(it, ast.Name)]
    wanted = _NAMES[kind]
    names = iter(has if len(has) == len(wanted) else wanted)
    gives = ", ".join(
        it.format(*(next(names) for _ in range(it.count("{}")))) for it in _GIVES[kind]
    )
    of = f"{ast.unparse(call.func)}, an nn.{kind}, gives a pair"
    return f"{of}: write {gives} = {ast.unparse(call)}"


def _of_text(call: ast.Call, frame: FrameType) -> str:
    """Of what `split` gives of a text: no batch, and as many parts as the text has."""
    text = call.func.value if isinstance(call.func, ast.Attribute) else None
    if text is None or not isinstance(call.func, ast.Attribute) or call.func.attr not in _SPLITS:
        return ""
    value, has_arguments = value_of(text, frame), bool(call.args or call.keywords)
    if isinstance(value, str) and not call.keywords:
        given = [it.value for it in call.args if isinstance(it, ast.Constant)]
        count = len(getattr(value, call.func.attr)(*given)) if len(given) == len(call.args) else 0
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
        gives = f"{count} part{'' if count == 1 else 's'}" if count else "other parts"
        return f"{ast.unparse(text)} is {shown!r} there, of which {ast.unparse(call)} makes {gives}"
    if isinstance(text, ast.Call) and not has_arguments:  # of a tensor it has some
        return f"print({ast.unparse(text)}) in front of that line tells what it splits"
    return ""


def _of_value(target: ast.Tuple | ast.List, name: str, value: object, frame: FrameType) -> str:
    names = target.elts
    if any(isinstance(it, ast.Starred) for it in names):
        return ""
    if (shape := shape_of(value)) is not None:
        return _of_tensor(name, shape, names, frame) if shape and shape[0] != len(names) else ""
    if type(value) not in (list, tuple) or not isinstance(value, list | tuple):
        return ""
    if len(value) == len(names):
        inner = (
            _of_value(it, f"{name}[{number}]", value[number], frame)
            for number, it in enumerate(names)
            if isinstance(it, ast.Tuple | ast.List)
        )
        return next(filter(None, inner), "")
    return _of_parts(name, value, names)


def _of_tensor(
    name: str, shape: tuple[int, ...], names: Sequence[ast.expr], frame: FrameType
) -> str:
    said = f"{name} is one tensor of shape {list(shape)}"
    given = frame.f_code.co_varnames[1 : frame.f_code.co_argcount]
    if frame.f_code.co_name not in LOADERS or given[:1] != (name,):
        return f"{said}, and no {'pair' if len(names) == 2 else 'group'}"
    pair, first = ", ".join(map(ast.unparse, names)), ast.unparse(names[0])
    data = _data_of(frame)
    if (whole := shape_of(data)) is not None:
        as_one = f"as the data set is a tensor of shape {list(whole)}"
        return f"{said}, {as_one}: write {first} = {name}, or TensorDataset({pair}) for the data"
    place = place_of_samples(data)
    if place and place.of.endswith(".__getitem__"):
        file, _, line = place.where.rpartition(":")
        given_by = f"as {place.of} ({shown_file(file)}:{line}) gives one"
        return f"{said}, {given_by}: write {first} = {name}, or return {pair} there"
    if type(data).__name__ == "TensorDataset":
        return f"{said}: write {first} = {name}"
    return f"{said}: write {first} = {name}, or have the data set give {pair}"


def _data_of(frame: FrameType) -> Any:
    """The data set that a step's batch comes from, where its loader makes a batch as torch does."""
    trainer = getattr(frame.f_locals.get("self"), "__dict__", {}).get("_trainer")
    loader = getattr(trainer, LOADERS[frame.f_code.co_name], None)
    if isinstance(loader, list | tuple) and len(loader) == 1:
        loader = loader[0]
    made_by = getattr(getattr(loader, "collate_fn", None), "__name__", "")
    return getattr(loader, "dataset", None) if made_by == "default_collate" else None


def _of_parts(name: str, value: Sequence[Any], names: Sequence[ast.expr]) -> str:
    has, wants = len(value), len(names)
    kind = type(value).__name__
    said = f"{name} is a {kind} of {has} part{'' if has == 1 else 's'}"
    if not has or has > _MOST:
        return f"{said} there"
    said += f" ({', '.join(map(told_of_part, value))})"
    plain = [it.id for it in names if isinstance(it, ast.Name)]
    nested = nested_names(value, plain) if len(plain) == wants else ""
    if nested:
        # A group alone is taken out of what holds it.
        write = f"{nested.strip('()')} = {name}[0]" if has == 1 else f"{nested} = {name}"
        return f"{said}: write {write}"
    if has == 1:
        return f"{said}: write {ast.unparse(names[0])} = {name}[0]"
    written = [*map(ast.unparse, names[:has]), *(["_"] * (has - wants))]
    return f"{said}: write {', '.join(written)} = {name}"
