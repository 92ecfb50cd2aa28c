"""What an old class was given, where the command line names another one.

A config that is submitted says what to give again; an evaluation keeps what the new one takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.meant_words.own_arguments import arguments_of
from hpc_train.config.origins import DEFAULT, Origins
from hpc_train.config.secrets import looks_secret
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET

_PLAIN = re.compile(r"[\w./-]+")


def notes_on_dropped(
    dropped: Mapping[str, Mapping[str, Any]],
    values: Mapping[str, Any],
    origins: Origins,
    search_path: Sequence[str] | None = None,
) -> Iterator[str]:
    """A line for each class that the command line put in another's place.

    Args:
        dropped: By the key of the class, what the old one was given: dotted keys and values.
        values: The whole config.
        origins: What was given since has one.
        search_path: As `sys.path`, with the user's folder first.
    """
    for key, given in dropped.items():
        left_out = {
            name: it for name, it in given.items() if it != {} and origins.of(name) == DEFAULT
        }
        if left_out:
            yield (
                f"{COMMAND_LINE}: {key} names another class, and what the old one was given is left"
                f" out: {', '.join(left_out)};"
                f" {_to_give_again(left_out, _class_at(key, values), search_path)}"
            )


def still_taken(
    dropped: Mapping[str, Mapping[str, Any]],
    values: Mapping[str, Any],
    origins: Origins,
    search_path: Sequence[str],
) -> dict[str, Any]:
    """What each new class takes of what the old one was given, and nobody has given since.

    Args:
        dropped: As `notes_on_dropped` has them.
        search_path: As `sys.path`, with the user's folder first.

    Returns:
        Dotted keys and values; all of a class whose text does not tell what it takes.
    """
    kept: dict[str, Any] = {}
    for key, given in dropped.items():
        if _spec_at(key, values).get(INIT_ARGS) == {}:
            continue  # typed as that, so none is meant
        takes = arguments_of(_class_at(key, values), search_path)
        kept |= {
            name: it
            for name, it in given.items()
            if it != {} and origins.of(name) == DEFAULT and (takes is None or _name(name) in takes)
        }
    return kept


def _class_at(key: str, values: Any) -> str:
    spec = _spec_at(key, values)
    return str(spec.get(CLASS_PATH) or spec.get(TARGET) or "")


def _spec_at(key: str, values: Any) -> dict[str, Any]:
    *above, _ = key.split(".")
    for name in above:
        values = values[int(name)] if isinstance(values, list) else values[name]
    return dict(values)


def _to_give_again(
    left_out: Mapping[str, Any], class_path: str, search_path: Sequence[str] | None
) -> str:
    """`give again what the new one takes: model.init_args.lr=0.01`."""
    try:
        takes = arguments_of(class_path, search_path)
    except ValueError:  # importlib's, of a __main__ without a spec, which is refused later
        takes = None
    if takes is None:
        return f"give again what the new one takes: {next(iter(left_out))}=..."
    again = [as_typed(key, left_out[key]) for key in left_out if _name(key) in takes]
    if not again:
        return f"the new one takes {'none of them' if len(left_out) > 1 else 'no such argument'}"
    return f"give again what the new one takes: {' '.join(again)}"


def _name(key: str) -> str:
    return key.rpartition(".")[2]


def as_typed(key: str, value: Any) -> str:
    """KEY=VALUE of a plain value; points for any other, and for a secret."""
    if looks_secret(_name(key)) or not isinstance(value, (bool, int, float, str)):
        return f"{key}=..."
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{key}={text if _PLAIN.fullmatch(text) else '...'}"
