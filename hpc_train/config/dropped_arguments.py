"""What an old class was given, where the command line names another one: what to give again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.origins import DEFAULT, Origins
from hpc_train.config.own_arguments import arguments_of
from hpc_train.config.secrets import looks_secret
from hpc_train.config.specs import CLASS_PATH, TARGET

_PLAIN = re.compile(r"[\w./-]+")


def notes_on_dropped(
    dropped: Mapping[str, Mapping[str, Any]], values: Mapping[str, Any], origins: Origins
) -> Iterator[str]:
    """A line for each class that the command line put in another's place.

    Args:
        dropped: By the key of the class, what the old one was given: dotted keys and values.
        values: The whole config.
        origins: What was given since has one.
    """
    for key, given in dropped.items():
        left_out = {name: it for name, it in given.items() if origins.of(name) == DEFAULT}
        if left_out:
            yield (
                f"{COMMAND_LINE}: {key} names another class, and what the old one was given is left"
                f" out: {', '.join(left_out)}; {_to_give_again(left_out, _class_at(key, values))}"
            )


def _class_at(key: str, values: Any) -> str:
    *above, _ = key.split(".")
    for name in above:
        values = values[int(name)] if isinstance(values, list) else values[name]
    return str(values.get(CLASS_PATH) or values.get(TARGET) or "")


def _to_give_again(left_out: Mapping[str, Any], class_path: str) -> str:
    """`give again what the new one takes: model.init_args.lr=0.01`."""
    try:
        takes = arguments_of(class_path)
    except ValueError:  # importlib's, of a __main__ without a spec, which is refused later
        takes = None
    if takes is None:
        return f"give again what the new one takes: {next(iter(left_out))}=..."
    again = [f"{key}={_typed(key, left_out[key])}" for key in left_out if _name(key) in takes]
    if not again:
        return f"the new one takes {'none of them' if len(left_out) > 1 else 'no such argument'}"
    return f"give again what the new one takes: {' '.join(again)}"


def _name(key: str) -> str:
    return key.rpartition(".")[2]


def _typed(key: str, value: Any) -> str:
    """A plain value in one word of a command line; points for any other, and for a secret."""
    if looks_secret(_name(key)) or not isinstance(value, (bool, int, float, str)):
        return "..."
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if _PLAIN.fullmatch(text) else "..."
