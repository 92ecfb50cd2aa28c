"""A loss whose input and target torch broadcasts to more numbers than either has.

torch warns of it in a line of the log and computes on, with values of different samples compared.
What the warning filters of the user hide is not told here either.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from types import FrameType
from typing import TextIO

from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.failures.frame_text import is_users, nodes_at, shown_file
from hpc_train.training.failures.squeezed_loss import Given, squeeze

# torch/nn/functional.py, of mse_loss, l1_loss, smooth_l1_loss and huber_loss alike.
_SIZES = re.compile(
    r"Using a target size \(torch\.Size\(\[(?P<target>[\d, ]*)\]\)\) that is different to the input"
    r" size \(torch\.Size\(\[(?P<input>[\d, ]*)\]\)\)"
)
_FUNCTIONS = os.path.join("torch", "nn", "functional.py")  # noqa: PTH118 - a part of a path


@contextmanager
def broadcasts_noted(attempt: AttemptDir) -> Iterator[None]:
    """Leave a note for each line of the user's that torch warns of, and show the warning as ever.

    Not in processes that are forked off this one.
    """
    show, process = warnings.showwarning, os.getpid()
    told: set[str] = set()

    def show_and_note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if os.getpid() == process and (found := _SIZES.match(str(message))):
            _note(attempt, told, _shape(found["input"]), _shape(found["target"]))
        show(message, category, filename, lineno, file, line)

    warnings.showwarning = show_and_note
    try:
        yield
    finally:
        if warnings.showwarning is show_and_note:
            warnings.showwarning = show


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(it) for it in re.findall(r"\d+", text))


def _note(
    attempt: AttemptDir, told: set[str], has: tuple[int, ...], wants: tuple[int, ...]
) -> None:
    both = _broadcast(has, wants)
    if math.prod(both) <= max(math.prod(has), math.prod(wants)):  # as of one number for all samples
        return
    frames = list(traceback.walk_stack(inspect.currentframe()))  # from the innermost on
    while frames and not frames[0][0].f_code.co_filename.endswith(_FUNCTIONS):
        del frames[0]
    if not frames:
        return
    function, (frame, line) = frames[0][0].f_code.co_name, _users(frames)
    what = f"{function} ({shown_file(frame.f_code.co_filename)}:{line}) "
    if what in told or any(note.startswith(what) for note in read_notes(attempt)):
        return
    told.add(what)
    given = f"is given an input of shape {list(has)} and a target of {list(wants)}"
    to = f"which torch broadcasts to {list(both)}: values of different samples are compared"
    try:
        fix = squeeze(Given(function, has, wants), frame, [*nodes_at(frame, line)])
    except Exception:  # noqa: BLE001 - a value of the user's may not let itself be read
        fix = ""
    leave_note(attempt, f"{what}{given}, {to}{'; ' if fix else ''}{fix}")


def _broadcast(has: Sequence[int], wants: Sequence[int]) -> list[int]:
    """What torch makes of both; of no elements where it cannot, and raises."""
    pairs = [*zip_longest(reversed(has), reversed(wants), fillvalue=1)][::-1]
    if any(one != other and 1 not in (one, other) for one, other in pairs):
        return [0]
    return [other if one == 1 else one for one, other in pairs]


def _users(frames: Sequence[tuple[FrameType, int]]) -> tuple[FrameType, int]:
    """The innermost line of the user's, else that which calls torch."""
    users = (it for it in frames if is_users(it[0].f_code.co_filename))
    return next(users, frames[min(1, len(frames) - 1)])
