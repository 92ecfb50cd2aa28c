"""Names that were meant, where an attribute or a metric is asked for that there is not."""

from __future__ import annotations

import argparse
import inspect
import linecache
import re
import sys
import traceback
from types import FrameType, ModuleType
from typing import Any

from hpc_train.config.fit.near_metrics import near_metrics
from hpc_train.config.fit.trainer_lists import OF_SEVERAL
from hpc_train.config.meant_words.moved_names import moved_import
from hpc_train.config.python_text.undefined_names import fix_in_notebook, import_of
from hpc_train.config.scripts.parsed_names import instead_of
from hpc_train.config.scripts.script_trainer_calls import MEANT_METHODS
from hpc_train.config.words import did_you_mean
from hpc_train.training.failures.unset_attributes import where_set
from hpc_train.training.private.logged_names import logged_names

# What ModelCheckpoint, EarlyStopping and schedules say where nothing has logged what they wait for.
_WAITS = re.compile(
    r"(?s)`ModelCheckpoint\(monitor='(?P<metric>[^']+)'\)` could not find .*?: (?P<logged>\[.*?\])"
    r"|Early stopping conditioned on metric `(?P<stops>[^`]+)` .*?any of the following: (?P<of>.*)"
    r"|conditioned on metric (?P<lowers>\S+) which is not .*? metrics are: (?P<at>\[.*?\])"
)
_NAMES = re.compile(r"['`](?!(?:epoch|step)['`])([^'`]+)['`]")
_LOGGED = "callback_metrics["
# Of a Trainer and a LightningModule, where many names hold the word that one thinks of first.
_OF_LIGHTNING = {
    "epoch": "current_epoch",
    "step": "global_step",
    "rank": "global_rank",
    "module": "lightning_module",
}
_OF_MODULE = {
    "optimizer": "optimizers()",
    **dict.fromkeys(("scheduler", "lr_scheduler"), "lr_schedulers()"),
}


def near_name(error: BaseException) -> str:
    """What may have been meant; empty where nothing is near."""
    if isinstance(error, AttributeError):
        return _near_attribute(error)
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        return _near_global(error)
    if isinstance(error, KeyError):
        return _near_metric(error)
    found = _WAITS.search(str(error))
    if not found:
        return ""
    logged = _NAMES.findall(found["logged"] or found["of"] or found["at"])
    return near_metrics(found["metric"] or found["stops"] or found["lowers"], logged)


def _near_attribute(error: AttributeError) -> str:
    """By the object's own names, which Python leaves in the exception since 3.10."""
    owner, name = error.obj, error.name
    if owner is None or not name:
        return ""
    if isinstance(owner, argparse.Namespace):
        return instead_of(name, [*vars(owner)], _written(error, name) or "it")
    if sure := where_set(error) or _of_trainer(error, name) or _of_module(error, name):
        return sure
    if name.startswith("_"):
        return ""
    names = [it for it in dir(owner) if not it.startswith("_")]
    if isinstance(owner, ModuleType):
        return _near_in_module(owner.__name__, name, names)
    if _is_a_value(error, name):  # as which nobody means a method
        names = [it for it in names if not _is_method(owner, it)]
    if (meant := _OF_LIGHTNING.get(name)) in names:
        return f"did you mean {meant!r}?"
    parts = sorted(it for it in names if name in it.split("_"))
    if near := did_you_mean(name, names, cutoff=0.75):
        return near
    if len(parts) == 1:  # `epoch` of a Trainer is its current_epoch
        return f"did you mean {parts[0]!r}?"
    return did_you_mean(name, names)


def _written(error: BaseException, name: str) -> str:
    """`args` or `self.args` where the line that failed has `args.NAME` once."""
    frame, line = [*traceback.walk_tb(error.__traceback__)][-1]
    text = linecache.getline(frame.f_code.co_filename, line)
    found = re.findall(rf"([A-Za-z_][\w.]*)\.{re.escape(name)}\b", text)
    return found[0] if len(found) == 1 else ""


