"""A job array of sbatch as a sweep: its numbers, and what a task's arguments make of them. Pure."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from hpc_train.config.read import parse_value
from hpc_train.config.sweeps.sweep import MOST_POINTS
from hpc_train.errors import ConfigError

_NAME = "SLURM_ARRAY_TASK_ID"
_SUM = rf"(?:\$?{_NAME}\b|\$\{{{_NAME}\}})\s*(?P<{{0}}>[+-]\s*\d+)?"
_IN_LIST = _SUM.replace("{0}", "in_list")
# A value of the task's number: ${LRS[$SLURM_ARRAY_TASK_ID-1]}, $((SLURM_ARRAY_TASK_ID+1)), itself.
TASK = re.compile(
    rf"\$\{{(?P<list>\w+)\[\s*(?:\$\(\(\s*)?{_IN_LIST}\s*(?:\)\)\s*)?\]\}}"
    rf"|\$\(\(\s*{_SUM.replace('{0}', 'alone')}\s*\)\)"
    rf"|\$(?:{_NAME}\b|\{{{_NAME}\}})"
)
_PART = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
_LIST = re.compile(r"\(([^()$`*?]*)\)\s*\Z", re.DOTALL)
_WRITTEN_OUT = 10  # numbers; more in a row are range(FIRST, LAST)
BY_HAND = "write {KEY} in its place, and --sweep KEY=VALUES behind the command"
_NO_PLACE = (
    "--sweep KEY=VALUES makes a job array, a run a point: write {KEY} among the script's arguments,"
    " where the value belongs"
)


@dataclass
class TaskArray:
    """What `--array` says, and what the arguments of the script make of it.

    Attributes:
        word: The option as it was typed; empty where there is none.
        lists: Those of the script, `LRS=(0.1 0.01)`, by name.
        options: Of `hpc-train submit`.
    """

    word: str = ""
    lists: dict[str, list[str]] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    _numbers: list[int] = field(default_factory=list)
    _at_most: str = ""
    _why: str = ""

    def take(self, word: str, value: str) -> None:
        """Read the option."""
        numbers, _, self._at_most = value.partition("%")
        self.word, self._numbers = word, array_numbers(numbers)
        if not self._numbers:
            self._why = f"has no numbers, or more than the {MOST_POINTS:,} points of a sweep"

    def why_not(self) -> str:
        """Why it has no equivalent; empty where it has, or there is none."""
        return "" if self.options or not self.word else self._why or _NO_PLACE

    def swept(self, words: Sequence[str]) -> list[str]:
        """The words of a script, with `{KEY}` where a task has a value of its own.

        They stay as they are where no sweep has the same runs.
        """
        found = {_source(it) for word in words[1:] for it in TASK.finditer(word)}
        key = _key(words)
        if not (self._numbers and found and key):
            return list(words)
        if len(found) > 1:
            self._why = (
                "each task has several values that belong together, and a sweep takes all"
                " combinations of its keys: submit each task's arguments as a run"
            )
            if len({name for name, _ in found if name}) == 1:
                self._why += f"; where ${_NAME} only names a file, {{{key}}} can stand in its place"
            return list(words)
        values = self._values(*found.pop())
        if self._why:
            return list(words)
        self.options = ["--sweep", f"{key}={values}"]
        if self._at_most.isdecimal() and int(self._at_most):
            self.options += ["--at-most", self._at_most]
        return [words[0], *(TASK.sub(f"{{{key}}}", word) for word in words[1:])]

    def _values(self, name: str, shift: int) -> str:
        """Behind `--sweep KEY=`; `_why` is said where there are none."""
        at = [number + shift for number in self._numbers]
        if not name:
            return as_numbers(at)
        listed = self.lists.get(name)
        if listed is None:
            self._why = f"the values of {name} are not known here; {_NO_PLACE}"
            return ""
        outside = [number for number in at if not 0 <= number < len(listed)]
        if outside:
            self._why = (
                f"{name} has {len(listed)} values, from number 0 to {len(listed) - 1}, and task"
                f" {outside[0] - shift} takes number {outside[0]}"
            )
            return ""
        values = [listed[number] for number in at]
        texts = list(map(_number_or_text, values))
        twice = next((it for it, text in enumerate(texts) if text in texts[:it]), None)
        if twice is not None:
            self._why = f"{name} has {values[twice]} twice, and a sweep takes each value once"
        return as_values(values)


def array_numbers(text: str) -> list[int]:
    """The numbers of `1-5`, `0-9:3` and `1,3,7-9`: sbatch(1), --array.

    None where it is nothing of the kind, or more than fit into a sweep.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        found = _PART.fullmatch(part.strip())
        if found is None:
            return []
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or not step or (last - first) // step >= MOST_POINTS:
            return []
        numbers |= set(range(first, last + 1, step))
    return sorted(numbers) if len(numbers) <= MOST_POINTS else []


def list_of(value: str) -> list[str] | None:
    """The values of `(0.1 0.01)`; None where only the shell can tell them."""
    found = _LIST.match(value.strip())
    try:
        return shlex.split(found[1], comments=True) if found else None
    except ValueError:
        return None


def _source(found: re.Match[str]) -> tuple[str, int]:
    """The list, and what is added to the task's number."""
    shift = found["in_list"] or found["alone"] or "0"
    return found["list"] or "", int("".join(shift.split()))


def _key(words: Sequence[str]) -> str:
    """A name for the first argument that is all of a task's value; empty where none is."""
    for at, word in enumerate(words[1:], 1):
        name, _, value = word.rpartition("=")
        found = TASK.fullmatch(value)
        if found is None:
            continue
        before = words[at - 1] if words[at - 1][:1] == "-" and at > 1 else ""
        parts = re.findall(r"[A-Za-z]\w*", (name or before).replace("-", "_"))
        key = parts[-1] if parts else (found["list"] or "task").lower()
        while any(f"{{{key}}}" in other for other in words):  # it stays as it is
            key += "_"
        return key
    return ""


def as_values(values: Sequence[str]) -> str:
    """What stands behind `--sweep KEY=` for them, each as the text that it is."""
    return ",".join(map(_quoted, values)) if len(values) > 1 else f"[{_quoted(values[0])}]"


def as_numbers(numbers: Sequence[int]) -> str:
    """The same of whole numbers: a range where many of them follow each other."""
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    if len(numbers) <= _WRITTEN_OUT or len(steps) > 1:
        return ",".join(map(str, numbers))
    (step,) = steps
    by = f",{step}" if step > 1 else ""
    return f"range({numbers[0]},{numbers[-1] + 1}{by})"


def _number_or_text(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _quoted(value: str) -> str:
    """A value of a sweep, in quotes where without them it would be read as another one."""
    try:
        read = parse_value(f"[{value}]", "sweep")
        is_same = len(read) == 1 and (str(read[0]) == value or _is_number(read[0], value))
    except ConfigError:
        is_same = False
    return value if is_same else json.dumps(value, ensure_ascii=False)


def _is_number(read: object, value: str) -> bool:
    is_plain = re.fullmatch(r"[+-]?\d+\.?\d*(e[+-]?\d+)?|\.\d+", value, re.IGNORECASE)
    return type(read) is float and is_plain is not None and read == float(value)
