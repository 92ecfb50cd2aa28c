"""A shell's loops over values, around a training, as a sweep: one key for each loop. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpc_train.config.sweeps.sweep import MOST_POINTS
from hpc_train.plan.translate_array import as_numbers, as_values

_FOR = re.compile(r"for\s+(?P<name>\w+)\s+in\s+(?P<values>.+?)(?:\s*;?\s*do)?")
_LIST = re.compile(r"[\"']?\$\{(\w+)\[[@*]\]\}[\"']?")
_RANGE = re.compile(r"\{(-?\d+)\.\.(-?\d+)\}")
_SEQ = re.compile(r"\$\(\s*seq\s+(-?\d+)(?:\s+(-?\d+))?\s*\)")
_PLAIN = re.compile(r"[\w.+\-/: ]+")


@dataclass
class _Loop:
    line: str
    name: str
    text: str  # behind `--sweep NAME=`; empty where the shell alone can tell the values
    is_swept: bool = False


@dataclass
class ShellLoops:
    """What `for NAME in VALUES` says, and what the arguments of the script make of it.

    Attributes:
        options: Of `hpc-train submit`.
    """

    options: list[str] = field(default_factory=list)
    _all: list[_Loop] = field(default_factory=list)
    _open: list[_Loop] = field(default_factory=list)  # the outermost first

    def take(self, line: str, lists: Mapping[str, Sequence[str]]) -> bool:
        """Whether it is a line of a loop over values that are known: its head, `do` or `done`.

        Args:
            line: `for lr in 0.1 0.01`, with or without its `do`.
            lists: The script's own, `LRS=(0.1 0.01)`, by name.
        """
        if line in ("do", "done"):
            known = bool(self._open and self._open[-1].text)
            if line == "done" and self._open:
                self._open.pop()
            return known
        if line.split()[0] not in ("for", "while", "until"):
            return False
        found = _FOR.fullmatch(line)
        text = _values(found["values"].strip(), lists) if found else ""
        loop = _Loop(line, found["name"] if found else "", text)
        self._open.append(loop)
        self._all += [loop] if text else []
        return bool(text)

    def swept(self, words: Sequence[str]) -> list[str]:
        """The words of a script with `{lr}` for `$lr` of each loop that is open around it."""
        made = [*words]
        for loop in (it for it in self._open if it.text):
            used = re.compile(rf"\$(?:{loop.name}\b|\{{{loop.name}\}})")
            filled = [words[0], *(used.sub(f"{{{loop.name}}}", it) for it in made[1:])]
            if filled != made:
                self.options += ["--sweep", f"{loop.name}={loop.text}"]
                loop.is_swept, made = True, filled
        return made

    def left(self) -> list[tuple[str, str]]:
        """Each loop that no script has a value of, and what it may be."""
        of_it = (
            "a loop is the shell's: of trainings it is a sweep, with {%s} for $%s: --sweep %s=%s"
        )
        return [
            (it.line, of_it % (it.name, it.name, it.name, it.text))
            for it in self._all
            if not it.is_swept
        ]

    def became(self) -> list[tuple[str, str]]:
        """Each loop that is a sweep, and the options that say so."""
        return [
            (it.line, f"--sweep {it.name}={it.text}, a run for each of them")
            for it in self._all
            if it.is_swept
        ]


def _values(text: str, lists: Mapping[str, Sequence[str]]) -> str:
    """Behind `--sweep NAME=`; empty where the shell alone can tell them, or of one twice."""
    if listed := _LIST.fullmatch(text):
        values = list(lists.get(listed[1], ()))
    elif found := _RANGE.fullmatch(text) or _SEQ.fullmatch(text):
        first, last = (int(found[1]), int(found[2])) if found[2] else (1, int(found[1]))
        is_sweep = first <= last < first + MOST_POINTS
        return as_numbers(range(first, last + 1)) if is_sweep else ""
    elif _PLAIN.fullmatch(text):
        values = text.split()
    else:
        return ""
    return as_values(values) if values and len({*values}) == len(values) else ""