def _near_in_module(module: str, name: str, names: list[str]) -> str:
    """Of another version it may lack a name that others are near to."""
    alike = [it for it in names if it.lower() == name.lower()]
    moved = moved_import(module, [name], sys.path)
    return moved or (f"did you mean {alike[0]!r}?" if len(alike) == 1 else "")


def _of_trainer(error: AttributeError, name: str) -> str:
    """What to call of Lightning's Trainer, of either package, for another library's method.

    And one of its optimizers, which are a list, and of its schedules.
    """
    owner = error.obj
    if not _is_lightnings(owner, "Trainer"):
        return ""
    if name in MEANT_METHODS:
        return f"write {MEANT_METHODS[name]} in its place"
    several, first = OF_SEVERAL.get(name, ("", ""))
    held = getattr(owner, several, None) if several else None
    if not isinstance(held, list):
        return ""
    if not held:
        return f"{several}, a list, is empty there: configure_optimizers has made none so far"
    write = f"{_written(error, name) or 'trainer'}.{several}{first}"
    return f"write {write} in its place ({several} is a list of {len(held)})"


def _of_module(error: AttributeError, name: str) -> str:
    """The same of a LightningModule, where a method gives the one that there is, or a list."""
    called = _OF_MODULE.get(name, "")
    if not called or not _is_lightnings(error.obj, "LightningModule"):
        return ""
    return f"write {_written(error, name) or 'self'}.{called} in its place"


def _is_lightnings(owner: object, name: str) -> bool:
    homes, kinds = ("pytorch_lightning.", "lightning."), type(owner).__mro__
    return any(it.__name__ == name and it.__module__.startswith(homes) for it in kinds)


def _is_a_value(error: BaseException, name: str) -> bool:
    """Whether the line that asks for it surely calls nothing by that name."""
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        text = linecache.getline(frame.f_code.co_filename, line)
        if asked := re.findall(rf"\.{re.escape(name)}\b\s*(.?)", text):
            return "(" not in asked
    return False


def _is_method(owner: Any, name: str) -> bool:
    kind = owner if isinstance(owner, type) else type(owner)
    return inspect.isroutine(inspect.getattr_static(kind, name, None))


def _near_global(error: NameError) -> str:
    """The import that was forgotten, or a name that the code has where it was asked for."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not error.name or not frames:
        return ""
    names = sorted({*frames[-1].f_locals, *frames[-1].f_globals})
    forgotten = import_of(error.name)
    if forgotten:
        return f"write {forgotten} at the top of that file"
    text = "".join(linecache.getlines(frames[-1].f_code.co_filename))
    if of_notebook := fix_in_notebook(error.name, text):
        return of_notebook
    if error.name in dir(frames[-1].f_locals.get("self")):
        return f"did you mean self.{error.name}?"
    return did_you_mean(error.name, names, cutoff=0.75)


def _near_metric(error: KeyError) -> str:
    """Of `trainer.callback_metrics[...]`: the names that were logged so far."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames or not error.args or not isinstance(error.args[0], str):
        return ""
    line = traceback.extract_tb(error.__traceback__)[-1].lineno or 0
    if _LOGGED not in linecache.getline(frames[-1].f_code.co_filename, line):
        return ""
    trainer = _trainer_of(frames[-1])
    if trainer is None:
        return ""
    # Their values may be collective, so that no name is looked up.
    names = sorted(logged_names(trainer))
    near = did_you_mean(error.args[0], names)
    return f"callback_metrics has {', '.join(names)}{f': {near}' if near else ''}" if names else ""


def _trainer_of(frame: FrameType) -> Any:
    """The Trainer that a hook of a callback is given, or that a module has; None without one."""
    if (given := frame.f_locals.get("trainer")) is not None:
        return given
    try:
        return getattr(frame.f_locals.get("self"), "trainer", None)
    except RuntimeError:  # of a module that has none
        return None
