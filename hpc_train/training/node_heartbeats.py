"""One writer a node: its ranks beat into the node's memory, and one of them carries it on.

A file that each of a thousand ranks makes anew every second, and three that each looks for four
times a second, are 17,000 requests a second to a metadata server that a whole cluster shares.
Whichever rank finds that it is due carries the signs of life of all ranks of its node to the run
directory, and the supervisor's requests back; so none of them is missed when it hangs or dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hpc_train.plan import env_names
from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import Heartbeat, read_heartbeats, write_heartbeat, write_heartbeats

SHARED_FROM = 64  # ranks of a run; fewer each write their own
LOOK_EVERY_S = 1.0  # for requests of the supervisor: one rank of the node does
STALE_S = 86_400.0  # a folder that ranks left which were killed


class NodeHeartbeats:
    """What the ranks of one node share. Make it with `open`.

    Attributes:
        requests: Its `abort` and `dump_request` are what the supervisor has asked for.
        stop: The run's `stop` file, as the node has it; `run_stop` is that of the run.
    """

    def __init__(self, attempt: AttemptDir, stop: Path, folder: Path, name: str) -> None:
        self.requests = AttemptDir(folder)
        self.stop = folder / "stop"
        self._folder = folder
        self.run_stop = stop
        self._attempt = attempt
        self._file = attempt.node_heartbeats(name)

    @classmethod
    def of_run(
        cls, ranks: int, attempt: AttemptDir, stop: Path, environ: Mapping[str, str]
    ) -> NodeHeartbeats | None:
        """As `open`, for a run of that many ranks; None where they are few."""
        start = environ.get(env_names.MASTER_PORT, "")
        return cls.open(attempt, stop, start) if ranks >= SHARED_FROM else None

    @classmethod
    def open(
        cls, attempt: AttemptDir, stop: Path, start: str, *, memory: Path = Path("/dev/shm")
    ) -> NodeHeartbeats | None:
        """Join the other ranks of this node.

        Args:
            stop: The run's stop file.
            start: Another one at each start of the attempt's ranks.
            memory: A folder of this node alone.

        Returns:
            None where no folder can be had there that belongs to this user alone.
        """
        digest = hashlib.sha256(f"{attempt.path} {start}".encode()).hexdigest()[:16]
        ours = f"hpc-train-{os.getuid()}-"
        folder = memory / f"{ours}{digest}"
        try:
            _remove_stale(memory.glob(f"{ours}*"))
            folder.mkdir(mode=0o700, exist_ok=True)
            seen = folder.lstat()
        except OSError:
            return None
        is_ours = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid()
        if not is_ours or stat.S_IMODE(seen.st_mode) & 0o077:
            return None
        # Ranks in containers may each have a /dev/shm of their own: then each has its own file.
        name = f"{os.uname().nodename}-{digest[:8]}-{seen.st_dev:x}-{seen.st_ino:x}"
        return cls(attempt, stop, folder, name)

    def beat(self, beat: Heartbeat, every_s: float) -> None:
        """Tell it to the node, and carry what all of its ranks tell when that is due.

        Raises:
            OSError: as one of the two file systems says.
        """
        write_heartbeat(self.requests, beat)
        with self._turn("carried", 0.9 * every_s) as due:
            if due:
                write_heartbeats(self._file, read_heartbeats(self.requests))

    def look(self) -> None:
        """Bring the supervisor's requests here when that is due.

        Raises:
            OSError: as one of the two file systems says.
        """
        there = self._attempt
        with self._turn("looked", LOOK_EVERY_S) as due:
            if due:
                _bring(self.run_stop, self.stop)
                _bring(there.dump_request, self.requests.dump_request)
                _bring(there.abort, self.requests.abort)

    def leave(self, rank: int) -> None:
        """The last rank to leave takes the folder away."""
        with contextlib.suppress(OSError):
            (self._folder / f"left-{rank}").touch()
            ranks = list(self.requests.heartbeat(0).parent.glob("rank-*.json"))
            if len(list(self._folder.glob("left-*"))) >= len(ranks):
                shutil.rmtree(self._folder, ignore_errors=True)

    @contextlib.contextmanager
    def _turn(self, what: str, every_s: float) -> Iterator[bool]:
        """Whether this rank is to do it now: nobody has for `every_s`, and nobody is at it."""
        with (self._folder / what).open("ab") as mark:
            due = _is_due(mark.fileno(), every_s)
            if due:
                try:
                    fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    due = False
                else:  # another one may have done it just before
                    due = _is_due(mark.fileno(), every_s)
            if due:
                mark.truncate(0)
                mark.write(b"x")
                mark.flush()
            yield due


def _remove_stale(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # another rank was faster
            # Each beat is a rename in the folder below.
            told = (folder, *folder.glob("heartbeat"))
            if time.time() - max(path.lstat().st_mtime for path in told) > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)


def _is_due(mark: int, every_s: float) -> bool:
    seen = os.fstat(mark)
    # By the absolute value: a clock that is set back must not silence a node.
    return not seen.st_size or abs(time.time() - seen.st_mtime) >= every_s


def _bring(there: Path, here: Path) -> None:
    """Have a file here that is there."""
    with contextlib.suppress(FileNotFoundError):
        text = there.read_text(encoding="utf-8")
        if not here.exists() or here.read_text(encoding="utf-8") != text:
            here.write_text(text, encoding="utf-8")
