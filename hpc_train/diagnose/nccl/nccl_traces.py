"""Errors that NCCL passed up (`file:line -> code`): the innermost place of a chain that counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence

_MAX_THREADS = 10_000

# At these places it ends a call of the program, elsewhere it may be expected (a plugin that is not
# there, a shut-down).
_TRACE = re.compile(
    r"(?:/\S{0,200}?/src/|/\S{0,200}/)?((?:[a-z]\w{0,40}/){0,2}\w{1,40}\.(?:cc|cu|h)):\d+"
    r" -> ([1-6])"
    r"(?: \(([^)]{1,80})\))?"
)
_ENDS = ("init.", "group.", "bootstrap.", "enqueue.", "channel.", "transport.", "transport/")
_OUTER = ("group.", "init.", "enqueue.")
# Where a call of the program ends. A failed set-up of CollNet never comes so far: its caller goes
# on without it (init.cc's collNetTrySetup, transport/coll_net.cc's ncclCollNetSetup).
_CALLS = ("group.", "enqueue.")
_COLLNET = "transport/coll_net."

Thread = tuple[str, str, str]
Trace = tuple[str, str, str, "Evidence"]


class Traces:
    """Takes NCCL's INFO lines of each thread; what it keeps is bounded by the threads."""

    def __init__(self) -> None:
        self._chains: dict[Thread, Trace] = {}
        self._ended: dict[Thread, Trace] = {}
        self._of_call: Trace | None = None

    def take(self, text: str, thread: Thread, where: Evidence) -> None:
        """Take a line that may tell of an error that was passed up."""
        found = _TRACE.match(text)
        if found is None:
            return
        file, code, why = found[1], found[2], found[3] or ""
        # A chain begins inside, and each place around it passes on the same code.
        begin = self._chains.get(thread)
        has_place = len(self._chains) < _MAX_THREADS or thread in self._chains
        if begin is None or begin[1] != code:
            begin = (file, code, why, where)
            if has_place:
                self._chains[thread] = begin
        told = (*begin[:2], why or begin[2], where if why else begin[3])
        if file.startswith(_CALLS):
            self._of_call = _nearer(self._of_call, begin, told)
        elif file.startswith(_ENDS) and not file.startswith(_COLLNET) and has_place:
            self._ended[thread] = _nearer(self._ended.get(thread), begin, told)

    def initialised(self, thread: Thread) -> None:
        """Drop what a thread overcame: its initialisation succeeded."""
        if thread[1]:  # without a process it may be another one's
            self._ended.pop(thread, None)
            self._chains.pop(thread, None)

    def root(self, *, has_fallback: bool) -> Trace | None:
        """Return (file, code, the kernel's word, line) of the chain nearest to the root.

        Args:
            has_fallback: Whether NCCL went on without CollNet, so that only a chain that came to
                a call of the program counts.
        """
        root = self._of_call
        for trace in () if has_fallback else self._ended.values():
            root = _nearer(root, trace, trace)
        return root


def _nearer(before: Trace | None, begin: Trace, told: Trace) -> Trace:
    if before is None or _distance(begin) < _distance(before):
        return begin
    if told[2] and not before[2] and before[1] == told[1]:
        return (*before[:2], *told[2:])
    return before


def _distance(trace: Trace) -> tuple[bool, bool]:
    """The less, the nearer to the root: 3 and 6 follow from another rank's error."""
    return trace[1] in "36", trace[0].startswith(_OUTER)
