"""The key that `${model.horizon}` may be meant to name, where there is none of that name.

It may be an argument that the class has a default for, which the config then has to write.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.meant_words.own_arguments import arguments_of, below_class, class_named
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.class_kind import locate
from hpc_train.config.python_text.default_types import defaults_of
from hpc_train.config.specs import INIT_ARGS
from hpc_train.config.words import near_words
from hpc_train.config.yaml_slips.interpolations import walk

_NEAR = 0.8


def meant_interpolation(name: str, key: str, values: Mapping[str, Any], origins: Origins) -> str:
    """What to write for `${name}` in the value of `key`; empty where no key of the config is near.

    Args:
        name: The key that is not there.
        key: Dotted.
        values: Of the whole config.
        origins: For whether the value was typed.
    """
    found, is_sure = _keys_like(name, key, values)
    if not is_sure and (of_class := _of_class(name, key, values, origins, is_near=not found)):
        return of_class
    if not found:
        return ""
    written = [f"${{{it}}}" for it in found]
    if is_sure and origins.is_typed(key):
        text = str(dict(walk(values, "")).get(key, "")).replace(f"${{{name}}}", written[0])
        return f"write {shlex.quote(f'{key}={text}')}"
    return f"write {written[0]}" if is_sure else f"did you mean {' or '.join(written)}?"


def _keys_like(name: str, key: str, values: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The keys whose name without its section, or without init_args, is that; and if it is sure."""
    known = [it for it, _ in walk(values, "") if it != key and not _last(it).isdecimal()]
    short = {_short(it): it for it in known}
    if name in short:
        return [short[name]], True
    section, _, last = name.rpartition(".")
    word = next(iter(near_words(last, map(_last, known), cutoff=_NEAR)), "")
    near = [it for it in known if _last(it) == word]
    found = [it for it in near if section and it.startswith(f"{section.partition('.')[0]}.")]
    found = found or ([] if section and word != last else near)
    return found[:2], word == name and len(found) == 1


def _of_class(
    name: str, key: str, values: Mapping[str, Any], origins: Origins, *, is_near: bool
) -> str:
    """For an argument that the class takes and the config does not give: the line that does."""
    section, _, word = name.replace(f".{INIT_ARGS}.", ".").partition(".")
    class_path = class_named(section, values) if section in ("model", "data") else ""
    taken = (arguments_of(class_path) if class_path else None) or ()
    near = near_words(word, taken, cutoff=_NEAR) if is_near else []
    argument = word if word in taken else next(iter(near), "")
    below = f"{below_class(section, values)}{argument}"
    if not argument or below == key:
        return ""
    found = locate(class_path, [str(Path.cwd()), *sys.path])
    defaults = defaults_of(found) if found else {}
    known = argument in defaults
    value = json.dumps(defaults[argument], default=str) if known else "..."
    has = f"has {argument}={value} as its default" if known else f"takes {argument}"
    typed = origins.is_typed(key)
    line = shlex.quote(f"{below}={value}") if typed else f"{below}: {value}"
    here = "" if below == name else f", and ${{{below}}} here"
    return f"{class_path} {has}, and the config has no line of it: write {line}{here}"


def _short(key: str) -> str:
    return key.replace(f".{INIT_ARGS}.", ".")


def _last(key: str) -> str:
    return key.rpartition(".")[2]
