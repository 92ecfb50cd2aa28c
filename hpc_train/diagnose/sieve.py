"""Of the lines of a log those that can tell something new.

A log of 200 MB is mostly lines of the training, and hops that differ in nothing but the channel's
number.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from hpc_train.diagnose.line_words import is_rare

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_SEEN = 100_000
_MAX_RECENT = 20_000
_MAX_PIECE = 4096
_MAX_SAID = 100
_MAX_FEW = 64  # so many kinds of lines are looked at one by one

_CHANNEL = b" NCCL INFO Channel "
_INFO = b" NCCL INFO "
# How many lines after one of these belong to it.
_GOES_ON = {
    b"Last error:": 1,
    b"NCCL WARN": 1,
    b"Root Cause": 8,
    b"Communicator ranks": 99,
    b"DEAD": 2,
    b"The actor died unexpectedly": 12,
    b"unable to complete a TCP": 6,
    b"look up to see its": 2,
    b"norm: nan": 2,
    b"norm': nan": 2,
    b"loss: nan": 2,
    b"loss': nan": 2,
    b"loss nan": 2,
    b"loss=nan": 2,
    b"FullMesh failed": 2,
    b"Detected mismatch between": 5,
    b"ProcessGroupNCCL": 2,  # a terminal's width may wrap it
}
# An exception whose message a terminal may have cut at its width, and how many lines go on with it.
_LONG_ERROR = re.compile(rb"\b[A-Za-z]\w{0,200}(?:Error|Exception): .{30}")
_WRAPS = 3
_COLLECTIVE = b": opCount "  # SUBSYS=COLL logs each
# Lines that differ in numbers alone are one kind: once one of it told nothing, none does.
_KEY = b"0123456789."
_MAX_KEY = 400
# One line an allocation or a step of the proxy (SUBSYS=ALLOC,PROXY); the first tells all.
_PER_CALL = frozenset((b"Allo", b"Mem ", b"prox"))


class Sieve:
    """Lets through what can tell something new: what a process says again tells nothing."""

    def __init__(self, prefix: re.Pattern[bytes] | None = None) -> None:
        self._prefix = prefix  # what another program wrote before each line
        self._seen: set[bytes] = set()
        self._recent: set[bytes] = set()
        self._calls: set[bytes] = set()
        self._has_collective = False
        self._said: Counter[bytes] = Counter()
        self._plain: set[bytes] = set()
        self._unlike = 0
        self._after = 0

    def lines(self, block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
        """Yield (number, line) of a block whose first line has that number."""
        pieces: Iterable[tuple[int, bytes]] = [(number, block)]
        if b"N" in block and b"NCCL" in block:
            if self._is_known_collectives(block):
                return
            pieces = self._without_known_hops(block, number)
        for first, piece in pieces:
            may = self._is_new(piece)
            if may or self._after or b"NCCL" in piece:
                yield from self._of_piece(piece, first, is_rare=may)

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
            elif not self._after and _LONG_ERROR.search(line):
                self._after = _WRAPS
            elif self._after and line.strip():
                self._after -= 1

    def _is_new(self, piece: bytes) -> bool:
        """Whether any line may tell something, of those of a kind that was not seen yet."""
        if self._unlike:
            self._unlike -= 1
            return is_rare(piece)
        lines = piece.translate(None, _KEY).split(b"\n")
        kinds = set(lines) - self._plain
        if not kinds:
            return False
        if 2 * len(kinds) > len(lines) > _MAX_FEW:  # nothing is said twice: kinds do not help
            self._unlike = _MAX_FEW
        # With their numbers: words have some.
        whole = dict(zip(lines, piece.split(b"\n"), strict=True))
        if is_rare(b"\n".join([whole[kind] for kind in kinds])):
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
        if is_rare(line):
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
            and (calls == block.count(b"\n") or not is_rare(block))
        )

    def _is_known(self, line: bytes) -> bool:
        if self._prefix and (found := self._prefix.match(line)):
            line = line[found.end() :]
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
