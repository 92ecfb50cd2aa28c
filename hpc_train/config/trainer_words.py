"""What to write for a name in `trainer` that Lightning's Trainer does not take."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.lightning_home import of_project
from hpc_train.config.other_words import OF_A_CLASS, OTHER_WORDS
from hpc_train.config.removed_arguments import (
    REMOVED_ARGUMENTS,
    RENAMED_ARGUMENTS,
    UNUSED_ARGUMENTS,
)
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET, is_trainer


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
