"""The first pass over a large log: grep finds the lines that may tell something.

It has the words of all rules as one pattern, and is five times as fast as reading the lines here.
What is small, packed, or one endless line is read by `log_lines`, and so is all where there is no
grep that does it.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.diagnose.line_words import as_grep
from hpc_train.diagnose.log_files import blocks, is_packed, lines_in, log_lines, open_log
from hpc_train.diagnose.sieve import Sieve

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMALL_BYTES = 2_000_000
_TAIL_BYTES = 65_536
# An endless line (a progress bar that only returns to its beginning) would be held as a whole.
_GREP = 'ulimit -v 262144; exec grep -a -n -b -A 2 --no-group-separator -E -e "$1" -- "$2"'
# What of NCCL's own lines tells a failure, and the lines of reports that go on for many.
_NCCL = (
    r"NCCL([^ ]| [^I]|$)|NCCL INFO (NET/|[^ ]{1,200} -> [1-6])|, retrying|Init COMPLETE"
    r"|lagging ranks|collectives? (on ranks|#)|nccl[A-Z][A-Za-z]{3,30}Error"
    r"|^ *(host|rank|exitcode|error_file) *: |^ *(Local|Remote) host: "
    r"|launched (up to|any) operation|^ *Rank [0-9]+ --"
)


# (name, number) -> where in the file the line begins.
Marks = dict[tuple[str, int], int]
_MAX_MARKS = 100_000
_NUMBERS = re.compile(rb"(\d{1,18})[:-](\d{1,18})[:-]")


class _EndlessLineError(Exception):
    """A line is longer than what is read at once; its pieces would have no number."""


def telling_lines(name: str, marks: Marks | None = None) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of the lines of a log that may tell a failure; see `log_lines`.

    Args:
        marks: Gets where they begin, by (name, number), as far as that is known.

    Raises:
        OSError: It cannot be read.
    """
    after = at = 0
    marks = {} if marks is None else marks
    if _is_for_grep(name):
        argv = ["sh", "-c", _GREP, "grep", grep_pattern(), name]
        with subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        ) as grep:
            try:
                for after, at, line in _numbered(grep.stdout):
                    if len(marks) < _MAX_MARKS:
                        marks[name, after] = at
                    yield from lines_in(after, line)
                is_whole = grep.wait() in (0, 1)
            except _EndlessLineError:
                grep.kill()
                is_whole = False
        if is_whole:
            yield from _last_line(name, after, at)
            return
    with open_log(name) as file:
        for number, said in log_lines(file):
            if number > after:
                yield number, said


def grep_pattern() -> str:
    """The words of all rules, for `grep -E`."""
    return f"{as_grep()}|{_NCCL}"


def _is_for_grep(name: str) -> bool:
    path = Path(name)
    if name == "-" or not path.is_file() or path.stat().st_size < _SMALL_BYTES:
        return False
    with path.open("rb") as file:
        return not is_packed(file)


def _numbered(output: object) -> Iterator[tuple[int, int, bytes]]:
    """Yield (number, offset, line) of what grep found and the sieve did not know.

    Its lines are `12:345:text`, and `13-367-text` where they only follow.
    """
    sieve = Sieve(_NUMBERS)
    for block in blocks(output):
        if not block.endswith(b"\n"):
            raise _EndlessLineError
        for _, line in sieve.lines(block, 0):
            if found := _NUMBERS.match(line):
                yield int(found[1]), int(found[2]), line[found.end() :]


def _last_line(name: str, told: int, at: int) -> Iterator[tuple[int, str]]:
    """Yield the last line that is not blank: what was told counts by its distance from the end.

    Args:
        told: The number of the last line that was told, which begins `at`; 0 where none was.
    """
    if not told:
        return
    with Path(name).open("rb") as file:
        file.seek(at)
        newlines = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
        file.seek(max(at, file.tell() - _TAIL_BYTES))
        tail = file.read()
    text = tail.rstrip()
    number = told + newlines - tail.count(b"\n", len(text))
    if number > told:
        yield from lines_in(number, text.rpartition(b"\n")[2])
