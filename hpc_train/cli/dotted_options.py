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
    values = _values_of_file(words) if section in _SECTIONS and name else None
    if values is None:
        return KeyInConfig(key)
    from hpc_train.config.meant_words.own_arguments import is_taken, not_taken_hint  # to an error
    from hpc_train.config.specs import INIT_ARGS

    full = ".".join(_in_form(key.split("."), values))
    argument = full.removeprefix(f"{section}.{INIT_ARGS}.")
    if "." in argument:
        return KeyInConfig(full)
    if is_taken(section, argument, values):
        return KeyInConfig(full, is_taken=True)
    return KeyInConfig(full, not_taken_hint(section, argument, values))


def _values_of_file(words: Sequence[str]) -> Mapping[str, Any] | None:
    """Of the first file of YAML among the words; None where there is none that can be read."""
    file = next((it for it in words if it.endswith((".yaml", ".yml")) and Path(it).is_file()), "")
    if not file:
        return None
    from hpc_train.config.assets import config_dir  # on the way to an error
    from hpc_train.config.compose import compose

    try:
        return compose(Path(file), (), config_dir()).values
    except HpcTrainError:
        return None


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


def with_whole_key(word: str, words: Sequence[str]) -> str:
    """`model.init_args.lr=1,2` for `lr=1,2`, where the short key can be but one; else the word.

    Args:
        word: `KEY=VALUE`; any other word stays.
        words: Of the command line; the first file of YAML among them is read.
    """
    key, equals, value = word.partition("=")
    if not equals or key.startswith("-"):
        return word
    if "." in key:
        found = key_in_config(key, words)
        return word if found.said else f"{found.key}={value}"
    from hpc_train.config.keys import FIELDS  # on the way to an error
    from hpc_train.config.meant_words.unknown_key import key_of_word

    values = None if key in FIELDS else _values_of_file(words)
    if values is None or values.get("script"):  # whose words are its own, behind --
        return word
    in_class = (key_in_config(f"{section}.{key}", words) for section in _SECTIONS)
    whole = next((it.key for it in in_class if it.is_taken), "") or key_of_word(key)
    return f"{whole}={value}" if whole else word
