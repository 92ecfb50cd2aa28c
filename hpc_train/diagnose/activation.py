"""Whether a Python lacks a package as the job's shell had not activated the environment before."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hpc_train.config.python_text.distributions import is_well_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hpc_train.diagnose.rules import Evidence, Failure, Hit

_MODULE = re.compile(r"No module named '?([\w.]+)")
# What an environment brings with it; of another command nobody knows where it is from.
_COMMAND = re.compile(r"\b(?:python[\d.]{0,5}|torchrun|accelerate|deepspeed)['\"\u2019]?: ")
_MAY_BE_OWN = ("datasets", "evaluate")  # folders of many programs, too
# A frame in a package, and a Python that says what it lacks, of which the beginning is no system's.
_FRAME = re.compile(r'File "([^"]{0,300})/lib(?:64)?/python[\d.]{1,5}/(?:site|dist)-packages/')
_PYTHON = re.compile(r"(\S{1,300})/bin/python[\d.]{0,5}: (?:No module|Error while finding module)")
_OF_SYSTEM = ("", "/usr", "/usr/local")
_MAX_FILES = 10_000


class Activation:
    """Takes lines; keeps where a file shows a Python that is no system's."""

    def __init__(self) -> None:
        self._own: dict[str, int] = {}

    def take(self, line: str, where: Evidence) -> None:
        """Take a line of any kind."""
        found = _FRAME.search(line) if 'File "' in line else None
        if found is None and "/bin/python" in line and " module" in line:
            found = _PYTHON.search(line)
        if not found or found[1] in _OF_SYSTEM or found[1].endswith("/.local"):
            return
        if where.file in self._own or len(self._own) < _MAX_FILES:
            self._own[where.file] = where.line

    def told(
        self, failures: tuple[Failure, ...], notes: tuple[Failure, ...], last: Sequence[Hit]
    ) -> tuple[tuple[Failure, ...], tuple[Failure, ...]]:
        """Return both; what was not activated stands before what is missing of it, else behind.

        Args:
            last: What is told where nothing else is known.
        """
        if not failures:
            return failures, notes
        named = {hit.rule.name: hit.failure() for hit in last if failures[0].kind == "last"}
        lacking = _first(failures, "missing_module") or named.get("command_missing")
        root = _first(failures, "conda") or _first([it.failure() for it in last], "not_activated")
        if lacking is None or root is None:
            return failures, notes
        if self._is_why(root, lacking):
            pair = replace(root, kind="cause"), lacking
        else:
            pair = lacking, replace(root, kind="last")
        names = [it.name for it in pair]
        others = (it for it in failures if it.name not in names)
        return (*pair, *others), tuple(it for it in notes if it.name not in names)

    def _is_why(self, root: Failure, lacking: Failure) -> bool:
        for one in (lacking, *lacking.others):
            for at in one.firsts or one.evidence:
                before = [it.line for it in root.firsts if it.file == at.file and it.line < at.line]
                if before and self._own.get(at.file, 0) < before[0] and _of_environment(one):
                    return True
        return False


def _first(failures: Iterable[Failure], name: str) -> Failure | None:
    return next((it for it in failures if it.name == name), None)


def _of_environment(lacking: Failure) -> bool:
    text = lacking.evidence[0].text
    if lacking.name == "command_missing":
        return bool(_COMMAND.search(text))
    names = _MODULE.findall(text)
    return any(is_well_known(it) and it not in _MAY_BE_OWN for it in names)
