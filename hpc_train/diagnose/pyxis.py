"""Whether enroot's error is of a container's image, or of its start.

Source: NVIDIA's pyxis (pyxis_slurmstepd.c, enroot.c), which writes enroot's log behind its own line
of what failed.
"""

from __future__ import annotations

import re

_STARTS = re.compile(r"pyxis: (?:imported docker image|container start failed)")
_IMPORTS = re.compile(
    r"pyxis: (?:importing docker image|failed to import|failed to create|creating container)"
)
_ERROR = re.compile(r"error: pyxis: {2,8}\[ERROR\] (?P<what>[^\n]{1,240})")
_OWN = re.compile(r"Command not found: ")  # a rule of its own knows it


class Containers:
    """Takes the lines of pyxis."""

    def __init__(self) -> None:
        self._is_start = False

    def take(self, line: str) -> str:
        """Take a line; returns what enroot says of a start that failed."""
        if "pyxis: " not in line:
            return ""
        if _STARTS.search(line):
            self._is_start = True
        elif _IMPORTS.search(line):
            self._is_start = False
        found = _ERROR.search(line) if self._is_start else None
        return f"container at its start: {found['what']}" if found and not _OWN.search(line) else ""
