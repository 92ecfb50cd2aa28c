"""Class numbers that are no Long: what to write in each step, or once where the data is made.

torch refuses them in one step after the other, so that each is named that takes them alike.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of
from hpc_train.training.failures.layers import frames_of, owners
from hpc_train.training.failures.step_data import line_of_tensors, shown_source
from hpc_train.training.failures.users_method import lines_of, own_method, parsed

_SAID = re.compile(
    r"expected target dtype to be Long or Byte, but got |expected scalar type Long but found "
    r"|\"(?:nll_loss|cross_entropy)\w*\" not implemented for '"
)
STEPS = ("training_step", "validation_step", "test_step", "predict_step")
_MOST = 2**53  # above it a Double has no longer each whole number


def float_labels(error: BaseException) -> str:
    """What to write; empty where they are no whole numbers, or the error is of something else."""
    if not isinstance(error, RuntimeError | NotImplementedError) or not _SAID.search(str(error)):
        return ""
    frames = frames_of(error)
    labels: Any = frames[-1].f_locals.get("target") if frames else None
    numbers = whole_numbers(labels)
    call, frame = _call_of(error)
    given = _labels_of(call) if call else None
    if not numbers or call is None or given is None or frame is None:
        return ""
    known = value_of(given, frame)
    if known is not None and known is not labels:  # the line's own function made others of them
        return ""
    kind = str(labels.dtype).removeprefix("torch.")
    said = f"{ast.unparse(given)} is {kind} {list(labels.shape)} with {numbers}"
    places = _places(call, given, frame, error)
    at = " and ".join(dict.fromkeys(places))
    return f"{said}: write {_as_long(given)} in {at}{in_data(frames, labels, '.long()')}"


def whole_numbers(labels: Any) -> str:
    """`the whole numbers 0 to 3`; empty of others, and of those that a GPU has, for no wait."""
    device = getattr(getattr(labels, "device", None), "type", "")
    if device != "cpu" or not shape_of(labels) or not labels.numel() or labels.is_complex():
        return ""
    numbers = labels.double()
    if not bool((numbers == numbers.round()).all()) or float(numbers.abs().max()) > _MOST:
        return ""
    return f"the whole numbers {int(numbers.min())} to {int(numbers.max())}"


def _call_of(error: BaseException) -> tuple[ast.Call | None, FrameType | None]:
    """The one call of the user's line that takes logits and labels."""
    frame, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and _is_loss(it)]
    return (calls[0], frame) if len(calls) == 1 else (None, None)


def _is_loss(call: ast.Call) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2].lower().replace("_", "")
    return _labels_of(call) is not None and any(
        it in name for it in ("crossentropy", "nll", "loss", "criterion", "ce")
    )


def _labels_of(call: ast.Call) -> ast.expr | None:
    named = [it.value for it in call.keywords if it.arg == "target"]
    if named:
        return named[0]
    return call.args[1] if len(call.args) > 1 and not _is_starred(call) else None


def _is_starred(call: ast.Call) -> bool:
    return any(isinstance(it, ast.Starred) for it in call.args[:2])


def _as_long(given: ast.expr) -> str:
    written = ast.unparse(given)
    is_plain = isinstance(given, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    return f"{written if is_plain else f'({written})'}.long()"


def _places(
    call: ast.Call, given: ast.expr, frame: FrameType, error: BaseException
) -> Iterator[str]:
    """The failed line, and those of the model's other steps that take the same labels alike."""
    file = shown_file(frame.f_code.co_filename)
    yield f"{file}:{call.lineno}"
    if frame.f_code.co_name not in STEPS:
        return
    owner = next(owners(frames_of(error)), None)
    here = _bound(parsed(lines_of(own_method(owner, frame.f_code.co_name))[0]), given)
    for step in STEPS if here else ():
        method = own_method(owner, step)
        lines, first = lines_of(method)
        node = parsed(lines)
        if node is None or step == frame.f_code.co_name or _bound(node, given) != here:
            continue
        for it in ast.walk(node):
            if isinstance(it, ast.Call) and ast.unparse(it.func) == ast.unparse(call.func):
                other = _labels_of(it)
                if other is not None and ast.unparse(other) == ast.unparse(given):
                    yield f"{shown_file(method.__code__.co_filename)}:{first + it.lineno - 1}"


def _bound(method: ast.FunctionDef | None, given: ast.expr) -> list[str]:
    """What a step binds the labels' name to, as `x, y = batch`; its argument, of `batch[1]`."""
    name = ast.unparse(given).partition(".")[0].partition("[")[0]
    if method is None or not name.isidentifier():
        return []
    bound = [
        ast.unparse(it)
        for it in ast.walk(method)
        if isinstance(it, ast.Assign)
        and any(isinstance(part, ast.Name) and part.id == name for part in _targets(it))
    ]
    taken = [it.arg for it in method.args.args if it.arg == name]
    return bound or taken


def _targets(node: ast.Assign) -> Iterator[ast.AST]:
    for target in node.targets:
        yield from ast.walk(target)


def in_data(frames: Sequence[FrameType], labels: Any, change: str) -> str:
    """Where to change the labels once; empty where the text does not surely tell it."""
    if source := shown_source(frames):
        form = "int(...) or .long()" if change == ".long()" else change.replace("(1)", "(0)")
        return f", or once in the data set: {form} of the label in {source}"
    place, name = line_of_tensors(frames, labels)
    return f", or once in the data: {name} = {name}{change} in front of {place}" if place else ""
