"""Connections that a process closed to itself: its own proxy had failed.

A thread of NCCL asks the proxy of its rank (another thread, as a rule of the same process) over a
socket. A proxy that fails closes it, and the one who asked sees a remote peer that closed.

Source: NCCL's src/proxy.cc and src/misc/socket.cc.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpc_train.diagnose.nccl.nccl_lines import Record
    from hpc_train.diagnose.rules import Evidence, Failure

_FAILED = re.compile(
    r"Failed to execute operation (?P<op>\w{1,20}) from rank (?P<rank>\d{1,7}),"
    r" retcode (?P<code>\d{1,3})"
)
_CALL = re.compile(r"Proxy Call to rank (?P<rank>\d{1,7}) failed \((?P<op>\w{1,20})\)")
_CLOSED = re.compile(r"[Cc]onnection closed by remote peer")
_MAX = 10_000
_OPS = {"Setup": "setup", "Connect": "connection", "Init": "start", "Register": "registration"}


class Proxies:
    """Takes warnings; what it keeps is bounded by the processes."""

    def __init__(self) -> None:
        # What failed, by host and process; the threads that saw a connection close.
        self._failed: dict[tuple[str, str], tuple[str, Evidence]] = {}
        self._closed: dict[tuple[str, str], set[str]] = {}
        # The process by the line that tells of a connection to its own proxy.
        self._ours: dict[tuple[str, int], tuple[str, str]] = {}
        self._waits: dict[tuple[str, str, str], Evidence] = {}

    def take(self, record: Record, where: Evidence) -> None:
        """Take a warning of NCCL's."""
        process, thread = (record.host, record.pid), record[:3]
        if not record.pid or len(self._waits) >= _MAX:
            return
        if _CLOSED.search(record.text):
            self._closed.setdefault(process, set()).add(record.tid)
            self._waits.setdefault(thread, where)
            if process in self._failed:
                self._ours[where.file, where.line] = process
        elif found := _FAILED.search(record.text):
            # A proxy that lost its own peer before has not failed by itself.
            if record.tid not in self._closed.get(process, ()):
                self._failed.setdefault(process, (_words(found["op"], found), where))
        elif (found := _CALL.search(record.text)) and (at := self._waits.get(thread)):
            self._failed.setdefault(process, (_words(found["op"], found), where))
            self._ours[at.file, at.line] = process

    def told(self, failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
        """Return them; a connection that closed for the own proxy is told as that one's failure."""
        return tuple(map(self._told, failures))

    def _told(self, failure: Failure) -> Failure:
        at = failure.evidence[0] if failure.evidence else None
        process = self._ours.get((at.file, at.line)) if at else None
        if failure.name != "peer_closed" or process is None:
            return failure
        what, place = self._failed[process]
        return replace(
            failure,
            name="proxy_failed",
            cause=f"{what}, and the process then saw its own proxy close the connection",
            fix="NCCL's lines before it, of the same process: the first warning of the proxy's"
            " thread is the cause; without one, NCCL_DEBUG=INFO shows what it was at",
            evidence=(place, *failure.evidence)[:3],
            firsts=(place,),
            others=(),
            of_another=False,
            alike=0,
        )


def _words(op: str, found: re.Match[str]) -> str:
    code = found.groupdict().get("code")
    of = f"its network's {_OPS[op]}" if op in _OPS else ""
    more = ", ".join(part for part in (of, f"code {code}" if code else "") if part)
    return f"the proxy of rank {found['rank']} could not carry out {op}" + (
        f" ({more})" if more else ""
    )
