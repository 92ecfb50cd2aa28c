"""The end of a log, as far as a person reads."""

from __future__ import annotations

import re
from pathlib import Path

BYTES = 4096
LINES = 5
WIDTH = 300
COLOUR = re.compile(r"\x1b\[[\d;]{0,20}[A-Za-z]")
_MARKS = re.compile(r"[\^~ ]+")  # below a line of code in Python's traceback
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?!\n)", re.MULTILINE)  # what a progress bar has drawn before


def last_words(log: Path) -> tuple[str, ...]:
    """The last lines of a log that hold words, each cut to `WIDTH`; none without a log."""
    return tuple([line for line in _tail(log) if not _MARKS.fullmatch(line)][-LINES:])


def last_lines(log: Path, lines: int) -> list[str]:
    """Up to so many of the last lines that hold anything, whole; none where there is no log."""
    return _tail(log, lines * 200, None)[-lines:]


def words_before_traceback(log: Path) -> str:
    """The last line before the last traceback of a log; empty where none is near its end."""
    lines = _tail(log)
    starts = [number for number, line in enumerate(lines) if line.startswith("Traceback (")]
    return lines[starts[-1] - 1] if starts and starts[-1] else ""


def _tail(log: Path, length: int = BYTES, width: int | None = WIDTH) -> list[str]:
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - length))
            text = stream.read(length).decode(errors="replace")
    except OSError:
        return []
    text = _OVERWRITTEN.sub("", COLOUR.sub("", text))
    plain = ("".join(c for c in line if c.isprintable()).strip() for line in text.splitlines())
    return [line[:width] for line in plain if line]
