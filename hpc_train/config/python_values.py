"""Values and objects that the Python interface was handed in the place of texts and a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_train.config.words import class_of_object, shown
from hpc_train.errors import ConfigError

# The key of the config whose class an object of Lightning's is, by the class that it derives from.
_KEYS = {"LightningModule": "model", "LightningDataModule": "data"}
_LOAD = "hpc_train.load('cfg.yaml'{})"


def as_texts(values: Mapping[Any, object], before: str = "") -> list[str]:
    """`model.init_args.lr=0.1` of `{"model": {"init_args": {"lr": 0.1}}}`: an override each.

    Args:
        before: The section that the values are of, with a point.
    """
    from hpc_train.config.meant_words.unknown_key import key_of_word  # on the way to an error

    texts: list[str] = []
    for name, value in values.items():
        key = f"{before}{name}" if before else key_of_word(str(name)) or str(name)
        if isinstance(value, Mapping) and value and all(map(_is_name, value)):
            texts += as_texts(value, f"{key}.")
        else:
            texts.append(f"{key}={in_yaml(value)}")
    return texts


def as_call(values: Mapping[Any, object]) -> str:
    """`hpc_train.load(PATH, 'seed=3')` of `{"seed": 3}`."""
    return f"hpc_train.load({', '.join(['PATH', *map(repr, as_texts(values))])})"


def no_override(given: object, example: str) -> ConfigError:
    """The refusal of an override that is no text."""
    hint = f"write each override as {example!r}, and flags as nodes=2"
    if isinstance(given, Mapping) and given:
        hint = f"write each override as a text: {', '.join(map(repr, as_texts(given)))}"
    elif isinstance(given, (list, tuple)) and given and all(map(_is_override, given)):
        written = ", ".join(map(repr, given))
        hint = f"write each as an argument: {written}; or a star in front of the list"
    return ConfigError(f"{shown(given)} is no text", hint)


def check_no_objects(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Refuse a model or a DataModule in the place of a config, as a Trainer's `fit` takes them.

    Args:
        name: Of the function that was called, whose first argument is the config.

    Raises:
        ConfigError: with their classes as a config has them.
    """
    first = [*args[:1], *([kwargs["loaded"]] if "loaded" in kwargs else [])]
    handed = in_a_file([*args, *kwargs.values()])
    if handed and (in_a_file(first) or not first):
        message = f"{name} takes what hpc_train.load gives, and no model or data"
        raise ConfigError(message, f"{handed}, and {name}({_LOAD.format('')})")


def in_a_file(handed: Sequence[object]) -> str:
    """`write a file cfg.yaml with model: {class_path: nets.Net}` of what is Lightning's of them."""
    entries: dict[str, str] = {}
    beside = []
    for it in handed:
        key, (module, _, name) = _key_of(it), class_of_object(it).rpartition(".")
        if not key:
            continue
        if module == "__main__":
            module = "my_code"
            beside.append(name)
        entries[key] = f"{key}: {{class_path: {module}.{name}}}"
    put = f", {' and '.join(beside)} in my_code.py beside it" if beside else ""
    lines = " and ".join(entries.values())
    return f"write a file cfg.yaml with {lines}{put}" if entries else ""


def without_path(flags: Mapping[str, object]) -> str:
    """What to write for a `load` that has all but the file; empty where no class tells it."""
    handed = in_a_file([*flags.values()])
    others = as_texts({it: of for it, of in flags.items() if not class_of_object(of)})
    call = _LOAD.format("".join(f", {it!r}" for it in others))
    return f"{handed}, and {call}" if handed else ""


def _key_of(handed: object) -> str:
    """The key whose class an object, or a class, is; empty for what is no class of Lightning's."""
    kind = handed if isinstance(handed, type) else type(handed)
    return next((_KEYS[it.__name__] for it in kind.__mro__ if it.__name__ in _KEYS), "")


def _is_name(key: object) -> bool:
    return isinstance(key, str) and key.isidentifier()


def _is_override(text: object) -> bool:
    return isinstance(text, str) and "=" in text


def in_yaml(value: object) -> str:
    """A value as the text behind `key=`, which is read as YAML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pairs(value))}}}"
    if isinstance(value, (list, tuple, set)):
        return f"[{', '.join(map(in_yaml, value))}]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return str(value)
    text = class_of_object(value) or str(value)
    return text if _is_plain(text) else json.dumps(text, ensure_ascii=False)


def _pairs(values: Mapping[Any, object]) -> Iterator[str]:
    yield from (f"{in_yaml(name)}: {in_yaml(of)}" for name, of in values.items())


def _is_plain(text: str) -> bool:
    """Whether a text is read as itself, alone and in a list."""
    from hpc_train.config.read import parse_value  # on the way to an error

    try:
        alone, listed = parse_value(text, ""), parse_value(f"[{text}]", "")
    except ConfigError:
        return False
    return bool(alone == text) and bool(listed == [text])
