"""`class_path`/`init_args` as Lightning's CLI writes it, and `_target_` as Hydra does: one form."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.config.keys import FIELDS
from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.config.words import did_you_mean, plain_one
from hpc_train.errors import ConfigError

if TYPE_CHECKING:
    from hpc_train.config.schema import Config

CLASS_PATH = "class_path"
INIT_ARGS = "init_args"
TARGET = "_target_"
# What others call the two, and of Hydra's words those that are not read: what to write.
_OTHER_WORDS = {
    **dict.fromkeys(("class", "cls", "class_name", "target", "type", "name", "path"), CLASS_PATH),
    **dict.fromkeys(("params", "parameters", "args", "kwargs", "arguments", "config"), INIT_ARGS),
}
_HYDRAS = {
    "_partial_": "remove it: an object is made at once; for an optimizer give the model plain"
    " values (lr: 0.1), and make it in configure_optimizers",
    "_args_": "name each argument, as in width: 3",
}
_PUT = "put it under"
# What a class has to derive from, by its key.
_WANTED = (
    (r"model", "LightningModule"),
    (r"data", "LightningDataModule"),
    (r"loggers\.\d+", "Logger"),
    (r"trainer\.callbacks(\.\d+)?", "Callback"),
    (r"trainer\.strategy", "Strategy"),
    (r"trainer\.profiler", "Profiler"),
)


def wanted_of(key: str) -> str:
    """The name of what the class of this key has to derive from; empty where anything will do."""
    return next((name for pattern, name in _WANTED if re.fullmatch(pattern, key)), "")


def is_object(value: object) -> bool:
    """Whether a value names a class in either form."""
    return isinstance(value, Mapping) and (CLASS_PATH in value or TARGET in value)


def is_trainer(dotted: object) -> bool:
    """Whether a class path is that of Lightning's Trainer."""
    words = str(dotted).split(".")
    return words[-1] == "Trainer" and words[0] in ("lightning", "pytorch_lightning")


def classes_of(config: Config) -> list[tuple[str, Mapping[str, Any]]]:
    """The keys of the model, the data and each callback that name a class, and what names it."""
    named = callbacks_of(config.trainer)
    every: list[tuple[str, Any]] = [("model", config.model), ("data", config.data), *named]
    return [(key, spec) for key, spec in every if is_object(spec)]


