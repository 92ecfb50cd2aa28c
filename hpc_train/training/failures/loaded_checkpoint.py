"""A checkpoint that a line of the user's loads, and that does not do: what to write there."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from hpc_train.runs.checkpoints import MODEL_FILE, checkpoint_folders
from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.private.lightning_frames import in_load

_MISSING = re.compile(r"__init__\(\) missing \d+ required ")
_QUOTED = re.compile(r"'(\w+)'")
_UNFIT = "in loading state_dict for"
_SAVED = "hyper_parameters"  # LightningModule.CHECKPOINT_HYPER_PARAMS_KEY
_SAVES = "save_hyperparameters"


def loaded_checkpoint(error: BaseException) -> str:
    """What to write; empty where the error is of anything else."""
    if isinstance(error, IsADirectoryError):
        return _of_folder(error.filename)
    frame = _loading(error) if isinstance(error, TypeError | RuntimeError) else None
    kind = frame.f_locals.get("cls") if frame else None
    if frame is None or not isinstance(kind, type):
        return ""
    said = str(error)
    if isinstance(error, TypeError) and _MISSING.search(said):
        return _of_missing(kind, frame, _QUOTED.findall(said.partition("missing")[2]))
    takes = [it for it in inspect.signature(kind).parameters if it not in ("args", "kwargs")]
    given = frame.f_locals.get("cls_kwargs_new") or {}
    if _UNFIT in said and takes and not given and not _saved(frame):
        return f"{_holds_none(kind)}: give those that it was trained with, {_call(kind, takes)}"
    return ""


def _of_folder(folder: Any) -> str:
    """Of hpc-train's own checkpoint, or the run that has it, the file that Lightning loads."""
    if not isinstance(folder, str):
        return ""
    path = Path(folder)
    if (path / MODEL_FILE).is_file():
        file = shown_file(str(path / MODEL_FILE))
        return f"that is the folder of a checkpoint: write its file, {file}"
    newest = [*checkpoint_folders(path), *checkpoint_folders(path / "checkpoints")]
    found = next((it / MODEL_FILE for _, it in newest if (it / MODEL_FILE).is_file()), None)
    return f"of the newest checkpoint in it the file is {shown_file(str(found))}" if found else ""


def _loading(error: BaseException) -> FrameType | None:
    """Lightning's frame that makes the object of a checkpoint."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if in_load(frame.f_code.co_filename, frame.f_code.co_name):
            return frame
    return None


def _saved(frame: FrameType) -> list[str]:
    """The arguments that the checkpoint holds, without those that the call has given."""
    checkpoint, given = (frame.f_locals.get(it) for it in ("checkpoint", "cls_kwargs_new"))
    held = checkpoint.get(_SAVED) if isinstance(checkpoint, Mapping) else None
    names = [str(it) for it in held] if isinstance(held, Mapping) else []
    return [it for it in names if not isinstance(given, Mapping) or it not in given]


def _of_missing(kind: type, frame: FrameType, missing: list[str]) -> str:
    if saved := _saved(frame):
        return f"the checkpoint holds {', '.join(saved)} alone: write {_call(kind, missing)}"
    anew = f"or self.{_SAVES}() in {kind.__name__}.__init__, and train again"
    return f"{_holds_none(kind)}: write {_call(kind, missing)}, {anew}"


def _holds_none(kind: type) -> str:
    return f"the checkpoint holds no arguments of {kind.__name__}"


def _call(kind: type, names: list[str]) -> str:
    given = ", ".join(f"{it}=..." for it in names)
    return f"{kind.__name__}.load_from_checkpoint(PATH, {given})"
