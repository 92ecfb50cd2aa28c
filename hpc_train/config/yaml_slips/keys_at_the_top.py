"""Keys of one section at the top of a file, as sbatch's own are written: one fix for all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.meant_words.gpu_counts import gpus_of_gres
from hpc_train.config.meant_words.other_words import OTHER_WORDS
from hpc_train.config.meant_words.sbatch_names import OWNED
from hpc_train.config.meant_words.sbatch_values import key_and_value
from hpc_train.config.origins import Origins
from hpc_train.config.yaml_slips.pointed_keys import in_the_file, stands_at_the_top

_OF_A_KEY = re.compile(r"(?:did you mean '|write |write \w+: \{|write below \w+: )\w+[.:].*")
_A_NODE = {"ntasks_per_node": "gpus_per_node", "cpus_per_task": "cpus_per_gpu"}


def with_its_like(
    hint: str, written: str, values: Mapping[str, Any], origins: Origins
) -> tuple[str, tuple[str, ...]]:
    """The fix for a key at the top of a file and for all of the same section beside it.

    Args:
        hint: For this key; one that says another thing than where it belongs stays as it is.
        written: The key.
        values: Of the whole config.
        origins: For its file.

    Returns:
        The hint, and the other keys that it is for.
    """
    own = _meant(written, values, origins)
    section, file = next(iter(own), "").partition(".")[0], _file(written, origins)
    is_same = _OF_A_KEY.fullmatch(hint) and re.search(rf"\b{section}[.:]", hint)
    if not own or not is_same or not stands_at_the_top(written, file):
        return hint, ()
    meant, users = dict(own), []
    for name in values:
        beside = {} if name == written or "." in str(name) else _meant(str(name), values, origins)
        is_like = all(it.startswith(f"{section}.") and it not in meant for it in beside)
        if beside and is_like and _file(str(name), origins) == file:
            meant |= beside
            users.append(str(name))
    return in_the_file(meant, file), tuple(users)


def _file(name: str, origins: Origins) -> str:
    return origins.of(name).rpartition(":")[0]


def _meant(written: str, values: Mapping[str, Any], origins: Origins) -> dict[str, Any]:
    """`{slurm.partition: train}` for `partition: train`; nothing where that is not sure."""
    name = written.replace("-", "_")
    value = values.get(written)
    if name in FIELDS or value is None or value == "":
        return {}
    text = origins.written(written) or ""
    value = text if ":" in text else value  # 1:00:00 is a number to YAML
    places = [section for section, keys in SECTIONS.items() if name in keys]
    if "script" in places:  # whose words are the Trainer's as well
        return {}
    if places:
        return {f"{places[0]}.{name}": value} if len(places) == 1 else {}
    if name == "gres":
        count, kind, others = gpus_of_gres(value)
        of_gpus = {"slurm.gpus_per_node": int(count)} if count else {}
        return {} if others else of_gpus | ({"slurm.gpu_type": kind} if kind else {})
    if name in _A_NODE:
        return {f"slurm.{_A_NODE[name]}": value} if type(value) is int and value > 0 else {}
    hint = OWNED.get(name.replace("_", "-")) or f"write {OTHER_WORDS.get(name, '')}"
    fits = key_and_value(hint, value)
    return {fits[0]: fits[1]} if fits and fits[0].startswith("slurm.") else {}
