"""Where a key of a file belongs that stands at the top, in the form that a file has for it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from hpc_train.config.keys import FIELDS, SECTIONS, TYPES
from hpc_train.config.meant_words.other_words import OTHER_WORDS, SAID_OF_KEYS
from hpc_train.config.meant_words.own_arguments import is_taken
from hpc_train.config.meant_words.sbatch_names import KNOWN
from hpc_train.config.meant_words.sbatch_values import UNDER
from hpc_train.config.origins import Origins
from hpc_train.config.specs import INIT_ARGS, TARGET
from hpc_train.config.trainer_args import trainer_parameters


def of_a_file(key: str, written: str, values: Mapping[str, Any]) -> str:
    """What to write for a line that fell out of its arguments, or for `logger`; else empty.

    Args:
        key: With underscores for dashes.
        written: As it is in the file.
        values: The whole config.
    """
    if key == "logger" and values.get(written) is not None:
        from hpc_train.config.whole_forms import logger_hint  # on the way to an error

        return logger_hint(values[written], typed=False).removesuffix(" at the top, beside trainer")
    is_ours = any(key in many for many in (OTHER_WORDS, SAID_OF_KEYS, *SECTIONS.values()))
    if is_ours or key in trainer_parameters(sys.path):
        return ""
    owners = [it for it in ("model", "data") if is_taken(it, key, values)]
    empty = [it for it in owners if INIT_ARGS in values[it] and not values[it][INIT_ARGS]]
    if len(empty) == 1:
        return f"indent {written} below {empty[0]}.{INIT_ARGS}, which has nothing below it"
    if owners == ["data"]:
        return "put it below data" + ("" if TARGET in values["data"] else f".{INIT_ARGS}")
    return ""


def meant_section(value: Any, values: Mapping[str, Any]) -> str:
    """What to write for a section of another name, by the keys in it; empty where none is sure."""
    names = {str(it).replace("-", "_") for it in value} if isinstance(value, Mapping) else set()
    of_sbatch = {it.replace("-", "_") for it in KNOWN}
    known = {name: {*keys} for name, keys in SECTIONS.items()}
    known["slurm"] |= of_sbatch
    known["trainer"] = {*trainer_parameters(sys.path)}
    fit = [name for name, keys in known.items() if names and names <= keys]
    if len(fit) != 1:
        return ""
    return f"put its keys below {fit[0]}" if fit[0] in values else f"write {fit[0]}"


def below_its_section(hint: str, written: str, values: Mapping[str, Any], origins: Origins) -> str:
    """The same hint, where it is a key of a section, as a file has it: not as one word."""
    value = values.get(written)
    if found := re.fullmatch(rf"write (?:.*: )?(model|data)\.({INIT_ARGS}\.)?(\w+)", hint):
        above = (found[1], INIT_ARGS) if found[2] else (found[1],)
        return _pair_below(above, f"{found[3]}: {_shown(value)}", written, origins)
    found = re.fullmatch(r"write (\w+)\.(\w+)", hint)
    if found is None or found[1] not in FIELDS:
        return hint
    section, name = found.groups()
    # A word of others may count in another unit: only what surely fits is repeated.
    fits = type(value) is int and "str" not in TYPES.get(f"{section}.{name}", "")
    fits = fits or name == written.lower().replace("-", "_")
    return _pair_below((section,), f"{name}: {_shown(value) if fits else '...'}", written, origins)


def inside_its_section(hint: str, full: str, values: Mapping[str, Any], origins: Origins) -> str:
    """The same hint for a key that stands in a section of a file: what can stand in that place.

    Args:
        hint: Such as `write slurm.gpus_per_node: 2`, which is refused below `slurm`.
        full: The key that stands there, dotted.
        values: The whole config.
        origins: For its file.
    """
    section, _, written = full.rpartition(".")
    own = values.get(section)
    value = own.get(written) if isinstance(own, Mapping) else None
    if hint.startswith(f"{UNDER}: {{"):
        return hint.replace(f" {section}.extra: ", " extra: ")
    if found := re.fullmatch(rf"write {section}\.(\w+)\.(\w+)", hint):
        pair = _pair_below((section, found[1]), f"{found[2]}: {_shown(value)}", full, origins)
        return pair.replace(f"below {section}: ", "")
    if hint.startswith(f"write {section}."):
        is_bare = re.fullmatch(rf"write {section}\.\w+", hint)
        return hint.replace(f" {section}.", " ") + (": ..." if is_bare else "")
    found = re.fullmatch(r"write (\w+)\.(\w+)(?:: (\S+))?", hint)
    if found is None or found[1] not in FIELDS:
        return hint
    shown = _shown(value) if found[2] == written.lower().replace("-", "_") else "..."
    pair = _pair_below((found[1],), f"{found[2]}: {found[3] or shown}", full, origins)
    return pair if pair.startswith("write below") else f"{pair}, beside {section} and not below it"


def _pair_below(above: tuple[str, ...], pair: str, written: str, origins: Origins) -> str:
    """A pair below keys that stand in the same file as what was written, or with these keys."""
    file = origins.of(written).partition(":")[0]
    for count in range(len(above), 0, -1):
        parent = ".".join(above[:count])
        if origins.of(parent).partition(":")[0] == file:
            return f"write below {parent}: {pair}"
        pair = f"{above[count - 1]}: {{{pair}}}"
    return f"write {pair}"


def _shown(value: Any) -> str:
    """A plain value as YAML; points for any other."""
    from hpc_train.config.whole_forms import flow  # on the way to an error

    return flow(value) if isinstance(value, (int, float, str)) and value != "" else "..."
