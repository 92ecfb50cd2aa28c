"""Flags of sbatch in the place of `slurm.extra`, which has pairs: the keys to write for them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpc_train.config.keys import MEMORY_KEYS
from hpc_train.config.meant_words.gpu_counts import gpus_by_type, gpus_of_gres
from hpc_train.config.meant_words.sbatch_names import KNOWN, OWNED, SHORT, SWITCHES
from hpc_train.config.meant_words.sbatch_values import key_and_value
from hpc_train.config.schema import Config
from hpc_train.config.whole_forms import flow
from hpc_train.config.words import near_words

_OPTION = re.compile(r"--?[A-Za-z][\w-]*(?:=.*)?")
_PAIR = re.compile(r"[A-Za-z][\w-]*=.*")
# Their values count for a rank, or for a node with a rank a GPU.
_COUNTS = {
    "cpus-per-task": "slurm.cpus_per_gpu",
    "cpus-per-gpu": "slurm.cpus_per_gpu",
    "ntasks-per-node": "slurm.gpus_per_node",
}


@dataclass
class _Meant:
    """What the flags become: keys of ours, pairs for `extra`, and what to do about the others."""

    keys: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def as_keys(value: Any, *, is_typed: bool) -> str:
    """What to write for `--nice=100 -p short`, or a list of such words; empty for other values.

    Args:
        value: What stands in the place of `slurm.extra`.
        is_typed: Whether it stands on the command line, where each key is a word of its own.
    """
    pairs = _pairs([str(it) for it in (value if isinstance(value, list) else [value])])
    if not pairs:
        return ""
    meant = _Meant()
    for name, given in pairs:
        _take(name, given, meant)
    return _told(meant, is_typed=is_typed)


def keys_lacking(texts: Sequence[str], config: Config) -> str | None:
    """What to type for the lines of a batch script; empty where the config says all of it.

    Args:
        texts: The options of each line.
        config: Keys that have that value already are left out.

    Returns:
        None where a word has a form of which nothing is sure.
    """
    pairs = _pairs(texts)
    if not pairs:
        return None
    meant = _Meant()
    for name, given in pairs:
        _take(name, given, meant)
    is_here = bool(meant.keys or meant.extra)
    meant.keys = {it: of for it, of in meant.keys.items() if not _has(config, it, of)}
    extra = config.slurm.extra
    meant.extra = {it: of for it, of in meant.extra.items() if extra.get(it) != of}
    if is_here and not (meant.keys or meant.extra):
        return ""
    return _told(meant, is_typed=True)


def _has(config: Config, key: str, value: Any) -> bool:
    """Whether the config has that value; 01:00:00 is 1:00:00."""
    written: Any = config
    for name in key.split("."):
        written = getattr(written, name, None)
    return str(written).lstrip("0") == str(value).lstrip("0")


def _pairs(texts: Sequence[str]) -> list[tuple[str, str | None]]:
    """Each option by its long name, with its value; none where a word is something else."""
    try:
        words = [word for it in texts for word in shlex.split(it.removeprefix("#SBATCH"))]
    except ValueError:  # a quote that does not close
        return []
    pairs: list[tuple[str, str | None]] = []
    while words:
        word = words.pop(0)
        if not (_OPTION.fullmatch(word) or _PAIR.fullmatch(word)):
            return []
        name, has_value, value = word.lstrip("-").partition("=")
        if word.startswith("-") and not word.startswith("--"):  # -N2, -N 2
            if word[1] not in SHORT:
                return []
            name, value = SHORT[word[1]], word[2:].removeprefix("=")
            has_value = value
        name = name.replace("_", "-")
        if not has_value and name not in SWITCHES and words and not words[0].startswith("-"):
            has_value = value = words.pop(0)
        pairs.append((name, value if has_value else None))
    return pairs


def _take(name: str, value: str | None, meant: _Meant) -> None:
    """Put one option where it belongs."""
    if name in ("gres", "gpus-per-node") and value:
        _take_gpus(name, value, meant)
    elif (found := _key_and_value(name, value)) is not None:
        meant.keys[found[0]] = found[1]
    elif name in OWNED:
        written = f"--{name}={value}" if value else f"--{name}"
        meant.others.append(f"{written}: {OWNED[name]}")
    else:
        near = [] if name in KNOWN else near_words(name, KNOWN)
        meant.extra[near[0] if near else name] = True if value is None else _number(value)


def _take_gpus(name: str, value: str, meant: _Meant) -> None:
    count, kind, rest = gpus_of_gres(value) if name == "gres" else (*gpus_by_type(value), "")
    if not (count or rest):
        meant.others.append(f"--{name}: {OWNED['gpus-per-node']}")
    meant.keys.update({"slurm.gpus_per_node": int(count)} if count else {})
    meant.keys.update({"slurm.gpu_type": kind} if kind else {})
    meant.extra.update({"gres": rest} if rest else {})


def _key_and_value(name: str, value: str | None) -> tuple[str, Any] | None:
    """The key that an option has here, with what it takes of the value; None where none is sure."""
    if value is None:
        is_switch = name in ("exclusive", "requeue", "no-requeue")
        return key_and_value(OWNED[name], True) if is_switch else None
    key = name.replace("-", "_")
    if name in _COUNTS:
        return (_COUNTS[name], int(value)) if value.isdecimal() else None
    if key in MEMORY_KEYS and value.isdecimal() and value != "0":  # MB to sbatch(1), --mem
        value = f"{value}M"
    return key_and_value(OWNED.get(name, ""), _number(value) if name == "nodes" else value)


def _number(value: str) -> str | int:
    return int(value) if re.fullmatch(r"0|[1-9]\d*", value) else value


def _told(meant: _Meant, *, is_typed: bool) -> str:
    if is_typed:
        pairs = {**meant.keys, **{f"slurm.extra.{it}": meant.extra[it] for it in meant.extra}}
        text = " ".join(shlex.quote(f"{key}={_word(pairs[key])}") for key in pairs)
    else:
        text = _listed([*_in_file(meant)]) + (" in place of extra" if not meant.extra else "")
    parts = [f"write {text}"] if meant.keys or meant.extra else []
    return "; ".join([*parts, *meant.others])


def _in_file(meant: _Meant) -> Iterator[str]:
    yield from (flow({key: value})[1:-1] for key, value in meant.keys.items())
    if meant.extra:
        yield f"{'slurm.extra' if meant.keys else 'extra'}: {flow(meant.extra)}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
