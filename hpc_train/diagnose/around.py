"""What the lines before one tell of it: the time, the step, and whether tasks are numbered."""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.diagnose.log_files import ONE_LINE, blocks, open_log, unfolded
from hpc_train.diagnose.who import LABEL
from hpc_train.runs.log_tail import COLOUR

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence

_BEFORE_BYTES = 1 << 16
_AFTER_LINES = 400  # a traceback may be long
_AFTER_BYTES = 1 << 16
_DAY_S = 86_400  # another zone's clock
_LABEL_OF = re.compile(r"^ {0,5}(\d{1,5}): .{0,80}?\[rank(\d+)\]", re.MULTILINE)
_ISO = re.compile(
    r"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"(Z|[+-]\d\d:?\d\d)?"
)
# The same without groups, as loggers write it before each line.
_CLOCK = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
)
# glog, and torch's own logger, whose number of the month has no nought before it: E321.
_GLOG = re.compile(r"(?:^|\W)[EWIF](\d\d?)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,9}) ")
# vLLM's: `ERROR 08-03 21:49:23 [core.py:1231]`.
_SHORT = re.compile(r"\b(?:INFO|WARNING|ERROR) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) \[")
_SYSLOG = re.compile(r"^([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) ")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
# Not `step: 2(factor)`, as nccl-tests begins, nor `Step 2/6 : COPY`, as docker build does.
_STEP = re.compile(
    r"(?:^|[\s\[{(,'\"])(?:global[_ ])?[Ss]tep['\"]?\s{0,3}[:=]?\s{0,3}(\d{1,12})\b"
    r"(?!\(|/\d+ : [A-Z]+ )"
)
# What launchers write before each line.
PREFIX = re.compile(r"^(?:\[(?:rank|default)\d+\]: ?| {0,5}\d{1,5}: |\[\d+,\d+\]<\w+>:? ?)+")
# What a traceback ends with, where a paste has taken the blanks before its lines.
_ENDS = re.compile(
    r"(?:[A-Za-z_][\w.]{0,200})?(?:Error|Exception|Interrupt|Exit|Iteration)(?::|\s*$)"
)
_BEGIN = "Traceback (most recent call last)"
# The frame that rich draws (typer, Lightning's CLI), a place in it, which may be of two lines, and
# what Python writes of such a place.
_BOX = re.compile(r"\u256d\u2500+ Traceback \(most")
_BOX_LINE = re.compile(r"\u2502 (.*?) *\u2502?\s*$")
_BOX_END = "\u2570\u2500"
_BOX_PLACE = re.compile(r"^(\S.{0,300}?\.\w{1,4}):(\d{1,7}) in (\S{1,200})$")
# A field of torchrun's report, and the time in it (torch's elastic/multiprocessing/errors).
_FIELD = re.compile(r"\b(?:host|rank|exitcode|error_file|traceback) +: ")
_TIME_FIELD = re.compile(r"\btime {1,9}: \d{4}-[\d:_-]{10,20}[^\n]*(?:\n[^\n]*){0,4}\Z")


