"""A dotted option of LightningCLI's, such as `--model.lr`, as the key that a config has for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.errors import HpcTrainError

_SECTIONS = ("model", "data")


@dataclass(frozen=True)
class KeyInConfig:
    """The key, and what is to be said in place of it where the class does not take it."""

    key: str
    said: str = ""
    is_taken: bool = False


def key_in_config(key: str, words: Sequence[str]) -> KeyInConfig:
    """`model.init_args.lr` for `model.lr` where the config has the model as class_path.

    Args:
        key: As it was typed, without dashes.
        words: Of the command line; the first file of YAML among them is read.
    """
    section, _, name = key.partition(".")
    file = next((it for it in words if it.endswith((".yaml", ".yml")) and Path(it).is_file()), "")
    if section not in _SECTIONS or not name or not file:
        return KeyInConfig(key)
    from hpc_train.config.assets import config_dir  # on the way to an error
    from hpc_train.config.compose import compose
    from hpc_train.config.meant_words.own_arguments import is_taken, not_taken_hint
    from hpc_train.config.specs import INIT_ARGS

    try:
        values = compose(Path(file), (), config_dir()).values
    except HpcTrainError:
        return KeyInConfig(key)
    full = ".".join(_in_form(key.split("."), values))
    argument = full.removeprefix(f"{section}.{INIT_ARGS}.")
    if "." in argument:
        return KeyInConfig(full)
    if is_taken(section, argument, values):
        return KeyInConfig(full, is_taken=True)
    return KeyInConfig(full, not_taken_hint(section, argument, values))


def _in_form(words: Sequence[str], holder: Any) -> list[str]:
    """The words with `init_args` in front of each argument of what has a class_path."""
    from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET

    if not words:
        return []
    first, *rest = words
    if isinstance(holder, Mapping) and first == INIT_ARGS and TARGET in holder and rest:
        return _in_form(rest, holder)
    if isinstance(holder, Mapping) and CLASS_PATH in holder and first != CLASS_PATH:
        below = holder.get(INIT_ARGS)
        rest = rest if first == INIT_ARGS else list(words)
        return [INIT_ARGS, *_in_form(rest, below)]
    below = holder.get(first) if isinstance(holder, Mapping) else None
    return [first, *_in_form(rest, below)]
