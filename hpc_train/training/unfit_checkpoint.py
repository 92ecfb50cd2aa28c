"""A run's checkpoint that no longer fits its model: what of torch's long error is to be said.

The model's arguments are fixed within a run (`backends.replan`), so that its code has changed.
"""

from __future__ import annotations

import re
import traceback

from hpc_train.training.private.lightning_frames import in_restore

_SIZE = r"(?:torch\.Size\()?(\[[\d, ]*\])\)?"
# torch/nn/modules/module.py, `_load_from_state_dict` and `load_state_dict`.
_SHAPE = re.compile(
    rf"size mismatch for ([\w.]+): copying a param with shape {_SIZE} from checkpoint,"
    rf" *the shape in current model is {_SIZE}"
)
_KEYS = re.compile(r"(Missing|Unexpected) key\(s\) in state_dict: ([^\n]+)")
_NAME = re.compile(r'"([^"]+)"')
FIX = (
    "bring the model's code back as it was (hpc-train diff RUN names what differs), and hpc-train"
    " resume RUN; another model is a run of its own: hpc-train submit"
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
    return f"the checkpoint does not fit the model: {wrong[0]}{more}"
