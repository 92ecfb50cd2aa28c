"""A log from wherever it lies, as the lines that can tell something.

Plain, gzip and UTF-16 (Windows shells), in blocks of bounded size: a log of 200 MB is mostly lines
of the training, and hops that differ in nothing but the channel's number.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import sys
import zlib
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MAX_LINE", "find_logs", "log_lines", "open_log"]

# A line longer than this is cut: NCCL's own longest (a merged list of HCAs) has a few thousand.
MAX_LINE = 64 * 1024
_BLOCK = 1 << 18
_MAX_SEEN = 100_000
_MAX_RECENT = 20_000
_MAX_PIECE = 4096
_SUFFIXES = (".log", ".out", ".err", ".txt", ".gz")

_CHANNEL = b" NCCL INFO Channel "
_INFO = b" NCCL INFO "
# Words of torch's in lines without "NCCL": rare, so a block is searched line by line for them only
# where it has one.
_RARE = (b"Last error:", b" collective", b"CUDA ")
_COLLECTIVE = b": opCount "  # SUBSYS=COLL logs each
# One line an allocation or a step of the proxy (SUBSYS=ALLOC,PROXY); the first tells all.
_PER_CALL = frozenset((b"Allo", b"Mem ", b"prox"))


def find_logs(words: Iterable[str]) -> list[str]:
    """Return the files that the words mean: a file, a folder's logs, a pattern, `-` for stdin.

    Raises:
        UsageError: One of them is nothing that could be read.
    """
    found: list[str] = []
    for word in words:
        path = Path(word)
        if word == "-":
            found.append(word)
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
            file = stack.enter_context(Path(name).open("rb"))
        if file.peek(2)[:2] == b"\x1f\x8b":
            file = stack.enter_context(gzip.GzipFile(fileobj=file))
        head = _head(file)
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            yield codecs.EncodedFile(file, "utf-8", "utf-16", "replace")
        elif len(head) >= 8 and head[1::2].count(0) > len(head) // 4 and 0 not in head[::2]:
            yield codecs.EncodedFile(file, "utf-8", "utf-16-le", "replace")
        else:
            yield file


def _head(file: Any) -> bytes:
    try:
        return bytes(file.peek(64)[:64])
    except (EOFError, zlib.error):
        return b""


def log_lines(file: Any) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of the lines that may tell something; numbers are grep's, from 1.

    A line that says word for word what an earlier one said is left out, unless it is a warning,
    and so is a hop that differs from an earlier one in its channel alone.
    """
    sieve = _Sieve()
    number = 1
    for block in _blocks(file):
        for line_number, line in sieve.lines(block, number):
            for part in line.split(b"\r"):  # a progress bar writes over its own line
                yield line_number, part[:MAX_LINE].decode("utf-8", "replace")
        number += block.count(b"\n")


def _blocks(file: Any) -> Iterator[bytes]:
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


class _Sieve:
    """Lets through what can tell something new: what a process says again tells nothing."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self._recent: set[bytes] = set()
        self._calls: set[bytes] = set()
        self._has_collective = False
        self._is_error_next = False

    def lines(self, block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
        is_rare = self._is_error_next or any(word in block for word in _RARE)
        if not is_rare and (b"NCCL" not in block or self._is_known_collectives(block)):
            return
        pieces = [(number, block)] if is_rare else self._without_known_hops(block, number)
        for first, piece in pieces:
            for line_number, line in enumerate(piece.split(b"\n"), first):
                if _COLLECTIVE in line:
                    if self._has_collective:
                        continue
                    self._has_collective = True
                if b"NCCL" in line:
                    if not self._is_known(line):
                        yield line_number, line
                elif is_rare and (self._is_error_next or any(word in line for word in _RARE)):
                    yield line_number, line
                if is_rare and line.strip():
                    self._is_error_next = b"Last error:" in line

    def _is_known_collectives(self, block: bytes) -> bool:
        """Whether each line of NCCL's is one more collective."""
        return (
            self._has_collective
            and b"NCCL WARN" not in block
            and block.count(_COLLECTIVE) == block.count(b"NCCL")
        )

    def _is_known(self, line: bytes) -> bool:
        head, _, text = line.partition(_INFO)
        if not text or b"NCCL WARN" in text:
            return False
        call = text[:4]
        if call in _PER_CALL:
            if call in self._calls:
                return True
            self._calls.add(call)
        if b"comm 0x" in text:  # of which communicator, that is the thread's own word
            if line in self._recent:
                return True
            self._recent.add(line)
            return False
        # Its threads come and go: host and process say who speaks.
        return self._is_seen(head.rpartition(b":")[0] + text)

    def _is_seen(self, text: bytes) -> bool:
        if text in self._seen:
            return True
        if len(self._seen) < _MAX_SEEN and len(text) < _MAX_PIECE:
            self._seen.add(text)
        return False

    def _without_known_hops(self, block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
        """Yield (number of its first line, whole lines).

        The block is cut where a channel's number begins. A piece is then the rest of that line,
        perhaps others, and the next hop's `host:pid:tid`; the same piece is the same hop.
        """
        pieces = block.split(_CHANNEL)
        last = len(pieces) - 1
        at, done = 0, -1
        for index in self._fresh(pieces, has_warning=b"NCCL WARN" in block):
            if index <= done or (0 < index < last and self._is_known_hop(pieces[index])):
                continue
            done = index
            while done < last and b"\n" not in pieces[done]:
                done += 1  # several hops in one line
            cut = _CHANNEL if index else b""
            text = cut + _CHANNEL.join(pieces[index : done + 1])
            here = block.rfind(text) if done == last else block.find(text + _CHANNEL, at)
            number += block.count(b"\n", at, here)
            lines = pieces[index - 1].rpartition(b"\n")[2] + text if index else text
            yield number, lines if done == last else lines.rpartition(b"\n")[0]
            at = here + len(text)
            number += text.count(b"\n")

    def _fresh(self, pieces: list[bytes], *, has_warning: bool) -> Iterable[int]:
        """Return which pieces were not seen of late; this loop sees each hop of a large log."""
        if has_warning:
            return range(len(pieces))
        recent = self._recent
        if len(recent) > _MAX_RECENT:
            recent.clear()
        add = recent.add
        middle = enumerate(pieces[1:-1], 1)
        fresh = [n for n, piece in middle if (key := piece[2:]) not in recent and not add(key)]
        return [0, *fresh, len(pieces) - 1] if len(pieces) > 1 else [0]

    def _is_known_hop(self, piece: bytes) -> bool:
        if b"NCCL WARN" in piece or b"comm 0x" in piece:
            return False
        text = piece[2:]
        process = text.rpartition(b":")[0]  # without the thread
        return self._is_seen(process if b"\n" in process else text)
