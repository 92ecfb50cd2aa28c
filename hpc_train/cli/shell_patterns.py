"""A pattern without quotes, which the shell has made into the names of this folder's files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from hpc_train.cli.common import shell_word
from hpc_train.errors import NoSuchRunError

MOST_NAMED = 3


def typed_pattern(words: Sequence[str]) -> str:
    """The pattern that was typed, as it can be typed again; empty where these are no files of here.

    A shell puts all names that a pattern means in its place. So what these words begin and end
    with, and a `*` between, is taken for it where it means just them.
    """
    here = [path.name for path in Path.cwd().iterdir() if not path.name.startswith(".")]
    if not words or not set(words) <= set(here):
        return ""
    first = _beginning(words)
    last = _beginning([word[::-1] for word in words])[::-1]
    tries = (f"{first}*", f"*{Path(words[0]).suffix}", f"*{last}", f"{first}*{last}")
    means = (it for it in tries if {name for name in here if fnmatchcase(name, it)} == set(words))
    return shell_word(next(means, "PATTERN*"))


def _beginning(words: Sequence[str]) -> str:
    """What all of them begin with."""
    alike = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*words, strict=False))
    return "".join(letters[0] for letters in alike)


def what_the_shell_did(words: Sequence[str]) -> str:
    """The same in words: the names that stand in the pattern's place."""
    more = " ..." if words[MOST_NAMED:] else ""
    names = f"{' '.join(words[:MOST_NAMED])}{more}"
    return f"the shell has put files of this folder in the place of a pattern: {names}"


@contextmanager
def pattern_expected(command: str, words: Sequence[str]) -> Iterator[None]:
    """Say so where no run is found and the words are files.

    Args:
        command: `hpc-train rm`, which takes patterns.
    """
    try:
        yield
    except NoSuchRunError as error:
        pattern = typed_pattern(words)
        if not pattern or not any(Path(word).is_file() for word in words):
            raise
        if len(words) == 1:
            hint = f"{error.hint}; a pattern belongs in quotes: {command} 'PATTERN*'"
            raise NoSuchRunError(error.message, hint) from error
        hint = f"put the pattern in quotes: {command} {pattern}"
        raise NoSuchRunError(what_the_shell_did(words), hint) from error
