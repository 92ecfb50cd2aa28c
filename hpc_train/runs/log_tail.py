"""The end of a log, as far as a person reads."""

from __future__ import annotations

from pathlib import Path

__all__ = ["last_words", "words_before_traceback"]

BYTES = 4096
LINES = 5
WIDTH = 300


def last_words(log: Path) -> tuple[str, ...]:
    """The last lines of a log that hold anything, each cut to `WIDTH`; none where there is no log."""
    return tuple(_tail(log)[-LINES:])


def words_before_traceback(log: Path) -> str:
    """The last line before the last traceback of a log; empty where none is near its end."""
    lines = _tail(log)
    starts = [number for number, line in enumerate(lines) if line.startswith("Traceback (")]
    return lines[starts[-1] - 1] if starts and starts[-1] else ""


def _tail(log: Path) -> list[str]:
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - BYTES))
            text = stream.read(BYTES).decode(errors="replace")
    except OSError:
        return []
    plain = ("".join(c for c in line if c.isprintable()).strip() for line in text.splitlines())
    return [line[:WIDTH] for line in plain if line]
