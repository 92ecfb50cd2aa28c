"""A hint for an option of sbatch that stands as a key in `slurm`, with the value that it has."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from hpc_train.config.meant_words.sbatch_names import EXCLUSIVE, KNOWN

UNDER = "other options of sbatch go under slurm.extra"
UNDER_EXTRA = f"{UNDER}: {{{{{{0}}: ...}}}}"
_OTHER = re.compile(rf"{re.escape(UNDER)}: \{{([\w-]+): \.\.\.\}}")
_KEY = re.compile(r"write ([a-z_]+(?:\.[a-z_]+)*)(?:: (true|false))?")
_PLAIN = re.compile(r"[A-Za-z0-9_./@+-]+")  # in YAML as it is, beside a colon and a space
_LEAD = re.compile(r"(?:[RB]+:)?\w+@(\d+)")  # sbatch(1), --signal: [{R|B}:]<sig_num>[@sig_time]


def with_value(hint: str, value: Any, *, typed: bool) -> str:
    """The same, literal: `write name=foo` typed, `write name: foo` in a file.

    Args:
        hint: `write KEY`, or of an option that goes under `slurm.extra`; others stay as they are.
        value: What was written for it.
        typed: Whether it stands on the command line, and in no file.
    """
    if hint == "write slurm.exclusive" and (value is True or value is None):
        return f"{hint}{'=' if typed else ': '}true"
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        return hint
    if other := _OTHER.fullmatch(hint):
        if (option := other[1]) not in KNOWN:  # of a plugin, or none: nobody knows
            return hint
        put = f": {_typed(f'slurm.extra.{option}', value)}"
        return f"{UNDER}{put if typed else f': {{{option}: {_in_file(value)}}}'}"
    found = _KEY.fullmatch(hint)
    if found is None or (found[2] and not typed):
        return hint
    if (fits := key_and_value(hint, value)) is None:
        return hint
    if typed:
        return f"write {_typed(*fits)}"
    beside = "" if "." in fits[0] else ", beside slurm and not below it"
    return f"write {fits[0]}: {_in_file(fits[1])}{beside}"


def key_and_value(hint: str, value: Any) -> tuple[str, Any] | None:
    """The key that a hint says to write, and what it takes of a value; None where none is sure.

    Args:
        hint: `write KEY`, or with the value that it has to have; others say no key.
        value: What was written for the option; True for one without a value.
    """
    found = _KEY.fullmatch(hint)
    if found is None:
        return None
    if found[2]:
        return found[1], found[2] == "true"
    fitting = value if value is True else _fitting(found[1], value)
    return None if fitting is None else (found[1], fitting)


def _fitting(key: str, value: Any) -> Any:
    """What the key takes of the value; None where that is not sure."""
    if key == "slurm.signal_lead_s":
        lead = _LEAD.fullmatch(str(value))
        return int(lead[1]) if lead else None
    if key == "slurm.time":  # 1:00:00 without quotes is read as a number, of seconds
        return value if isinstance(value, str) else None
    if key == "slurm.exclusive":
        return value if value in EXCLUSIVE else None
    if key in ("slurm.gpus_per_node", "slurm.cpus_per_gpu"):
        return None  # where the number is sure, `gpu_counts.keys_for_count` has told it
    if key in ("slurm.nodes", "global_batch_size"):
        return value if isinstance(value, int) else None
    return value if key in ("name", "runs_dir") or key.startswith("slurm.") else None


def _typed(key: str, value: Any) -> str:
    return shlex.quote(f"{key}={str(value).lower() if isinstance(value, bool) else value}")


def _in_file(value: Any) -> str:
    is_plain = not isinstance(value, str) or _PLAIN.fullmatch(value)
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)
