"""The value that was typed behind an option that there is not, for the word that is to be typed."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence

from hpc_train.config.keys import MEMORY_KEYS
from hpc_train.config.meant_words.gpu_counts import option_for_gpus
from hpc_train.config.meant_words.sbatch_names import EXCLUSIVE

NO_DASHES = "a key of the config has no dashes: "
_FILES = (".yaml", ".yml", ".py")
# Options that count GPUs, or ranks, of a node; those of a job or of a task mean another number.
_A_NODE = ("gres", "gpus-per-node", "ntasks-per-node", "nproc-per-node", "num-gpus")
_LEAST_MB = 1000  # sbatch(1), --mem: without a unit it is MB; less was rather meant in GB
_OF_SLURM = ("slurm.gpus_per_node",)  # whose values are others in Slurm
# sbatch(1), --dependency.
_KIND = re.compile("after(?:any|burstbuffer|corr|notok|ok)?", re.IGNORECASE)


def typed_value(option: str, words: Sequence[str]) -> str:
    """`4` of `-c 4`, `-c4`, `--cpus-per-task 4` and `--cpus-per-task=4`; else empty."""
    own = list(itertools.takewhile(lambda word: word != "--", words))
    forms = (option, option[1:]) if option.startswith("--") else (option,)  # -seed 3
    is_short = len(option) == 2
    for word, after in itertools.zip_longest(own, own[1:], fillvalue=""):
        if is_short and word.startswith(option) and word != option:
            return word[2:].removeprefix("=")
        name, equals, value = word.partition("=")
        if name in forms and equals:
            return value
        if name in forms:
            is_value = after[:1] != "-" and "=" not in after and not after.endswith(_FILES)
            return after if is_value else ""
    return ""


def key_with(key: str, value: str) -> str:
    """`slurm.mem=64G` to type; `slurm.mem=...` where the value may be another one here."""
    is_number = re.fullmatch(r"\d+(?:\.\d*)?(?:e-?\d+)?", value) is not None
    if key == "slurm.exclusive" and not value:
        return f"{key}=true"
    if key == "slurm.exclusive" and value not in EXCLUSIVE:
        return f"{key}=..."
    as_it_is = key == "name" or (key.startswith("slurm.") and key not in _OF_SLURM)
    if not value or "batch_size" in key or not (as_it_is or is_number):
        return f"{key}=..."
    if key.removeprefix("slurm.") in MEMORY_KEYS and value.isdecimal():
        if int(value) < _LEAST_MB:
            return f"{key}=..."
        value += "M"
    return f"{key}={shlex.quote(value)}"


def dependency_with(value: str, *, has_after: bool) -> str:
    """`slurm.dependency=afterok:12` to type, or `--after peaks` where runs were named.

    Args:
        value: As it was typed behind `--dependency`.
        has_after: Whether the command takes `--after`.
    """
    from hpc_train.plan.sbatch_options import FORMS  # on the way to an error

    key = "slurm.dependency"
    if not value or re.fullmatch(FORMS["dependency"][0], value, re.IGNORECASE):
        return f"{NO_DASHES}{key_with(key, value)}"
    if value.replace(":", "").isdecimal():
        return f"{NO_DASHES}{key}=afterok:{value}"
    kind, colon, behind = value.partition(":")
    if not colon and not _KIND.fullmatch(value):
        kind, behind = "afterok", value
    jobs = re.split("[,:?]", behind)
    names = [shlex.quote(it) for it in jobs if it and not it.isdecimal()]
    if kind.lower() != "afterok" or len(names) < len(jobs):
        of_run = f"; `hpc-train status {names[0]}` names the JOB of a run" if names else ""
        return f"write {key}={kind}:JOB{of_run}"
    words = " ".join(f"--after {it}" for it in names)
    return f"write {words}" if has_after else f"of a run: hpc-train submit CFG {words}"


def option_with(option: str, name: str, value: str) -> str:
    """`write --nodes 2`, or `write --nodes` where the value may be another one here.

    Args:
        option: Of hpc-train.
        name: The long name of the option that was typed.
        value: What was typed behind it.
    """
    if option == "--gpus":
        return (option_for_gpus(value) if name in _A_NODE else "") or f"write {option}"
    is_fit = value.isdecimal() if option == "--nodes" else " " not in option
    return f"write {option} {shlex.quote(value)}" if value and is_fit else f"write {option}"
