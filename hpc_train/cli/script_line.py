"""The command line of a script whose arguments were typed without `--`, as it has to be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import click

_NUMBER = re.compile(r"-\.?\d.*")


def script_line(
    context: click.Context, script: str, words: Sequence[str], behind: Sequence[str]
) -> str:
    """What belongs to hpc-train in front of `--`, all else behind it.

    Args:
        script: One of the words.
        words: As they were typed, without `--` and what is behind it.
        behind: What stood behind `--`.
    """
    from hpc_train.config.script_file import is_beside_script  # to an error

    ours: list[str] = []
    theirs: list[str] = []
    takes = _options(context)
    at = words.index(script)
    rest = iter([*words[:at], *words[at + 1 :]])
    for word in rest:
        name, equals, _ = word.partition("=")
        is_option = word.startswith("-") and not _NUMBER.fullmatch(word)
        if is_option and name in takes:
            ours += [word, *([next(rest, "VALUE")] if takes[name] and not equals else [])]
        elif not is_option and equals and is_beside_script(name):
            ours.append(word)
        else:
            theirs.append(word)
    return shlex.join([*context.command_path.split(), script, *ours, "--", *theirs, *behind])


def _options(context: click.Context) -> Mapping[str, bool]:
    """The command's own options, and whether each takes a value."""
    return {
        name: not getattr(it, "is_flag", False)
        for it in context.command.params
        if isinstance(it, click.Option)
        for name in (*it.opts, *it.secondary_opts)
    }
