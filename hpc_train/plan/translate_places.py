"""Paths of a batch script with variables of the shell, as arguments that no shell fills in. Pure.

The number of a job is another in each job of a run, which has one folder for all of them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

JOB = re.compile(r"\$(?:SLURM_JOB_?ID\b|\{SLURM_JOB_?ID\})")
# What the shell that submits has as the job would; TMPDIR is another on each node.
_NAMES = r"HOME|USER|LOGNAME|SCRATCH\w*|WORK|WORKDIR|PROJECT\w*"
_OF_SHELL = re.compile(rf"\$(?:({_NAMES})\b|\{{({_NAMES})\}})")
_USED = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_RESOLVED = re.compile(r"\$\{oc\.env:(\w+)\}")


def without_job(text: str, name: str) -> str:
    """The same with a fixed name in the place of the job's number."""
    return JOB.sub(name, text)


def is_place(value: str) -> bool:
    """Whether the shell that submits can tell what it is."""
    return bool(_OF_SHELL.search(value)) and not re.search(r"[$`(\s]", _OF_SHELL.sub("", value))


def in_config(word: str, places: Mapping[str, str]) -> str:
    """`${oc.env:HOME}/out` of `$OUT`, where `OUT=$HOME/out` is known; else the word itself."""
    filled = _USED.sub(lambda it: places.get(it[1] or it[2], it[0]), word)
    if not is_place(filled):
        return filled if "$" not in filled else word
    return _OF_SHELL.sub(lambda it: f"${{oc.env:{it[1] or it[2]}}}", filled)


def typed(words: Sequence[str]) -> str:
    """Words as they are typed, where the shell fills in what a config resolves."""
    return " ".join(map(_typed, words))


def _typed(word: str) -> str:
    if not _RESOLVED.search(word):
        return shlex.quote(word)
    parts = re.split(r"(\$\{oc\.env:\w+\})", word)
    # Inside of double quotes these are special beside $ (bash(1), QUOTING).
    plain = [it if _RESOLVED.match(it) else re.sub(r'(["\\`$])', r"\\\1", it) for it in parts]
    return '"' + _RESOLVED.sub(r"${\1}", "".join(plain)) + '"'
