"""The end of a log, as far as a person reads."""

from __future__ import annotations

from pathlib import Path

__all__ = ["last_words"]

BYTES = 4096
LINES = 5
WIDTH = 300


def last_words(log: Path) -> tuple[str, ...]:
    """The last lines of a log that hold anything, each cut to `WIDTH`; none where there is no log."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - BYTES))
            text = stream.read(BYTES).decode(errors="replace")
    except OSError:
        return ()
    plain = ("".join(c for c in line if c.isprintable()).strip() for line in text.splitlines())
    return tuple(line[:WIDTH] for line in plain if line)[-LINES:]
