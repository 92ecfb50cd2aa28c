"""Why Ray lost a worker, by its own words, and the node that they are about.

Source: Ray's python/ray/exceptions.py (RayActorError), src/ray/gcs (a node that is marked dead).
The block of an actor has fields (class_name, actor_id, pid, namespace, ip) and then the reason. The
`ip=` before a line is that of the process which reports it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence

_BEGINS = re.compile(r"The actor died unexpectedly before finishing this task")
_IP = re.compile(r"(?:^|[\s)])ip: (?P<ip>[\da-fA-F.:]{2,60})\s*$")
_MARKED = re.compile(
    r"The node with node id: (?P<id>\w{1,80}) and (?:ip|address): (?P<ip>[^\s,]{2,80})"
    r".{0,200}? has been marked dead"
)
_NODE = re.compile(
    r"[Tt]he actor (?:is dead because|died because) its node has died"
    r"(?:\. Node Id: (?P<id>\w{1,80}))?"
)
_PREEMPTED = re.compile(
    r"the actor's node was (?P<how>preempted|terminated \w{1,20}): ?(?P<why>[^\n]{0,160})"
)
_PROCESS = re.compile(
    r"[Tt]he actor (?:is dead because|died because) its worker process has died\.?"
    r"(?: Worker exit type: (?P<type>\w{1,40}))?(?: Worker exit detail: (?P<why>[^\n]{1,160}))?"
)
_OWNER = re.compile(r"[Tt]he actor (?:is dead because|died because) its owner has died")
_BLOCK = 16  # lines
_MAX_NODES = 10_000


class RayEnds:
    """Takes Ray's lines; what it keeps is bounded by the nodes."""

    def __init__(self) -> None:
        self._at: Evidence | None = None
        self._ip = ""
        self._marked: dict[str, str] = {}  # its address, by a node's id

    @property
    def is_open(self) -> bool:
        """Whether lines follow that belong to what was said."""
        return self._at is not None

    def take(self, line: str, where: Evidence) -> str:
        """Take a line; returns what Ray says of an end, with the address where it is known."""
        at = self._at
        if at and (at.file != where.file or where.line - at.line > _BLOCK):
            self._at, self._ip = None, ""
        if _BEGINS.search(line):
            self._at, self._ip = where, ""
        elif self._at and (found := _IP.search(line)):
            self._ip = found["ip"]
        elif found := _MARKED.search(line):
            if len(self._marked) < _MAX_NODES:
                self._marked[found["id"]] = found["ip"]
            return f"Ray marked a node dead ({found['ip']})"
        return self._reason(line)

    def _reason(self, line: str) -> str:
        of = f" ({self._ip})" if self._ip else ""
        if found := _PREEMPTED.search(line):
            return f"Ray lost a node{of}: {found['how']}{', ' * bool(found['why'])}{found['why']}"
        if found := _NODE.search(line):
            ip = self._ip or self._marked.get(found["id"] or "", "")
            return f"Ray lost a node{f' ({ip})' if ip else ''}"
        if found := _PROCESS.search(line):
            why = ": ".join(part.rstrip(". ") for part in (found["type"], found["why"]) if part)
            return f"Ray's worker process ended{of}{': ' * bool(why)}{why}"
        return f"Ray's owner ended{of}" if _OWNER.search(line) else ""
