"""What to write for a name in `trainer` that Lightning's Trainer does not take."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterable, Mapping
from typing import Any

from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.meant_words.meant_callbacks import callback_of_trainer
from hpc_train.config.meant_words.other_words import OF_A_CLASS, OTHER_WORDS
from hpc_train.config.meant_words.removed_arguments import (
    REMOVED_ARGUMENTS,
    RENAMED_ARGUMENTS,
    UNUSED_ARGUMENTS,
)
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.schema import Config
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET, is_trainer
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError


def unknown_argument(
    name: str,
    arguments: Mapping[str, Any],
    known: Iterable[str],
    owned: Container[str],
    origins: Origins,
    config: Config,
) -> ConfigError:
    """The refusal of a name that the Trainer does not take, and what to write.

    Args:
        arguments: The whole of `trainer`.
        known: What the Trainer takes.
        owned: What of that hpc-train sets.
        config: The whole of it, whose model may take the name.
    """
    key = f"trainer.{name}"
    hint, others = callback_of_trainer(name, arguments, is_typed=origins.is_typed(key))
    usable = [it for it in known if it not in owned]
    hint = (
        hint
        or _once_more(name, arguments[name])
        or _of_a_class(name, config)
        or _as_typed(instead_of(name, arguments[name]), key, origins)
        or did_you_mean(name, usable, prefix="trainer.")
        or "an argument of your model's own goes under model.init_args"
    )
    many = "is" if len(others) == 1 else "are"
    said = f", and {', '.join(others)} {many} none" if others else ""
    error = origins.error(key, f"is no argument of Lightning's Trainer{said}", hint)
    error.keys += tuple(f"trainer.{it}" for it in others)  # one mend for all of them
    return error


def _once_more(name: str, value: Any) -> str:
    """What to write for `trainer.max_epochs` below trainer, whatever it then is."""
    inner = name.removeprefix("trainer.")
    shown = value if isinstance(value, bool | int | float | str) else "..."
    return f"it stands below trainer already: write {inner}: {shown}" if inner != name else ""


def _of_a_class(name: str, config: Config) -> str:
    """What to write for a setting that the class of the model or the data does not take so."""
    from hpc_train.config.meant_words.own_arguments import not_taken_hint  # on the way to an error

    owner = OF_A_CLASS.get(name, "")
    found = getattr(config, owner, None) if owner else None
    return not_taken_hint(owner, name, {owner: found}) if isinstance(found, Mapping) else ""


def _as_typed(hint: str, key: str, origins: Origins) -> str:
    """A hint of a file's top, as the command line has it."""
    return hint.replace(" at the top, beside trainer", "=...") if origins.is_typed(key) else hint


def instead_of(name: str, value: object = None) -> str:
    """What to write for an argument of older Trainers, or a key of another place; else empty."""
    if name in (CLASS_PATH, TARGET) and is_trainer(value):
        return "leave it out: hpc-train makes Lightning's Trainer"
    if name == INIT_ARGS and isinstance(value, Mapping):
        from hpc_train.config.trainer_args import trainer_parameters  # on the way to an error

        if value and value.keys() <= {*trainer_parameters(sys.path)}:
            return "write its keys below trainer itself, one step to the left"
    if name in RENAMED_ARGUMENTS:
        return f"write trainer.{RENAMED_ARGUMENTS[name][0]}"
    if name in (CLASS_PATH, INIT_ARGS, TARGET):
        return f"indent {name} below the key of its object, as in callbacks: [{{{name}: ...}}]"
    if OTHER_WORDS.get(name) in FIELDS:
        return f"write {OTHER_WORDS[name]} at the top, beside trainer"
    hint = REMOVED_ARGUMENTS.get(name, "") or UNUSED_ARGUMENTS.get(name, "")
    at_the_top = f"write {name} at the top, beside trainer" if name in FIELDS else ""
    return of_project(hint) or at_the_top or _of_another_section(name)


def _of_another_section(name: str) -> str:
    """What to write for the name of a key that one other section has, or for a word for it."""
    places = [f"{section}.{name}" for section, keys in SECTIONS.items() if name in keys]
    word = OTHER_WORDS.get(name, "")
    if name in OF_A_CLASS:
        return f"write {OF_A_CLASS[name]}.init_args.{name}"
    meant = places[0] if len(places) == 1 else word if re.fullmatch(r"[a-z]+\.\w+", word) else ""
    return f"write {meant}" if meant else ""
