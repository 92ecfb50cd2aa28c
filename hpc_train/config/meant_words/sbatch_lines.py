"""Lines of #SBATCH at the head of a script of Python's or of a config, which only sbatch reads."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

_MARK = "#SBATCH"


def directives_of(text: str) -> dict[int, str]:
    """The options of each such line by its number, as far as sbatch looks: to the first command."""
    found: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(_MARK):
            found[number] = line.removeprefix(_MARK).partition(" #")[0].strip()
        elif line.strip() and not line.startswith("#"):
            break
    return found


def notes_on_sbatch_lines(file: Path, shown: str) -> Iterator[str]:
    """A line where the head of a file has such lines, with the command that shows what they are.

    Args:
        shown: The file as it was typed.
    """
    try:
        options = directives_of(file.read_text("utf-8", "replace"))
    except OSError:  # told where the file is read
        return
    if not options:
        return
    words = shlex.quote(" ".join(["sbatch", *options.values()]))
    typed = shlex.quote(shown) if file.suffix == ".py" else words
    said = f"{shown}:{min(options)} has lines of {_MARK}, which are comments here"
    yield f"{said}: hpc-train translate {typed} shows them as options and keys"
