"""One line of a log -> the records in it.

The form is that of ncclDebugLog in NCCL's src/debug.cc (2.4 to 2.30):
`host:pid:tid [cudaDev] file:line (function) NCCL WARN text`, for INFO without a place. Launchers
write before it, plugins write `.c` files (HPC-X) or a function (aws-ofi-nccl) as the place, and
ranks that write at once put several records into one line. A container's log may wrap each line
into JSON, a terminal may colour it.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.diagnose.log_files import unfolded
from hpc_train.runs.log_tail import COLOUR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_MAX_RECORDS = 64
_SHORT = 160
_WINDOW = 512  # host, pid, tid, device, place and function before the level
_LEVEL = re.compile(r"(?<![A-Za-z_])NCCL (INFO|WARN)(?: |$)")
# Each alternative starts at the edge of a word: a long run of word characters is tried once. A host
# behind digits and a colon is glued to a time zone or to a line that was cut; a time alone is none.
_HEAD = re.compile(
    r"(?:(?<![\w.-])(?<!\d\d:)(?!(?:[\d-]{8,10}T)?\d\d:[0-5]\d:[0-5]\d(?!\d))"
    r"(?P<host>[A-Za-z0-9][\w.-]{0,252}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10})"
    r"(?!\S) ?)?"
    r"(?:\[-?\d{1,4}\] ?)?"
    r"(?:(?<![\w/.+-])(?P<place>[\w/.+-]{1,200}:\d{1,6})(?: \(.{0,160}?\))? )?$"
)
# What stands alone: NCCL's WARN without its name (2.4, pasted), and the logger of aws-ofi-nccl's
# own test programs.
_ALONE = re.compile(
    r"(?:^|[\s>|])(?P<place>(?:\w{1,40}/){0,3}\w{1,40}\.(?:cc|cu|h|c):\d{1,6}) WARN (?P<text>.+)"
    r"|(?P<level>WARN|INFO): Function: (?P<call>\w{1,80}) Line: (?P<at>\d{1,6}): (?P<said>.+)"
)
# Packages of RCCL name the folder that they were built in.
_BUILT_IN = re.compile(r"(?<!\S)/\S{40,400}(?=/src/[\w/]{1,80}\.\w{1,3}:\d)")
_WRAPPED = re.compile(r'\{.{0,4000}?"(?:log|message|msg)" ?: ?"')


class Record(NamedTuple):
    """What one rank wrote; host, pid, tid and place are empty where the log lacks them."""

    host: str
    pid: str
    tid: str
    place: str
    level: str
    text: str


def records_of(line: str, hosts: Collection[str] = ()) -> list[Record]:
    """Return the records of a line, in their order; none where NCCL says nothing.

    Args:
        line: Of any kind.
        hosts: Those that are known: where one record's end is glued to the next one's host, they
            tell the two apart.
    """
    if "NCCL" not in line or "WARN: Function" in line:
        return _alone(line)
    found: list[tuple[int, str, re.Match[str] | None, re.Match[str]]] = []
    end = 0
    for mark in islice(_LEVEL.finditer(line), _MAX_RECORDS):
        head = _HEAD.search(line, max(end, mark.start() - _WINDOW), mark.start())
        host = (head and head["host"]) or ""
        glued = len(host)
        if found and host not in hosts:
            host = max((name for name in hosts if host.endswith(name)), key=len, default=host)
        start = mark.start() if head is None else head.start() + glued - len(host)
        found.append((start, host, head, mark))
        end = mark.end()
    ends = [start for start, *_ in found[1:]] + [len(line)] * bool(found)
    return [
        Record(
            host=host,
            pid=(head and head["pid"]) or "",
            tid=(head and head["tid"]) or "",
            place=(head and head["place"]) or "",
            level=mark[1],
            text=line[mark.end() : stop].strip(),
        )
        for (_, host, head, mark), stop in zip(found, ends, strict=True)
    ]


def torn_names(of_pids: Iterable[Collection[str]]) -> Iterator[str]:
    """Yield hosts that are the end of another one's name, with a process of one number."""
    for names in of_pids:
        yield from (end for end in names for name in names if end != name and name.endswith(end))


def _alone(line: str) -> list[Record]:
    found = _ALONE.search(line) if "WARN" in line or "Function: " in line else None
    if found is None:
        return []
    if found["call"]:
        place = f"{found['call']}:{found['at']}"
        return [Record("", "", "", place, found["level"], found["said"].strip())]
    return [Record("", "", "", found["place"], "WARN", found["text"].strip())]


def plain_lines(line: str) -> list[str]:
    """Return what a line says without colours, or the lines in its JSON."""
    if "\x1b" in line:
        line = COLOUR.sub("", line)
    if "{" not in line or not (found := _WRAPPED.search(line)):
        return unfolded(line)
    try:
        document = json.JSONDecoder().raw_decode(line, found.start())[0]
    except ValueError:
        return unfolded(line)
    said = next((document[name] for name in ("log", "message", "msg") if name in document), "")
    return said.splitlines() if isinstance(said, str) else [line]


def short_places(text: str) -> str:
    """Return a line without long folders in front of a source file, which would hide its words."""
    return _BUILT_IN.sub("...", text) if len(text) > _SHORT and "/src/" in text else text


def version_of(major: str, minor: str, patch: str | None) -> str:
    """Return `2.10.3`; torch 1.x took NCCL's number 21003 for 21.0.3."""
    if int(major) < 20:
        return ".".join(part for part in (major, minor, patch) if part is not None)
    number = int(major) * 1000 + int(minor) * 100 + int(patch or 0)
    return f"{number // 10_000}.{number % 10_000 // 100}.{number % 100}"
