"""A label beyond all classes that marks what has none, as 255 at the borders of a mask.

"ignore_index: Specifies a target value that is ignored and does not contribute to the input
gradient" (torch's manual, torch.nn.CrossEntropyLoss). In PASCAL VOC's masks the void pixels are
255 (its development kit, "Segmentation"), as are those of Cityscapes that are not evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_values import failing_line, value_of
from hpc_train.training.failures.layers import owners
from hpc_train.training.failures.unset_attributes import set_in

_VOID = 255
_FAR = 50  # so many numbers without a label between the classes and it
_LOSSES = ("CrossEntropyLoss", "NLLLoss")
_LONGEST = 100  # characters of a call that is written anew


def is_ignored(labels: Any, classes: int) -> int | None:
    """The one label out of range where it is no class that was forgotten; else None.

    Args:
        labels: Those of a batch that count, on the CPU.
        classes: As many as the logits have.
    """
    beyond = labels[(labels < 0) | (labels >= classes)].unique().tolist()
    inside = labels[(labels >= 0) & (labels < classes)]
    if len(beyond) != 1 or not inside.numel():
        return None
    (label,), largest = map(int, beyond), int(inside.max())
    if label < 0:  # where the last class is not there, the labels may begin at -1
        return label if largest == classes - 1 and int(inside.min()) == 0 else None
    return label if label == _VOID or label - largest > _FAR else None


def is_of_image(labels: Any) -> bool:
    """Whether they are the two values of a mask that was kept as a black-and-white image."""
    return [*map(int, labels.unique().tolist())] == [0, _VOID]


def given_labels(error: BaseException, labels: Any) -> str:
    """What the failed line calls them; `y` where it does not tell."""
    frame, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and len(it.args) > 1]
    named = [it.args[1] for it in calls if frame and value_of(it.args[1], frame) is labels]
    return ast.unparse(named[0]) if named else "y"


def with_ignored(label: int, error: BaseException, frames: Sequence[FrameType]) -> str:
    """What to write for the loss that is to leave this label out."""
    word = f"ignore_index={label}"
    for frame in reversed(frames):
        loss = frame.f_locals.get("self")
        kind = type(loss).__name__
        if kind in _LOSSES and type(loss).__module__.startswith("torch.nn."):
            name, place = _held(loss, frames)
            at = f" ({place})" if place else ""
            if name and _is_plain(loss):
                return f"write {name} = nn.{kind}({word}){at}"
            return f"add {word} to the nn.{kind}{f' of {name}' if name else ''}{at}"
    _, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and _is_of_loss(it)]
    written = ast.unparse(calls[0])[:-1] if len(calls) == 1 else ""
    if written and len(written) < _LONGEST:
        return f"write {written}, {word})"
    return f"add {word} to the loss"


def _held(loss: Any, frames: Sequence[FrameType]) -> tuple[str, str]:
    """`self.criterion`, and the line that sets it."""
    for owner in owners(frames):
        for path, module in owner.named_modules():
            if module is loss and path.isidentifier():
                return f"self.{path}", set_in(type(owner), path)
    return "", ""


def _is_plain(loss: Any) -> bool:
    """Whether it is made without arguments."""
    smoothing = getattr(loss, "label_smoothing", 0.0)
    return loss.weight is None and loss.reduction == "mean" and not smoothing


def _is_of_loss(call: ast.Call) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2]
    return name in ("cross_entropy", "nll_loss") and "ignore_index" not in ast.unparse(call)
