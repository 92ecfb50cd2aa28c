"""Messages of several lines -> one: written so by their program, or wrapped by a terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hpc_train.diagnose.around import PREFIX

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence

_MAX_LINES = 8
_MAX_TEXT = 4000
_MAX_EVIDENCE = 300
_MESH_OPEN = re.compile(r"connectFullMesh failed with \[[^\]\s]{1,200}\](?!.*\(rank=)")
# transformers, diffusers, trl: an import that is done late tells its reason in the next line.
_LAZY = "because of the following error (look up to see its traceback):"
_LAZY_HEADS = re.compile(
    r"RuntimeError: Failed to import .{1,3000}\(look up to see its traceback\): (?=\S)"
)
_CALLS = "Detected mismatch between collectives on ranks. Rank"
_CALL = "CollectiveFingerPrint("
# A line that another process wrote, or another message.
_STARTS = re.compile(
    r"\s{0,8}(?:\[rank\d|\[\d+,\d+\]<|\[[EWI]\d*\b|Traceback|\S{1,80}(?:Error|Exception)\b"
    r"|\d{4}-\d\d|srun:|slurmstepd:)"
)


class Wrapped:
    """Holds a message whose end has not come, as far as that is bounded."""

    def __init__(self) -> None:
        self._held: list[tuple[str, Evidence]] = []

    def take(self, line: str, where: Evidence) -> list[tuple[str, Evidence]]:
        """Take a line, and return what is whole by now."""
        before: list[tuple[str, Evidence]] = []
        if self._held and not self._goes_on(line, where):
            before = self.rest()
        self._held.append((line, where))
        if len(self._held) >= _MAX_LINES or not _is_open(self._text()):
            return [*before, *self.rest()]
        return before

    def rest(self) -> list[tuple[str, Evidence]]:
        """Return what is held, as one."""
        if not self._held:
            return []
        text, where = self._text(), self._held[0][1]
        if len(self._held) > 1:
            where = replace(where, text=" ".join(text.split())[:_MAX_EVIDENCE])
        self._held = []
        return [(text, where)]

    def _goes_on(self, line: str, where: Evidence) -> bool:
        last = self._held[-1][1]
        is_next = (where.file, where.line) == (last.file, last.line + 1)
        if self._text().endswith(_LAZY):
            return (
                is_next and line.strip() != "" and not _STARTS.match(PREFIX.sub("", line, count=1))
            )
        is_indented = line[:1].isspace() or _CALLS in self._text()
        return is_next and is_indented and not _STARTS.match(line)

    def _text(self) -> str:
        first, *others = (line.rstrip("\r\n") for line, _ in self._held)
        if _CALLS in first:  # a terminal cuts where its width ends
            return "".join([first, *others])
        if _LAZY in first:
            others = [PREFIX.sub("", line, count=1) for line in others]
        return " ".join([first, *(line.strip() for line in others)])


def _is_open(text: str) -> bool:
    if len(text) > _MAX_TEXT:
        return False
    if _CALLS in text:
        rest = text.partition(_CALL)[2]
        return not rest or rest.count("(") >= rest.count(")")
    return text.endswith(_LAZY) or _MESH_OPEN.search(text) is not None


def innermost_import(line: str) -> str:
    """Return the reason alone of imports that failed one within the other; else the line."""
    return _LAZY_HEADS.sub("ImportError: ", line, count=1) if "look up to see" in line else line