@dataclass(frozen=True)
class Around:
    """What the lines near one say; the time and the step are those told last before it.

    Attributes:
        is_later: Whether the line itself says no time, so that it was written after that one.
        is_dated: Whether that time is told with its year, which else is that of the file's end.
        is_labelled: Whether the lines near it begin with a task's number, as `srun -l` writes it.
        lines: The line itself and those behind it.
    """

    time: float | None = None
    is_later: bool = False
    is_dated: bool = True
    step: int | None = None
    is_labelled: bool = False
    lines: tuple[str, ...] = ()

    def traceback(self) -> tuple[str, ...]:
        """The traceback that begins with the line, up to its exception."""
        return tuple(line for _, line in self.numbered_traceback())

    def numbered_traceback(self) -> list[tuple[int, str]]:
        """The same, each line without what stands before it, with its number behind the first."""
        begin = self.lines[0].find(_BEGIN) if self.lines else -1
        if self.lines and ONE_LINE in self.lines[0]:
            return _one_line(self.lines[0][begin:])
        if self.lines and _BOX.search(self.lines[0]):
            return _boxed(self.lines)
        writer, is_indent = _writer(self.lines, max(begin, 0))
        found = [(0, PREFIX.sub("", line[max(begin, 0) :], count=1)) for line in self.lines[:1]]
        behind = 0
        is_flat = _is_flat(self.lines[1:3], writer)
        for number, line in enumerate(self.lines[1:], 1):
            match = writer.match(line)
            if match is None and line.strip() and is_indent:
                break
            if match is None or not line.strip():  # another process's
                continue
            said = line[match.end() :]
            found.append((number, said))
            behind = 0 if said.startswith('File "') else behind + bool(said.strip("~^ "))
            if is_flat and behind < 2 and not _ENDS.match(said):  # a frame has one line of code
                continue
            if said[:1].strip() and (is_flat or not said.startswith("Traceback")):
                break
        return found

    @property
    def is_whole(self) -> bool:
        """Whether the lines end where the log does, and not for their number."""
        size = sum(len(line) + 1 for line in self.lines)
        return len(self.lines) < _AFTER_LINES and size < _AFTER_BYTES


def _is_flat(near: Sequence[str], writer: re.Pattern[str]) -> bool:
    """Whether frames begin where the traceback does."""
    found = ((writer.match(line), line) for line in near)
    return any(match and line[match.end() :].startswith('File "') for match, line in found)


def _boxed(lines: Sequence[str]) -> list[tuple[int, str]]:
    """The same of a traceback that rich has drawn, as Python would have written it."""
    found, half, is_open = [(0, f"{_BEGIN}:")], "", True
    for number, line in enumerate(lines[1:], 1):
        inside = _BOX_LINE.search(line)
        if is_open and inside:
            said, half = f"{half}{inside[1]}", ""
            if place := _BOX_PLACE.match(said):
                found.append((number, '  File "{}", line {}, in {}'.format(*place.groups())))
            elif said.startswith("/") and " " not in said:
                half = said
        elif is_open and _BOX_END in line:
            is_open = False
        elif not is_open and (said := PREFIX.sub("", line, count=1).strip()):
            found.append((number, said))
            break
    return found


def _one_line(text: str) -> list[tuple[int, str]]:
    """The same of a traceback that JSON or a repr has put into one line."""
    found: list[tuple[int, str]] = []
    for line in unfolded(text):
        found.append((0, line))
        if line[:1].strip() and not line.startswith("Traceback"):
            break
    return found


def _writer(lines: Sequence[str], begin: int) -> tuple[re.Pattern[str], bool]:
    """What the lines of a traceback have before their text, and whether that is nothing but blanks.

    Args:
        begin: Where the text of the first line begins.
    """
    before = lines[0][:begin] if lines else ""
    parts = [re.escape(part) for part in _CLOCK.split(before)]
    writer = re.compile(_CLOCK.pattern.join(parts))
    near = [line for line in lines[1:6] if 'File "' in line]
    if before and any((found := writer.match(it)) and it[found.end() :][:2] == "  " for it in near):
        return writer, not before.strip()
    found = next((found for line in near if (found := PREFIX.match(line))), None)
    return re.compile(re.escape(found[0]) if found else ""), found is None


def _are_labels(text: str) -> bool:
    """Whether several ranks speak, one of them twice; a list of lines has each number once.

    Where a line tells another rank than its label, the tasks are launchers.
    """
    numbers = LABEL.findall(text)
    if any(label != rank for label, rank in _LABEL_OF.findall(text)):
        return False
    return 1 < len({*numbers}) < len(numbers)


