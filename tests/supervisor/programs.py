"""Slurm's programs in a folder of their own, where they say what a test needs to hear."""

from __future__ import annotations

import shlex
from pathlib import Path


class Slurm:
    """Each program notes what it was asked. Only those that a test has made are on `path`."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.notes = folder / "asked"
        self.path = f"{self.bin}:/bin"

    def says(self, program: str, *lines: str, code: int = 0) -> None:
        """From now on, `program` prints `lines` and exits with `code`."""
        text = shlex.quote("".join(f"{line}\n" for line in lines))
        self.does(program, f"printf %s {text}; exit {code}")

    def does(self, program: str, script: str) -> None:
        """From now on, `program` is this shell script."""
        note = f'echo "{program} $*" >> {shlex.quote(str(self.notes))}'
        file = self.bin / program
        file.write_text(f"#!/bin/sh\n{note}\n{script}\n")
        file.chmod(0o755)

    def asked(self, program: str) -> list[str]:
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [line for line in lines if line.startswith(f"{program} ")]
