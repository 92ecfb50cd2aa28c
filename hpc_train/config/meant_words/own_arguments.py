"""Where a setting of the model or of the data belongs, by what the class of the config takes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.python_text.class_kind import locate
from hpc_train.config.python_text.classes import parameters_of
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET
from hpc_train.config.words import did_you_mean

# Names of one thing.
_SAME = (
    {"lr", "learning_rate", "max_lr", "base_lr"},
    {"data_dir", "path", "root", "folder", "data_path", "data_root"},
    {"wd", "weight_decay"},
)
_OPTIMIZERS = ("optimizer", "scheduler", "lr_scheduler")


def argument_hint(section: str, key: str, values: Mapping[str, Any]) -> str:
    """What to write for a setting that is no key: an argument of the class, where it takes one.

    Args:
        section: `model` or `data`.
        key: As it was written.
        values: The config.

    Returns:
        Nothing where the class takes nothing that is near.
    """
    class_path = class_named(section, values)
    taken = arguments_of(class_path) if class_path else None
    below = below_class(section, values)
    if taken is None or key in taken:
        return f"write it as an argument of your {section}: {below}{key}"
    same = {name for names in _SAME if key in names for name in names}
    if found := [name for name in taken if name in same]:
        return f"write {below}{found[0]}"
    if near := did_you_mean(key, taken, prefix=below, cutoff=0.75):
        return near
    if key in _OPTIMIZERS and section == "model":
        return f"your model's configure_optimizers makes the {key.removeprefix('lr_')}"
    return ""


def is_taken(section: str, key: str, values: Mapping[str, Any]) -> bool:
    """Whether the class is known to take it."""
    return key in (arguments_of(class_named(section, values)) or ())


def not_taken_hint(section: str, key: str, values: Mapping[str, Any]) -> str:
    """What to write for an argument that the class surely does not take; else empty."""
    class_path = class_named(section, values)
    taken = arguments_of(class_path) if class_path else None
    if taken is None or key in taken:
        return ""
    return argument_hint(section, key, values) or not_taken(section, key, values)


def not_taken(section: str, key: str, values: Mapping[str, Any]) -> str:
    """What is left to say of a setting that the class does not take."""
    class_path = class_named(section, values)
    takes = ", ".join(arguments_of(class_path) or ()) or "none"
    return (
        f"{class_path} takes {takes}: let it take {key}, too, and write"
        f" {below_class(section, values)}{key}"
    )


def form_of_class(class_path: str) -> str:
    """A class as a config writes it, with the arguments that it needs."""
    found = locate(class_path, [str(Path.cwd()), *sys.path])
    known = parameters_of(found.name, found.names, open_too=True) if found and found.names else None
    needed = ", ".join(f"{name}: ..." for name in known.required) if known else "..."
    return f"{{class_path: {class_path}{f', init_args: {{{needed}}}' if needed else ''}}}"


def class_named(section: str, values: Mapping[str, Any]) -> str:
    """The class of a section, as the config has it; empty for none."""
    spec = values.get(section)
    named = (spec.get(CLASS_PATH) or spec.get(TARGET)) if isinstance(spec, Mapping) else ""
    return str(named or "")


def below_class(section: str, values: Mapping[str, Any]) -> str:
    """Where its arguments stand: beside `_target_`, which takes no `init_args`, or below these."""
    spec = values.get(section)
    is_target = isinstance(spec, Mapping) and TARGET in spec
    return f"{section}." if is_target else f"{section}.{INIT_ARGS}."


def arguments_of(class_path: str, search_path: Sequence[str] | None = None) -> Sequence[str] | None:
    """The arguments of a class by its text; None where that does not tell."""
    path = [str(Path.cwd()), *sys.path] if search_path is None else search_path
    found = locate(class_path, path)
    if found is None or found.names is None:
        return None
    parameters = parameters_of(found.name, found.names)
    return None if parameters is None else parameters.names