def callbacks_of(trainer: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The key and the value of each callback, of which a single one may stand without a list."""
    given = trainer.get("callbacks") or []
    if not isinstance(given, list):
        return [("trainer.callbacks", given)]
    return [(f"trainer.callbacks.{index}", it) for index, it in enumerate(given)]


def read_object(
    spec: Mapping[str, Any], key: str, origins: Origins = NOWHERE
) -> tuple[str, dict[str, Any]]:
    """Class path and keyword arguments; what is nested in the arguments is put in one form too.

    Raises:
        ConfigError: when neither form is there, or both are mixed.
    """
    arguments = spec.get(INIT_ARGS)
    for holder in (spec, arguments if isinstance(arguments, Mapping) else {}):
        for number in (it for it in holder if not isinstance(it, str)):
            where = key if holder is spec else f"{key}.{INIT_ARGS}"
            raise origins.error(f"{where}.{number}", "names no argument", "write name: value pairs")
    if TARGET in spec:
        return _read_target(spec, key, origins)
    strangers = [name for name in spec if name not in (CLASS_PATH, INIT_ARGS)]
    if CLASS_PATH not in spec:
        from hpc_train.config.whole_forms import whole_form  # on the way to an error

        slip = next((it for it in strangers if meant_by(it, spec[it]) == CLASS_PATH), "")
        form = f"{key}: {whole_form(spec, wanted_of(key))}"
        hint = f"write {CLASS_PATH} for '{slip}', as in {form}" if slip else f"write {form}"
        raise origins.error(key, "names no class", hint)
    if strangers:
        raise _beside(key, spec, strangers, origins)
    if arguments is not None and not isinstance(arguments, Mapping):
        raise origins.error(f"{key}.init_args", f"is {arguments!r}", _as_pairs(arguments))
    if arguments and set(arguments) == {"..."}:  # copied from a fix
        hint = "the points stand for arguments: write name: value, or leave init_args out"
        raise origins.error(f"{key}.init_args", "is {...}", hint)
    return _class_name(spec[CLASS_PATH], f"{key}.{CLASS_PATH}", origins), {
        name: read_tree(value, f"{key}.{INIT_ARGS}.{name}", origins)
        for name, value in (arguments or {}).items()
    }


def _as_pairs(arguments: object) -> str:
    """What to write for arguments that are no pairs, as `lr:0.05` is to YAML."""
    from hpc_train.config.yaml_slips.dashes import without_dashes  # on the way to an error
    from hpc_train.config.yaml_slips.missing_colons import pairs_meant

    if meant := without_dashes(arguments):
        return meant
    if meant := plain_one(str(arguments)):
        return meant
    if meant := pairs_meant(arguments):
        return f"write {meant}"
    words = [re.fullmatch(r"([A-Za-z_]\w*):(?!/)([^\s:]+)", it) for it in str(arguments).split()]
    if not words or words[0] is None or None in words:
        return "write name: value pairs"
    behind = "the" if len(words) == 1 else "each"
    return f"write a space behind {behind} colon: {words[0][1]}: {words[0][2]}"


def meant_by(name: str, value: object) -> str:
    """`class_path` or `init_args` for another word of that meaning, or a slip; empty for others."""
    if not isinstance(value, (str, Mapping)):
        return ""
    form = INIT_ARGS if isinstance(value, Mapping) else CLASS_PATH
    same = _OTHER_WORDS.get(name.strip("_")) == form or did_you_mean(form, [name], cutoff=0.75)
    return form if same else ""


def _beside(
    key: str, spec: Mapping[str, Any], strangers: Sequence[str], origins: Origins
) -> ConfigError:
    """The refusal of words beside class_path: of all that are arguments, or of the first word."""
    hints = {name: _elsewhere(key, name, spec[name]) for name in strangers}
    name, is_typed = strangers[0], origins.is_typed(f"{key}.{strangers[0]}")
    arguments = [it for it, hint in hints.items() if hint.startswith(_PUT)]
    arguments = [it for it in arguments if origins.is_typed(f"{key}.{it}") is is_typed]
    if name not in arguments:
        return origins.error(f"{key}.{name}", "stands beside class_path", hints[name])
    keys = [f"{key}.{it}" for it in arguments]
    named = " and ".join(filter(None, [", ".join(keys[:-1]), keys[-1]]))
    hint = _moved(key, spec, arguments, is_typed=is_typed)
    stand = "stand" if keys[1:] else "stands"
    error = ConfigError(f"{origins.prefix(keys[0])}{named} {stand} beside class_path", hint)
    error.keys = tuple(keys)  # one mend for all of them
    return error


def _moved(key: str, spec: Mapping[str, Any], names: Sequence[str], *, is_typed: bool) -> str:
    """What to write for arguments beside class_path."""
    from hpc_train.config.python_values import in_yaml  # on the way to an error
    from hpc_train.config.whole_forms import LONGEST, flow

    if is_typed:
        words = [f"{key}.{INIT_ARGS}.{it}={in_yaml(spec[it])}" for it in names]
        return f"write {' '.join(map(shlex.quote, words))}"
    if not names[1:]:
        return f"{_PUT} {key}.{INIT_ARGS}"
    there = spec.get(INIT_ARGS)
    whole = {**(there if isinstance(there, Mapping) else {}), **{it: spec[it] for it in names}}
    form = flow({INIT_ARGS: whole})[1:-1]
    fix = f"put them under {key}.{INIT_ARGS}"
    return f"{fix}: {form}" if len(form) < LONGEST else fix


def _elsewhere(key: str, name: str, value: object) -> str:
    """What to write for a word beside class_path."""
    from hpc_train.config.trainer_args import trainer_parameters  # on the way to an error

    if name in _HYDRAS:
        return _HYDRAS[name]
    if meant_by(name, value) == INIT_ARGS:
        return f"write {INIT_ARGS} for '{name}'"
    if "." not in key and name in FIELDS and not isinstance(value, (str, int, float)):
        return f"{name} is a key of its own, beside {key}: begin its line in the first column"
    of_trainer = key == "model" and name in trainer_parameters(sys.path)
    return f"write trainer.{name}" if of_trainer else f"{_PUT} {key}.{INIT_ARGS}"


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
                f"{key}.{name}",
                "is not understood: of Hydra's keys only _target_ is",
                _HYDRAS.get(name, "remove it"),
            )
    return _class_name(spec[TARGET], f"{key}.{TARGET}", origins), {
        name: read_tree(value, f"{key}.{name}", origins)
        for name, value in spec.items()
        if name != TARGET
    }


def _class_name(value: object, key: str, origins: Origins) -> str:
    words = value.split(".") if isinstance(value, str) else []
    if len(words) < 2 or not all(word.isidentifier() for word in words):
        from hpc_train.config.python_text.meant_class import (  # on the way to an error
            meant_class,
            plain_path,
        )

        dotted = plain_path(str(value))
        is_path = "." in dotted and all(word.isidentifier() for word in dotted.split("."))
        near = meant_class(dotted, wanted=wanted_of(key.rpartition(".")[0])) if dotted else ""
        is_file = "/" in str(value) or ".py" in str(value)
        of_module = near if is_file and f"write {dotted}." in near else ""
        meant = of_module or f"write {dotted}" if is_path else near
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
