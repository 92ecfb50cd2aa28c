"""`class_path`/`init_args` as Lightning's CLI writes it, and `_target_` as Hydra does: one form."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.config.words import did_you_mean

CLASS_PATH = "class_path"
INIT_ARGS = "init_args"
TARGET = "_target_"


def is_object(value: object) -> bool:
    """Whether a value names a class in either form."""
    return isinstance(value, Mapping) and (CLASS_PATH in value or TARGET in value)


def read_object(
    spec: Mapping[str, Any], key: str, origins: Origins = NOWHERE
) -> tuple[str, dict[str, Any]]:
    """Class path and keyword arguments; what is nested in the arguments is put in one form too.

    Raises:
        ConfigError: when neither form is there, or both are mixed.
    """
    if TARGET in spec:
        return _read_target(spec, key, origins)
    strangers = [name for name in spec if name not in (CLASS_PATH, INIT_ARGS)]
    if CLASS_PATH not in spec:
        slip = did_you_mean(CLASS_PATH, strangers) and f"write {CLASS_PATH} for '{strangers[0]}'"
        example = f"write {key}: {{class_path: my_package.MyClass, init_args: {{...}}}}"
        raise origins.error(key, "names no class", slip or example)
    if strangers:
        from hpc_train.config.trainer_args import trainer_parameters  # on the way to an error

        of_trainer = key == "model" and strangers[0] in trainer_parameters(sys.path)
        fix = f"write trainer.{strangers[0]}" if of_trainer else f"put it under {key}.init_args"
        raise origins.error(f"{key}.{strangers[0]}", "stands beside class_path", fix)
    arguments = spec.get(INIT_ARGS)
    if arguments is not None and not isinstance(arguments, Mapping):
        raise origins.error(f"{key}.init_args", f"is {arguments!r}", "write name: value pairs")
    return _class_name(spec[CLASS_PATH], f"{key}.{CLASS_PATH}", origins), {
        name: read_tree(value, f"{key}.{INIT_ARGS}.{name}", origins)
        for name, value in (arguments or {}).items()
    }


def read_tree(value: Any, key: str, origins: Origins = NOWHERE) -> Any:
    """A copy in which every class, however deep, is written as class_path and init_args."""
    if is_object(value):
        class_path, arguments = read_object(value, key, origins)
        return {CLASS_PATH: class_path, INIT_ARGS: arguments}
    if isinstance(value, Mapping):
        return {name: read_tree(item, f"{key}.{name}", origins) for name, item in value.items()}
    if isinstance(value, list):
        return [read_tree(item, f"{key}.{index}", origins) for index, item in enumerate(value)]
    return value


def _read_target(spec: Mapping[str, Any], key: str, origins: Origins) -> tuple[str, dict[str, Any]]:
    for name in spec:
        if name in (CLASS_PATH, INIT_ARGS):
            raise origins.error(
                f"{key}.{name}",
                "stands beside _target_",
                "keep one form: class_path with init_args, or _target_ with arguments beside it",
            )
        if name.startswith("_") and name.endswith("_") and name != TARGET:
            raise origins.error(
                f"{key}.{name}", "is not understood: of Hydra's keys only _target_ is", "remove it"
            )
    return _class_name(spec[TARGET], f"{key}.{TARGET}", origins), {
        name: read_tree(value, f"{key}.{name}", origins)
        for name, value in spec.items()
        if name != TARGET
    }


def _class_name(value: object, key: str, origins: Origins) -> str:
    words = value.split(".") if isinstance(value, str) else []
    if len(words) < 2 or not all(word.isidentifier() for word in words):
        from hpc_train.config.meant_class import meant_class, plain_path  # on the way to an error

        dotted = plain_path(str(value))
        is_path = "." in dotted and all(word.isidentifier() for word in dotted.split("."))
        of_module = meant_class(dotted) if "/" in str(value) or ".py" in str(value) else ""
        of_module = of_module if f"write {dotted}." in of_module else ""
        meant = of_module or f"write {dotted}" if is_path else meant_class(dotted) if dotted else ""
        if "-" in dotted or "-" in str(value):
            dashed = str(value).replace("-", "_")
            meant = f"write {dashed}: Python takes no dash in a name, so rename a file that has it"
        message = f"is {value!r}, which is no class with its module"
        raise origins.error(key, message, meant or "write it as in package.module.ClassName")
    if words[0] == "__main__":
        raise origins.error(
            key,
            f"is {value}, a class of this notebook or script, which the ranks cannot import",
            f"put the class into a file in the folder you submit from: my_code.{words[-1]}",
        )
    return str(value)
