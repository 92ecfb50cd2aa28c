"""A long line of a log, shortened for a reader."""

from __future__ import annotations

import re

_MARK = " ... "
_LEAST = 40
# Who speaks, in the middle of a line.
_WHO = re.compile(r"\[[Rr]ank[ =]?\d{1,6}\]|\b(?:local_)?rank: \d{1,6}\b")
# A fix that is the quoted line itself.
_AS_SAID = re.compile(r"what (?:the line|the message|it|this line) says?\b")


def shortened(text: str, width: int) -> str:
    """Return a text of at most that width: what is left out of its middle is marked.

    A line ends with the words of its error, so its end is kept. It is cut between words, as half a
    number would be another one; only a word without an end is cut itself. A rank in the middle
    that neither end names is kept.
    """
    if len(text) <= width:
        return text
    who = _WHO.search(text)
    room = max(width, _LEAST) - len(_MARK)
    end = room * 2 // 5
    head, tail = text[: room - end], text[-end:]
    if not text[room - end].isspace():
        head = head.rpartition(" ")[0] or head
    if not text[-end - 1].isspace():
        tail = tail.partition(" ")[2] or tail
    if who and not _WHO.search(head + tail) and len(who[0]) + 2 * _LEAST < room:
        more = len(who[0]) + len(_MARK)
        head = head[:-more].rpartition(" ")[0] or head[:-more]
        return f"{head.rstrip()}{_MARK}{who[0]}{_MARK}{tail.lstrip()}"
    return f"{head.rstrip()}{_MARK}{tail.lstrip()}"


def fitting(fix: str, quote: str) -> str:
    """Return a fix without "what the line says" where the line is not quoted whole."""
    first, _, rest = fix.partition("; ")
    return rest if _MARK in quote and _AS_SAID.match(first) else fix
