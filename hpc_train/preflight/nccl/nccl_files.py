"""A log from wherever it lies, as the lines that can tell something.

Plain, gzip and UTF-16 (Windows shells), in blocks of bounded size: a log of 200 MB is mostly lines
of the training, and hops that differ in nothing but the channel's number.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import re
import sys
import zlib
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MAX_LINE", "find_logs", "log_lines", "may_tell", "open_log"]

# A line longer than this is cut: NCCL's own longest (a merged list of HCAs) has a few thousand.
MAX_LINE = 64 * 1024
_BLOCK = 1 << 18
_MAX_SEEN = 100_000
_MAX_RECENT = 20_000
_MAX_PIECE = 4096
_MAX_SAID = 100
_MAX_FEW = 64  # so many are looked up one by one faster than by a search
_SUFFIXES = (".log", ".out", ".err", ".txt", ".gz")

_CHANNEL = b" NCCL INFO Channel "
_INFO = b" NCCL INFO "
# What lines beside NCCL's have that may tell a failure, each by a letter or word that it has: a
# block is searched for that first, which is twenty times as fast; so each begins with it, not with
# a look behind. `\d*`: `_KEY` leaves no digit.
_BESIDE = {
    "A": "Aborted  |Avg bus bandwidth|Address already|Address family|A worker died",
    "B": "Bus error",
    "C": "CUDA[ -]|CUDA_ERROR|Could not resolve|Could not load|CANCELLED|CONSTRAINT_|Caught signal"
    "|Communicator ranks|Connection closed",
    "D": r"DUE TO |Detected mismatch|DataLoader worker|Detected \d* ?oom|Disk quota|Duplicate GPU"
    "|DEAD",
    "E": r"Error(?:[:\r\n]|\(s?\)| event| \d| :|$)|Exception|EADDRINUSE|Exited with"
    r"|Exceeded (?:job|step)|ERROR: Unex|ERROR:torch|E\d* .{0,80}\] failed"
    r"|ERROR\] (?:failed|\[launch)",
    "F": 'FullMesh|Function: |Fatal Python|Found no NVIDIA|File "',
    "G": "Got completion",
    "H": "HIP |Host key",
    "I": "IPv4 network addresses",
    "K": r"Killed\b|KeyboardInterrupt",
    "L": "Last error:",
    "M": "Missing (?:communicator )?data|Memory access fault|MPI_ABORT",
    "N": "NET/OFI|NVRM: |No space left|Node failure",
    "O": "One or more tensors|Out of bounds"
    "|OOMKilled|Out [Oo]f [Mm]emory|OutOfMemory|ORTE (?:was|has)",
    "P": r"PID \d* on node|PBS: |Permission denied \(|PRTE (?:was|has)|PytorchStreamWriter",
    "R": r"RCCL version|RAS network|Root Cause|Ranks? [\d, ]*failed|Rendezvous\w+Error"
    r"|Received \d* ?death|RmInit",
    "S": "Segmentation fault|Segfault|SIG[KSB]|Socket Timeout|Signal: |Socket creation|StopIter"
    "|SystemExit",
    "T": r"There are not enough slots|Traceback \(most|They never joined|Timed out"
    "|The (?:client|server) socket|THCudaCheck|TERM_RUN|Task launch|The actor died",
    "U": "UCX +ERROR|Unable to (?:find|determine the device|allocate|create)",
    "W": "WARN (?<!NCCL WARN )|Worker unexpectedly",
    "undefined symbol": "undefined symbol: nccl",
    "got completion": "got completion with error",
    "modify": "modify_qp|modify QP",
    "error:": r"error: (?:execve|Invalid|Batch)",
    "#": r"#\d* \(count|#\d*, but",
    "(": r"\(exitcode|\(\): ",
    "sh: ": "sh: (?:connect to host|.{1,220}not found)",
    "symbol lookup": "symbol lookup error",
    "amdgpu": "amdgpu",
}
_RARE = tuple((key.encode(), re.compile(what.encode())) for key, what in _BESIDE.items())
_SAYS = re.compile("|".join(_BESIDE.values()))
# How many lines after one of these belong to it.
_GOES_ON = {
    b"Last error:": 1,
    b"NCCL WARN": 1,
    b"Root Cause": 8,
    b"Communicator ranks": 99,
    b"DEAD": 2,
    b"ProcessGroupNCCL": 2,  # a terminal's width may wrap it
}
_COLLECTIVE = b": opCount "  # SUBSYS=COLL logs each
# Lines that differ in numbers alone are one kind: once one of it told nothing, none does.
_KEY = b"0123456789."
_MAX_KEY = 400
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
    and so is a hop that differs from an earlier one in its channel alone. The last line is not.
    """
    sieve = _Sieve()
    number, line_number, block = 1, 0, b""
    for block in _blocks(file):
        for line_number, line in sieve.lines(block, number):
            for part in line.split(b"\r"):  # a progress bar writes over its own line
                yield line_number, part[:MAX_LINE].decode("utf-8", "replace")
        number += block.count(b"\n")
    end = len(block.rstrip())
    last = number - block.count(b"\n", end)
    if end and line_number < last:
        start = max(block.rfind(b"\n", 0, end) + 1, end - MAX_LINE)
        yield last, block[start:end].decode("utf-8", "replace")


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


