"""A run's checkpoint that no longer fits its model: what of torch's long error is to be said.

The model's arguments are fixed within a run (`backends.replan`), so that its code has changed.
"""

from __future__ import annotations

import itertools
import re
import traceback
from collections.abc import Iterable, Sequence

from hpc_train.training.private.lightning_frames import in_restore

_SIZE = r"(?:torch\.Size\()?(\[[\d, ]*\])\)?"
# torch/nn/modules/module.py, `_load_from_state_dict` and `load_state_dict`.
_SHAPE = re.compile(
    rf"size mismatch for ([\w.]+): copying a param with shape {_SIZE} from checkpoint,"
    rf" *the shape in current model is {_SIZE}"
)
_KEYS = re.compile(r"(Missing|Unexpected) key\(s\) in state_dict: ([^\n]+)")
DOES_NOT_FIT = "the checkpoint does not fit the model"
_NAME = re.compile(r'"([^"]+)"')
ANOTHER_MODEL = "another model is a run of its own: hpc-train submit"
FIX = (
    "bring the model's code back as it was (hpc-train diff RUN names what differs), and hpc-train"
    f" resume RUN; {ANOTHER_MODEL}"
)


def unfit_checkpoint(error: BaseException) -> str:
    """The first parameter that does not fit, with both shapes; empty for any other error.

    Weights that the user's own code loads are none of the run's: their error is left as it is.
    """
    text = str(error)
    if not isinstance(error, RuntimeError) or "in loading state_dict for" not in text:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    if not any(in_restore(frame.filename, frame.name) for frame in frames):
        return ""
    if renamed := _renamed(text):
        return f"{DOES_NOT_FIT}: {renamed}"
    wrong = [
        f"{name} has the shape {saved} in the checkpoint and {now} in the model"
        for name, saved, now in _SHAPE.findall(text)
    ]
    for kind, names in _KEYS.findall(text):
        has = "is not in the checkpoint" if kind == "Missing" else "is not in the model"
        wrong += [f"{name} {has}" for name in _NAME.findall(names)]
    if not wrong:
        return ""
    more = f", and {len(wrong) - 1} more do not fit" if wrong[1:] else ""
    return f"{DOES_NOT_FIT}: {wrong[0]}{more}"


def _renamed(text: str) -> str:
    """`it has body.*, and the model net.*`, where nothing but such names differs; else empty."""
    if _SHAPE.search(text):
        return ""
    names = {kind: _NAME.findall(found) for kind, found in _KEYS.findall(text)}
    saved, now = names.get("Unexpected", []), names.get("Missing", [])
    if len(saved) != len(now) or not saved:
        return ""
    above = _shared([name.split(".")[:-1] for name in (*saved, *now)])
    old, new = (_by_first(them, above) for them in (saved, now))
    pairs = dict(zip(old, new, strict=False))
    if list(old.values()) != list(new.values()):
        return ""
    return f"it has {_listed(pairs)}, and the model {_listed(pairs.values())}"


def _shared(names: Sequence[Sequence[str]]) -> int:
    """How many parts at the beginning all names have alike."""
    alike = (len(set(parts)) == 1 for parts in zip(*names, strict=False))
    return sum(1 for _ in itertools.takewhile(bool, alike))


def _by_first(names: Sequence[str], above: int) -> dict[str, list[str]]:
    """What stands below the first part of a name that differs, by the parts up to there."""
    below: dict[str, list[str]] = {}
    for name in names:
        parts = name.split(".")
        below.setdefault(".".join(parts[: above + 1]), []).append(".".join(parts[above + 1 :]))
    return below


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{name}.*" for name in names)