def look_around(place: Evidence, offset: int | None = None) -> Around:
    """Read a log again near a line. Where it cannot be read there is only the line itself.

    Args:
        offset: Where the line begins; None where it has to be counted for.
    """
    clock, is_dated = _clock(place.text, place.file)
    own = Around(time=clock, is_dated=is_dated, lines=(place.text,))
    if place.file in ("", "-") or not place.line:
        return own
    try:
        if offset is None:
            before, lines = _near(place.file, place.line)
        else:
            before, lines = _near_offset(place.file, offset)
    except OSError:
        return own
    text = COLOUR.sub("", before)
    steps = _STEP.findall(text)
    if own.time is None:
        clock, is_dated = _clock(text, place.file)
    return Around(
        time=clock,
        is_later=own.time is None and not (_FIELD.search(place.text) and _TIME_FIELD.search(text)),
        is_dated=is_dated,
        step=_counted([int(step) for step in steps]),
        is_labelled=_are_labels("\n".join([text, *lines])),
        lines=tuple(COLOUR.sub("", line) for line in lines) or own.lines,
    )


def _counted(steps: Sequence[int]) -> int | None:
    """The last of steps that go up; a number alone may be of anything."""
    return steps[-1] if steps and min(steps) < steps[-1] == max(steps) else None


def _near(name: str, line: int) -> tuple[str, list[str]]:
    """The text before a line, and the lines from it on."""
    seen, before = 0, b""
    with open_log(name) as file:
        read = blocks(file)
        for block in read:
            count = block.count(b"\n")
            if seen + count < line - 1 or (seen + count == line - 1 and block.endswith(b"\n")):
                seen += count
                before = (before + block)[-_BEFORE_BYTES:]
                continue
            lines = (block + next(read, b"")).split(b"\n")
            here = line - 1 - seen
            before = (before + b"\n".join(lines[:here]))[-_BEFORE_BYTES:]
            behind = lines[here : here + _AFTER_LINES]
            break
        else:
            behind = []
    return _text(before), [_text(item) for item in behind]


def _near_offset(name: str, offset: int) -> tuple[str, list[str]]:
    with Path(name).open("rb") as file:
        begin = max(0, offset - _BEFORE_BYTES)
        file.seek(begin)
        before = file.read(offset - begin)
        lines = file.read(_AFTER_BYTES).split(b"\n")[:_AFTER_LINES]
    return _text(before), [_text(item) for item in lines]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r", "\n")


def _clock(text: str, file: str) -> tuple[float | None, bool]:
    """Return what `time_of` does, not after the file's end, and whether its year was told."""
    try:
        end = Path(file).stat().st_mtime
    except (OSError, ValueError):
        end = time.time()
    year = time.localtime(end).tm_year
    clock = time_of(text, year)
    found = _last_time(text)
    is_dated = found is None or found.re is _ISO
    if not is_dated and clock is not None and clock > end + _DAY_S:
        clock = time_of(text, year - 1)
    return clock, is_dated


def _last_time(text: str) -> re.Match[str] | None:
    last = [found for form in (_ISO, _GLOG, _SHORT) for found in [*form.finditer(text)][-1:]]
    return max(last, key=lambda item: item.start()) if last else _SYSLOG.search(text)


def time_of(text: str, year: int) -> float | None:
    """The last time that a text tells, in seconds since the epoch; local where it names no zone.

    Args:
        text: Of any kind.
        year: That of lines that do not say theirs.
    """
    found = _last_time(text)
    try:
        if found is not None and found.re is not _SYSLOG:
            if found.re is _ISO:
                return _iso(found)
            return _moment([year, *map(int, found.groups()[:5])]).timestamp()
        if found is not None:
            name, *rest = found.groups()
            return _moment([year, _MONTHS.index(name) + 1, *map(int, rest)]).timestamp()
    except (ValueError, OverflowError):  # 2026-99-99
        return None
    return None


def _iso(found: re.Match[str]) -> float:
    *numbers, part, zone = found.groups()
    moment = _moment([*map(int, numbers)])
    seconds = float(f"0.{part}") if part else 0.0
    if not zone:
        return moment.timestamp() + seconds
    sign = -1 if zone[0] == "-" else 1
    digits = zone[1:].replace(":", "")
    away_s = 0 if zone == "Z" else sign * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
    return timegm(moment.timetuple()) - away_s + seconds


def _moment(numbers: Sequence[int]) -> datetime:
    year, month, day, hour, minute, second = numbers
    return datetime(year, month, day, hour, minute, second)