def may_tell(line: str) -> bool:
    """Whether a line has any of the words for which lines are let through."""
    return _SAYS.search(line) is not None


def _is_rare(text: bytes) -> bool:
    return any(key in text and _has(text, key, what) for key, what in _RARE)


def _has(text: bytes, key: bytes, what: re.Pattern[bytes]) -> bool:
    at = text.find(key)
    for _ in range(_MAX_FEW):
        if at < 0:
            return False
        if what.match(text, at):
            return True
        at = text.find(key, at + 1)
    return at >= 0 and what.search(text, at) is not None


class _Sieve:
    """Lets through what can tell something new: what a process says again tells nothing."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self._recent: set[bytes] = set()
        self._calls: set[bytes] = set()
        self._has_collective = False
        self._said: Counter[bytes] = Counter()
        self._plain: set[bytes] = set()
        self._unlike = 0
        self._after = 0

    def lines(self, block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
        pieces: Iterable[tuple[int, bytes]] = [(number, block)]
        if b"N" in block and b"NCCL" in block:
            if self._is_known_collectives(block):
                return
            pieces = self._without_known_hops(block, number)
        for first, piece in pieces:
            is_rare = self._is_new(piece)
            if is_rare or self._after or b"NCCL" in piece:
                yield from self._of_piece(piece, first, is_rare=is_rare)

    def _of_piece(self, piece: bytes, number: int, *, is_rare: bool) -> Iterator[tuple[int, bytes]]:
        for line_number, line in enumerate(piece.split(b"\n"), number):
            if b"NCCL" in line:
                if _COLLECTIVE in line:
                    if self._has_collective:
                        continue
                    self._has_collective = True
                if not self._is_known(line):
                    yield line_number, line
            elif self._after or (is_rare and self._tells(line)):
                yield line_number, line
            else:
                continue
            if more := next((more for word, more in _GOES_ON.items() if word in line), 0):
                self._after = max(more, self._after - 1)
            elif self._after and line.strip():
                self._after -= 1

    def _is_new(self, piece: bytes) -> bool:
        """Whether any line may tell something, of those of a kind that was not seen yet."""
        if self._unlike:
            self._unlike -= 1
            return _is_rare(piece)
        lines = piece.translate(None, _KEY).split(b"\n")
        kinds = set(lines) - self._plain
        if not kinds:
            return False
        if 2 * len(kinds) > len(lines) > _MAX_FEW:  # nothing is said twice: kinds do not help
            self._unlike = _MAX_FEW
        if _is_rare(b"\n".join(kinds)):
            return True
        self._learn(kinds)
        return False

    def _learn(self, kinds: Iterable[bytes]) -> None:
        if len(self._plain) > _MAX_RECENT:
            self._plain.clear()
        self._plain.update(kind for kind in kinds if len(kind) < _MAX_KEY)

    def _tells(self, line: bytes) -> bool:
        """Whether a line may tell something that was not said, in other numbers, often enough."""
        kind = line[:_MAX_PIECE].translate(None, _KEY)
        if kind in self._plain:
            return False
        if _is_rare(line):
            if kind in self._said or len(self._said) < _MAX_RECENT:
                self._said[kind] += 1
            if self._said[kind] <= _MAX_SAID:
                return True
        self._learn([kind])
        return False

    def _is_known_collectives(self, block: bytes) -> bool:
        """Whether each line of NCCL's is one more collective, and no other tells anything."""
        calls = block.count(_COLLECTIVE)
        return (
            self._has_collective
            and calls == block.count(b"NCCL")
            and b"NCCL WARN" not in block
            and (calls == block.count(b"\n") or not _is_rare(block))
        )

    def _is_known(self, line: bytes) -> bool:
        head, _, text = line.partition(_INFO)
        if not text or b"NCCL WARN" in text or b", retrying" in text:
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
