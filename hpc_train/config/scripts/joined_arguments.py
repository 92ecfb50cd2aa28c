"""`args: ["--lr 0.1"]`: an option and its value as one argument, which argparse does not know.

A list holds the words of a command line one by one, and nothing takes them apart.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence

from hpc_train.config.scripts.script_words import ADD_BEHIND
from hpc_train.config.whole_forms import flow

_MOST = 6  # items, of each of which several ways to take it apart are tried
_WRITE = re.compile(r"(?P<why>.*)write (?P<words>.*) behind --", re.DOTALL)
APART = "what stands in quotes is one argument: "
CORRECT = "correct it: what stands behind -- is the script's"
OF_OURS = "is hpc-train's: write it in front of --"


def taken_apart(
    arguments: Sequence[str], known: Collection[str], takes: Callable[[Sequence[str]], bool]
) -> list[str]:
    """The same with each option and its value by themselves; empty where that does not help.

    Args:
        known: The options of the script's parser.
        takes: Whether the parser takes arguments.
    """
    joined = [at for at, it in enumerate(arguments) if _is_joined(it, known)]
    if not joined or len(joined) > _MOST:
        return []
    every = [list(_ways(it)) if at in joined else [[it]] for at, it in enumerate(arguments)]
    for way in itertools.product(*every):
        words = [word for words in way for word in words]
        if takes(words):
            return words
    return []


def in_quotes(said: str, arguments: Sequence[str]) -> str:
    """What a parser says of arguments, each with blanks in it as one."""
    for it in (it for it in arguments if len(it.split()) > 1):
        said = said.replace(f" {it}", f" {shlex.quote(it)}", 1)
    return said


def _is_joined(argument: str, known: Collection[str]) -> bool:
    first, *rest = argument.split(maxsplit=1)[:2] or [""]
    return bool(rest) and first.partition("=")[0] in known


def _ways(argument: str) -> Iterator[list[str]]:
    """As a shell would take it apart, and with all that is behind the option as one value."""
    with contextlib.suppress(ValueError):  # a quote that nothing closes
        yield shlex.split(argument)
    yield argument.split(maxsplit=1)


def in_a_list(hint: str) -> str:
    """What to write in the words of `script.args`, where the arguments stand in a file."""
    if found := _WRITE.fullmatch(hint):
        why = "an item is one argument: " if found["why"] == APART else ""
        return f"{why}write args: {flow(shlex.split(found['words']))}"
    hint = hint.replace(CORRECT, "correct it: script.args are the script's own arguments")
    hint = hint.replace(OF_OURS, "is hpc-train's: type it behind the file instead")
    return hint.replace(ADD_BEHIND, "add to them: ")
