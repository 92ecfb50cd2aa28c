"""`sbatch OPTIONS job.sh ARGUMENTS` as one text: that of the file with what is typed. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from hpc_train.plan.translate_slurm import options_in_front

_MARK = "#SBATCH"
_GPUS = ("gres", "gpus", "gpus-per-node", "gpus-per-task")  # of which one takes another's place
_GIVEN = re.compile(r"\$(?:(\d)(?!\d)|\{(\d)\})")
_ALL = re.compile(r'"\$@"|\$@|\$\*')
_PLAIN = re.compile(r"[\w./=+:,@%-]+")


def batch_file_of(words: Sequence[str]) -> tuple[str, list[str]]:
    """The file that a command of sbatch names, and what stands behind it; empty without one."""
    if not words or words[0].rpartition("/")[2] != "sbatch":
        return "", []
    options, rest = options_in_front(words[1:])
    is_wrapped = any(name == "wrap" for _, name, _ in options)
    return (rest[0], rest[1:]) if rest and not is_wrapped else ("", [])


def with_typed(text: str, words: Sequence[str]) -> str:
    """The file's text with the options in front of its name, and the arguments behind it.

    Options of the command line take the place of the file's lines: sbatch(1), INPUT ENVIRONMENT
    VARIABLES.

    Args:
        words: The command's, as `batch_file_of` takes them.
    """
    typed, _ = options_in_front(words[1:])
    names = {_kind(name) for _, name, _ in typed}
    lines = [f"{_MARK} {shlex.quote(word)}" for word, _, _ in typed]
    for line in text.splitlines():
        if not line.startswith(_MARK):
            lines.append(line)
            continue
        try:
            of_file, _ = options_in_front(shlex.split(line.removeprefix(_MARK), comments=True))
        except ValueError:
            lines.append(line)
            continue
        kept = [shlex.quote(word) for word, name, _ in of_file if _kind(name) not in names]
        lines += [" ".join([_MARK, *kept])] if kept else []
    return _with_arguments("\n".join(lines), batch_file_of(words)[1])


def _kind(name: str) -> str:
    return "gpus" if name in _GPUS else name


def _with_arguments(text: str, arguments: Sequence[str]) -> str:
    """`$1` and `"$@"` filled in, where that changes no quotes."""
    if not arguments or not all(map(_PLAIN.fullmatch, arguments)):
        return text

    def fill(found: re.Match[str]) -> str:
        at = int(found[1] or found[2]) - 1
        return arguments[at] if 0 <= at < len(arguments) else found[0]

    return _ALL.sub(" ".join(arguments), _GIVEN.sub(fill, text))
