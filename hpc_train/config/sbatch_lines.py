"""Lines of #SBATCH at the head of a script of Python's or of a config, which only sbatch reads."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

_MARK = "#SBATCH"


def notes_on_sbatch_lines(file: Path, shown: str) -> Iterator[str]:
    """A line where the head of a file has such lines, with the command that shows what they are.

    Args:
        shown: The file as it was typed.
    """
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:  # told where the file is read
        return
    options: list[str] = []
    first = 0
    for number, line in enumerate(lines, start=1):
        if line.startswith(_MARK):
            first = first or number
            options.append(line.removeprefix(_MARK).partition(" #")[0].strip())
        elif line.strip() and not line.startswith("#"):
            break  # as sbatch, which looks no further
    if not options:
        return
    words = shlex.quote(" ".join(["sbatch", *options]))
    typed = shlex.quote(shown) if file.suffix == ".py" else words
    said = f"{shown}:{first} has lines of {_MARK}, which are comments here"
    yield f"{said}: hpc-train translate {typed} shows them as options and keys"
