"""Objects and loggers as a config writes them, made of what somebody wrote: for a refusal."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hpc_train.config.meant_words.logger_forms import CLASSES, OWN_LOGGERS, PACKAGES
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.python_text.meant_class import class_of_project, meant_class, plain_path
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET, is_object, meant_by
from hpc_train.config.words import near_words

LONGEST = 240  # of a line


def flow(value: Any) -> str:
    """A value as YAML in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**9)
    return text.removesuffix("\n").removesuffix("\n...")


def whole_form(spec: Mapping[str, Any], wanted: str) -> str:
    """`{class_path: nets.Net, init_args: {lr: 0.1}}` of `{name: resnet18, lr: 0.1}`.

    Args:
        spec: A mapping that names no class.
        wanted: Name of the class that it has to derive from.
    """
    named = next((it for it in spec if meant_by(it, spec[it]) == CLASS_PATH), "")
    arguments: dict[str, Any] = {}
    for name, value in spec.items():
        if meant_by(name, value) == INIT_ARGS:
            arguments.update(value)
        elif name != named:
            arguments[name] = value
    form = {CLASS_PATH: _class(str(spec.get(named, "")), wanted)}
    text = flow({**form, INIT_ARGS: arguments} if arguments else form)
    return text if len(text) < LONGEST else f"{flow(form)[:-1]}, init_args: {{...}}}}"


def _class(written: str, wanted: str) -> str:
    if wanted == "Logger" and written in CLASSES:
        return of_project(CLASSES[written])
    path = plain_path(written)
    if "." in path:
        return path
    near = re.search(r"[\w.]+\.\w+", meant_class(path, wanted=wanted)) if path else None
    if near and not _is_base(near[0], wanted):
        return near[0]
    if wanted == "Callback":
        return of_project("pytorch_lightning.callbacks.EarlyStopping")
    own = class_of_project([str(Path.cwd()), *sys.path], wanted)
    is_own = own and not _is_base(own, wanted)
    return own if is_own else f"my_package.My{wanted.removeprefix('Lightning') or 'Class'}"


def _is_base(path: str, wanted: str) -> bool:
    """Whether it is Lightning's bare base, which trains nothing."""
    return path.rpartition(".")[2] == wanted


def objects_by_name(value: Any) -> list[Any]:
    """Objects that stand each below a name of its own, as Hydra has it; none of another value."""
    objects = [it for it in value.values() if it is not None] if isinstance(value, Mapping) else []
    return objects if all(map(is_object, objects)) else []


def refuse_names(key: str, value: Mapping[str, Any], origins: Origins) -> None:
    """Refuse such objects in a list's place.

    Raises:
        ConfigError: with the list to write.
    """
    if objects := objects_by_name(value):
        said = f"has names for its objects: {', '.join(map(str, value))}"
        raise origins.error(key, said, f"write {key.rpartition('.')[2]}: {flow(objects)}")


def loggers_for(value: Any) -> list[Any]:
    """What `loggers` has to be for what somebody gave as the Trainer's `logger`."""
    if value is None or value is False or str(value).lower() in ("none", "false", "null", ""):
        return []
    if value is True or str(value).lower() == "true":
        return [*OWN_LOGGERS]
    if isinstance(value, list):
        return [logger for it in value for logger in loggers_for(it)]
    if objects := objects_by_name(value):
        return [*map(_logger, objects)]
    if isinstance(value, Mapping) and value and all(logger_of_word(str(it)) for it in value):
        return [_of_word(logger_of_word(str(it)), below) for it, below in value.items()]
    return [_logger(value)]


def logger_of_word(name: str) -> str:
    """Our word for a logger that is named by it, or by its class; empty for any other name."""
    lower = name.rpartition(".")[2].lower()
    same = {it: (it, CLASSES[it].rpartition(".")[2].lower()) for it in CLASSES}
    return next((it for it in same if lower in same[it]), "")


def _of_word(word: str, below: Any) -> Any:
    """`wandb: {project: x}` as the class with its arguments; a word without them stays one."""
    if not isinstance(below, Mapping) or not below:
        return word
    arguments = below.get(INIT_ARGS)
    arguments = arguments if isinstance(arguments, Mapping) else below
    return {CLASS_PATH: of_project(CLASSES[word]), INIT_ARGS: {**arguments}}


def logger_hint(asked: Any, *, typed: bool) -> str:
    """What to write for the Trainer's `logger`, with what it was to be.

    Args:
        typed: Whether it stands on the command line.
    """
    meant = loggers_for(asked)
    nears = {it: _near_logger(it) for it in meant if isinstance(it, str)}
    said = "".join(f"did you mean {near!r}? " for near, _ in filter(None, nears.values()))
    wanted = flow([near[1] if isinstance(it, str) and (near := nears[it]) else it for it in meant])
    if not typed:
        return f"{said}write loggers: {wanted} at the top, beside trainer"
    is_plain = re.fullmatch(r"\[[\w, ]*\]", wanted)
    return f"{said}write loggers={wanted.replace(' ', '') if is_plain else shlex.quote(wanted)}"


def _near_logger(word: str) -> tuple[str, str] | None:
    """What a misspelled logger may be meant to be, as it was written, and its word here."""
    name = word.rpartition(".")[2]
    names = {it: it for it in CLASSES} | {CLASSES[it].rpartition(".")[2]: it for it in CLASSES}
    if word in CLASSES or name in PACKAGES:
        return None
    near = near_words(name, names, cutoff=0.8)
    return (near[0], names[near[0]]) if near else None


def _logger(value: Any) -> Any:
    if isinstance(value, Mapping) and not is_object(value):
        value = yaml.safe_load(whole_form(value, "Logger"))
    dotted = value.get(CLASS_PATH) or value.get(TARGET) if isinstance(value, Mapping) else value
    word = logger_of_word(str(dotted).partition("(")[0])
    of_hydra = re.compile(r"\$\{\s*(?:paths\.|hydra:)")
    own = value.get(INIT_ARGS) if isinstance(value, Mapping) else None
    has_own = own and not of_hydra.search(str(own))
    if (word in OWN_LOGGERS and not has_own) or (word and not isinstance(value, Mapping)):
        return word
    if not isinstance(value, Mapping) or TARGET not in value:
        return value
    # Folders of Hydra's are not there; a run's own is given.
    return {it: known for it, known in value.items() if not of_hydra.search(str(known))}
