"""The command line of a script whose arguments were typed without `--`, as it has to be typed."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from hpc_train.config.scripts.script_words import ADD_BEHIND, COME_BEHIND, FIRST_BEHIND
from hpc_train.config.submission_words import AND_AGAIN

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
    from hpc_train.config.scripts.beside_script import is_beside_script  # to an error

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
    theirs += behind
    line = [*context.command_path.split(), script, *ours, *["--"] * bool(theirs), *theirs]
    return shlex.join(line)


def line_without(context: click.Context, starter: str, words: Sequence[str]) -> str:
    """What to type for `python train.py --lr 0.1`, and the like: the script alone.

    Args:
        starter: One of the words, as `python` or `torchrun`.
        words: All that was typed behind the command.
    """
    at = words.index(starter)
    words = _with_file(words, at)
    script = next((it for it in words[at + 1 :] if it.endswith(".py")), "")
    shows = "; `hpc-train translate` shows the rest"
    if not script:
        return f"{context.command_path} train.py -- ARGUMENTS{shows}"
    place = words.index(script, at)
    mark = words.index("--", place) if "--" in words[place:] else len(words)
    rest = words[place:mark]
    ours = [*_shape(words[at : place + 1], words[:at]), *words[:at]]
    line = script_line(context, script, [*ours, *rest], words[mark + 1 :])
    behind = "" if " -- " in line else " (arguments of the script come behind --)"
    return f"{line}{behind}{shows if words[at + 1 : place] else ''}"


def line_of_module(context: click.Context) -> str:
    """What to type for `-m package.train --lr 0.1`; empty where that has no file here."""
    from hpc_train.cli.common import TYPED  # which imports the way here

    typed, behind = context.meta.get(TYPED, ((), ()))
    words = _with_file(typed, -1)
    script = next((it for it in words if it.endswith(".py")), "")
    return script_line(context, script, words, behind) if words != [*typed] and script else ""


def _with_file(words: Sequence[str], at: int) -> list[str]:
    """The words with the file of `-m scripts.train` in its place, where that is there."""
    for place, (word, name) in enumerate(itertools.pairwise(words)):
        file = f"{name.replace('.', '/')}.py"
        if place > at and word == "-m" and Path(file).is_file():
            return [*words[:place], file, *words[place + 2 :]]
        if word.endswith(".py"):
            break
    return list(words)


def _shape(started: Sequence[str], typed: Sequence[str]) -> list[str]:
    """The options for the nodes and ranks that a starter's own options ask for.

    Args:
        started: The starter, its options and the script.
        typed: Words in front of it; what they say stays.
    """
    from hpc_train.plan.translate import translate  # on the way to an error

    options = [] if "--" in started else translate(shlex.join(started), ()).shape_options()
    pairs = zip(options[::2], options[1::2], strict=True)
    said = {it.partition("=")[0] for it in typed}
    return [word for flag, value in pairs if flag not in said for word in (flag, value)]


def with_typed(
    hint: str, context: click.Context, typed: Sequence[str], behind: Sequence[str]
) -> str:
    """The whole line in place of what is to be added behind `--`, or of a config's other path.

    Any other hint is left as it is.

    Args:
        context: Of the command, which has read CFG.
        typed: The words in front of `--`.
        behind: Those behind it, if there are any.
    """
    command = context.command_path
    if (first := hint.removeprefix(FIRST_BEHIND)) != hint:
        return f"{command} {shlex.join([*typed, '--', first, *behind])}"
    if (lacking := hint.removeprefix(ADD_BEHIND)) != hint:
        return f"{command} {shlex.join([*typed, '--', *behind])} {lacking}"
    climb, sign, file = hint.partition(AND_AGAIN)
    cfg = context.params.get("cfg")
    place = next((it for it, word in enumerate(typed) if Path(word) == cfg), None)
    if not sign or place is None:
        return hint
    words = [*typed[:place], *shlex.split(file), *typed[place + 1 :]]
    return f"{climb} && {command} {shlex.join([*words, *['--'] * bool(behind), *behind])}"


def with_own_words(
    hint: str, context: click.Context, typed: Sequence[str], behind: Sequence[str]
) -> str:
    """The whole line where words of the script stand in front of `--`; any other hint as it is.

    Args:
        typed: The words in front of `--`, the script among them.
        behind: Those behind it, if there are any.
    """
    said, come, line = hint.partition(COME_BEHIND)
    script = next((it for it in typed if Path(it) == context.params.get("cfg")), "")
    if not come or not script or line.startswith(context.command_path):
        return hint
    from hpc_train.config.scripts.beside_script import as_options, is_ours  # on the way to an error

    words: list[str] = []
    for word in typed:
        is_theirs = "=" in word and not word.startswith("-") and not is_ours(word)
        words += as_options(Path(script), word) if is_theirs and word != script else [word]
    return f"{said}{come}{script_line(context, script, words, behind)}"


def _options(context: click.Context) -> Mapping[str, bool]:
    """The command's own options, and whether each takes a value."""
    return {
        name: not getattr(it, "is_flag", False)
        for it in context.command.params
        if isinstance(it, click.Option)
        for name in (*it.opts, *it.secondary_opts)
    }
