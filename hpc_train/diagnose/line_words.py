"""The words of the rules' files: which lines may tell something that is not NCCL's own.

A block is searched for a letter or a word of each pattern first, which is twenty times as fast as
the patterns; so each begins with it, not with a look behind.
"""

from __future__ import annotations

import re
from functools import cache

from hpc_train.diagnose.rules import read_words

_MAX_FEW = 64  # so many places are looked up one by one faster than by a search


def may_tell(line: str) -> bool:
    """Whether a line has any of the words for which lines are let through."""
    return _says().search(line) is not None


def is_rare(text: bytes) -> bool:
    """The same of a line or a block of them, fast where none has."""
    return any(key in text and _has(text, key, what) for key, what in _by_key())


def as_grep() -> str:
    """The same for `grep -E`: it lets through what `may_tell` does, and perhaps more."""
    text = "|".join(read_words())
    for python, posix in ((r"(?<!NCCL WARN )", ""), ("(?:", "("), (r"\d", "[0-9]")):
        text = text.replace(python, posix)
    return text.replace(r"[\r\n]", "").replace(r"[:\r\n]", "[:\r]")


@cache
def _says() -> re.Pattern[str]:
    return re.compile("|".join(read_words()))


@cache
def _by_key() -> tuple[tuple[bytes, re.Pattern[bytes]], ...]:
    return tuple((_key(word).encode(), re.compile(word.encode())) for word in read_words())


def _key(word: str) -> str:
    """What each match begins with: a letter, or a run of them where it begins with small ones."""
    text = word.removeprefix("\\")
    if not text[0].islower():
        return text[0]
    run = re.match(r"[\w :/-]+", text)
    assert run is not None, word
    return run[0][:-1] if text[run.end() : run.end() + 1] in ("?", "*", "{") else run[0]


def _has(text: bytes, key: bytes, what: re.Pattern[bytes]) -> bool:
    at = text.find(key)
    for _ in range(_MAX_FEW):
        if at < 0:
            return False
        if what.match(text, at):
            return True
        at = text.find(key, at + 1)
    return at >= 0 and what.search(text, at) is not None
