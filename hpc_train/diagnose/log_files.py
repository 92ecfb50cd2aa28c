"""A log from wherever it lies, as the lines that can tell something.

Plain, gzip and UTF-16 (Windows shells), in blocks of bounded size.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import os
import sys
import zlib
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.diagnose.sieve import Sieve
from hpc_train.errors import HpcTrainError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A line longer than this is cut: NCCL's own longest (a merged list of HCAs) has a few thousand.
MAX_LINE = 64 * 1024
_BLOCK = 1 << 18
ONE_LINE = "Traceback (most recent call last):\\n"
# Of formats that are no text; NUL is none of them: a log on NFS may have holes.
_CONTROLS = frozenset((*range(1, 7), *range(14, 27), *range(28, 32)))
_SUFFIXES = (".log", ".out", ".err", ".txt", ".gz", "trace_rank_", "flight-recorder-")


def find_logs(words: Iterable[str]) -> list[str]:
    """Return the files that the words mean: a file, a folder's logs, a pattern, `-` for stdin.

    Raises:
        UsageError: One of them is nothing that could be read.
        HpcTrainError: Standard input is empty.
    """
    found: list[str] = []
    for word in words:
        path = Path(word)
        if word == "-":
            if not _head(sys.stdin.buffer):
                raise HpcTrainError("standard input is empty", "pipe a log into it, or name one")
            found.append(word)
        elif (path.is_char_device() or path.is_block_device()) and word != os.devnull:
            raise UsageError(f"{word} is a device", "name a log, or a folder of logs")
        elif path.is_dir():
            files = sorted(str(item) for item in path.rglob("*") if item.is_file())
            logs = [name for name in files if _is_log(Path(name).name)]
            found += logs or files
        elif path.exists():
            found.append(word)
        elif names := sorted(glob.glob(word, recursive=True)):  # noqa: PTH207 - absolute ones too
            found += [name for name in names if Path(name).is_file()]
        else:
            raise UsageError(f"{word}: No such file or folder", "name a log that you can read")
    return list(dict.fromkeys(found))


def _is_log(name: str) -> bool:
    return name.startswith("nccl") or any(suffix in name for suffix in _SUFFIXES)


@contextmanager
def open_log(name: str) -> Iterator[Any]:
    """Open a log as UTF-8 bytes, whatever it is packed or written in.

    Raises:
        OSError: It cannot be read.
    """
    with ExitStack() as stack:
        file: Any = sys.stdin.buffer
        if name != "-":
            file = stack.enter_context(open(name, "rb", opener=_open_at_once))
        if file.peek(2)[:2] == b"\x1f\x8b":
            file = stack.enter_context(gzip.GzipFile(fileobj=file))
        coding = _coding(_head(file))
        yield codecs.EncodedFile(file, "utf-8", coding, "replace") if coding else file


def _open_at_once(name: str, flags: int) -> int:
    """A pipe that nobody writes into is empty, and nothing to wait for (fifo(7))."""
    descriptor = os.open(name, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def is_binary(name: str) -> bool:
    """Whether a file begins with bytes that no log has; False where it cannot be read."""
    if name == "-":
        return False
    try:
        with open_log(name) as file:
            head = bytes(file.read(512))
    except (OSError, EOFError, zlib.error):
        return False
    return not _CONTROLS.isdisjoint(head)


def is_packed(file: Any) -> bool:
    """Whether a file that was just opened is not its own lines: gzip, UTF-16."""
    head = _head(file)
    return head[:2] == b"\x1f\x8b" or bool(_coding(head))


def _coding(head: bytes) -> str:
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    is_wide = len(head) >= 8 and head[1::2].count(0) > len(head) // 4 and 0 not in head[::2]
    return "utf-16-le" if is_wide else ""


def _head(file: Any) -> bytes:
    try:
        return bytes(file.peek(64)[:64])
    except (EOFError, zlib.error):
        return b""


def log_lines(file: Any) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of the lines that may tell something; numbers are grep's, from 1.

    A line that says word for word what an earlier one said is left out, unless it is a warning,
    and so is a hop that differs from an earlier one in its channel alone. The last line is not.
    """
    sieve = Sieve()
    number, line_number, block = 1, 0, b""
    for block in blocks(file):
        for line_number, line in sieve.lines(block, number):
            yield from lines_in(line_number, line)
        number += block.count(b"\n")
    end = len(block.rstrip())
    last = number - block.count(b"\n", end)
    if end and line_number < last:
        start = max(block.rfind(b"\n", 0, end) + 1, end - MAX_LINE)
        yield last, block[start:end].decode("utf-8", "replace")


def lines_in(number: int, line: bytes) -> Iterator[tuple[int, str]]:
    """Yield what a line says: a progress bar writes over its own."""
    for part in line.split(b"\r"):
        yield number, part[:MAX_LINE].decode("utf-8", "replace")


def unfolded(line: str) -> list[str]:
    """Return the lines of a traceback that JSON or a repr made one line, else the line itself."""
    if ONE_LINE not in line:
        return [line]
    return [part.replace('\\"', '"') for part in line.split("\\n")]


def blocks(file: Any) -> Iterator[bytes]:
    """Yield whole lines; an endless one comes in pieces.

    Its own rest is kept here: after a readline() the buffer is short, and so is the next read1().
    """
    rest = b""
    while more := _read(file):
        block = rest + more
        end = block.rfind(b"\n") + 1
        if not end and len(block) > MAX_LINE:
            end = len(block)
        rest = block[end:]
        if end:
            yield block[:end]
    if rest:
        yield rest


def _read(file: Any) -> bytes:
    try:
        read = file.read1 if isinstance(file, io.BufferedIOBase) else file.read
        return bytes(read(_BLOCK))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return b""  # a cut .gz: what came before it is read
