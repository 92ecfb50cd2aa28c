"""Processes of a cluster: started in sessions of their own, recorded, found, and ended by pid."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.cluster.shell import ClusterError, wait_until

__all__ = [
    "Processes",
    "Started",
    "alive",
    "in_network_of",
    "kill_all",
    "seen_mounting",
    "start_ticks",
    "stopped",
]


@dataclasses.dataclass(frozen=True)
class Started:
    """A process that was started; the start time tells it from a later one with the same pid."""

    name: str
    pid: int
    ticks: int


def _stat_fields(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command in parentheses may hold spaces, so the fields are counted after it.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields


def start_ticks(pid: int) -> int | None:
    """Start time of a living process in clock ticks since boot; None when gone or a zombie."""
    fields = _stat_fields(pid)
    return int(fields[19]) if fields else None


def stopped(pid: int) -> bool:
    """Whether a process stands still after a SIGSTOP (or is gone)."""
    fields = _stat_fields(pid)
    return fields is None or fields[0] in "Tt"


def alive(started: Started) -> bool:
    """Whether this very process still runs."""
    return start_ticks(started.pid) == started.ticks


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _link(pid: int | str, kind: str) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/{kind}").readlink())
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        # Gone; or none of ours: a sandbox may hide its first process even from root.
        return ""


def in_network_of(anchor_pid: int) -> list[int]:
    """Every living process in the network namespace of ``anchor_pid``, itself left out."""
    network = _link(anchor_pid, "net")
    if not network:
        return []
    return [
        pid
        for pid in _all_pids()
        if pid != anchor_pid and _link(pid, "net") == network and _stat_fields(pid)
    ]


def seen_mounting(folder: Path) -> list[int]:
    """Every process outside our own mount namespace that has files of ``folder`` bound elsewhere.

    This finds a node's processes without any record of them, so also after a crash. What counts is
    where a mount comes from and goes to (proc(5), mountinfo, fields 4 and 5): the nodes of another
    cluster inherit whatever is mounted on the host when they start, our folder `disks` included,
    which is bound to itself.
    """
    ours, mark, found = _link("self", "mnt"), f"/{folder.parent.name}/{folder.name}/", []
    for pid in _all_pids():
        if _link(pid, "mnt") in ("", ours):
            continue
        try:
            mounts = Path(f"/proc/{pid}/mountinfo").read_text()
        except (OSError, ValueError):  # it ended meanwhile
            continue
        rows = [line.split() for line in mounts.splitlines()]
        if any(mark in row[3] and mark not in f"{row[4]}/" for row in rows):
            found.append(pid)
    return found


def kill_all(pids: Iterable[int], *, timeout_s: float = 60) -> None:
    """SIGKILL these processes and wait until none of them lives.

    Raises:
        ClusterError: One survived.
    """
    targets = [Started("", pid, ticks) for pid in pids if (ticks := start_ticks(pid)) is not None]
    for target in targets:
        try:
            os.kill(target.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_until(
        lambda: not any(alive(target) for target in targets),
        f"the end of {[t.pid for t in targets]}",
        timeout_s=timeout_s,
    )


class Processes:
    """The daemons of one cluster; their record outlives the Python process that started them."""

    def __init__(self, record: Path, logs: Path) -> None:
        self._record = record
        self._logs = logs
        self._children: list[subprocess.Popen[bytes]] = []

    def start(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None
    ) -> Started:
        """Start a daemon in the foreground of its own session, its output in a log of its name."""
        with (self._logs / f"{name}.out").open("ab") as log:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self._children.append(child)
        started = Started(name, child.pid, start_ticks(child.pid) or 0)
        with self._record.open("a") as record:
            record.write(json.dumps(dataclasses.asdict(started)) + "\n")
        return started

    def recorded(self) -> list[Started]:
        """All that were ever started, oldest first, dead or alive."""
        try:
            lines = self._record.read_text().splitlines()
        except FileNotFoundError:  # not begun, or taken down meanwhile
            return []
        return [Started(**json.loads(line)) for line in lines]

    def find(self, name: str) -> Started | None:
        """The living process of that name, if any."""
        return next((s for s in reversed(self.recorded()) if s.name == name and alive(s)), None)

    def stop(
        self, name: str, sig: signal.Signals = signal.SIGTERM, *, timeout_s: float = 90
    ) -> None:
        """Signal one daemon and wait for its end; what it left in its session is killed."""
        started = self.find(name)
        if started is None:
            return
        os.kill(started.pid, sig)
        try:
            wait_until(lambda: not alive(started), f"the end of {name}", timeout_s=timeout_s)
        except ClusterError:
            kill_all([started.pid])
        kill_all(self._sessions([started]))
        self.reap()

    def kill_everything(self) -> None:
        """SIGKILL all recorded processes that live, and everything in their sessions."""
        recorded = self.recorded()
        kill_all([s.pid for s in recorded if alive(s)] + self._sessions(recorded))
        self.reap()

    @staticmethod
    def _sessions(leaders: Iterable[Started]) -> list[int]:
        # slurmctld forks a helper that stays in its session when slurmctld is killed. No process is
        # given the number of a session that has members: who has it lives in a session of its own.
        first = {it.pid: it.ticks for it in leaders if start_ticks(it.pid) in (None, it.ticks)}
        found = []
        for pid in _all_pids():
            fields = _stat_fields(pid)
            if fields and int(fields[3]) in first and int(fields[19]) >= first[int(fields[3])]:
                found.append(pid)
        return found

    def reap(self) -> None:
        """Collect children that have ended, so that none stays as a zombie.

        The first thread of a process can be a zombie while its other threads still end; until they
        have, the process cannot be collected.
        """
        ended = [child for child in self._children if start_ticks(child.pid) is None]
        for child in ended:
            child.wait(timeout=10)
        self._children = [child for child in self._children if child.returncode is None]


def name_of(pid: int) -> str:
    """A process's command name (proc(5), comm); empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
