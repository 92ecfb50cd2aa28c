"""The ranks of a script agree on the optimizer step to stop at, over the attempt's folder.

Nothing is added to the script's process group, and no rank waits inside of a collective: a thread
of each says how many steps its rank has taken, and the rank may take one more before it has to know
what the others said. So with T = the most steps that any rank told + 1, none has passed T, and all
reach it.

A file a rank, made empty at the start and written in place: opening a file that was known before
shows what is in it also on NFS (nfs(5), "Close-to-open cache consistency"), a new name may not.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from hpc_train.training.resume.stop import StopFlag

AGREE_S = 20.0  # then a rank stops where it is: a peer is gone, or its file cannot be seen
POLL_S = 0.01
_ASKED = "asked"
_LEFT = "left"


class StopTogether:
    """One rank's part.

    Attributes:
        step: Optimizer steps taken in this attempt; the main thread counts.
        at: The step that all stop at; None while it is not agreed.
    """

    def __init__(self, folder: Path, *, rank: int, world_size: int, stop: StopFlag) -> None:
        self.step = 0
        self.at: int | None = None
        self._files = [folder / f"rank-{number}" for number in range(world_size)]
        self._mine = folder / f"rank-{rank}"
        self._asked_file = folder / _ASKED
        self._stop = stop
        self._asked = False
        self._told: int | None = None
        folder.mkdir(parents=True, exist_ok=True)
        for path in (self._mine, self._asked_file):
            path.touch()

    def look(self) -> None:
        """Called by a thread: pass on that a stop was asked for, and tell this rank's step."""
        if self._stop.reason is None and (reason := _text(self._asked_file)):
            self._stop.set(reason)
        if self._stop.reason is not None and self._told is None:
            self._tell()
        if self._told is not None and self.at is None:
            self._agree()

    def is_due(self) -> bool:
        """Called by the main thread before each step: whether to stop now; may wait for others."""
        if not self._asked:
            return False
        while self._told is None:  # the thread is about to
            time.sleep(POLL_S)
        if self.step <= self._told:  # others have told as much or more, and one is added
            return False
        deadline = time.monotonic() + AGREE_S
        while self.at is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
            self._agree()
        return self.at is None or self.step >= self.at

    def leave(self, together_s: float = 0) -> None:
        """The script is over on this rank: nobody has to wait for what it would tell.

        Args:
            together_s: Wait so long for all others to leave as well.
        """
        if self._told is None:
            self._tell(self.step - 1)
        with contextlib.suppress(OSError):
            self._mine.write_text(f"{self._told}\n{_LEFT}\n", encoding="utf-8")
        deadline = time.monotonic() + together_s
        while time.monotonic() < deadline and not all(_LEFT in _text(path) for path in self._files):
            time.sleep(POLL_S)

    def _tell(self, step: int | None = None) -> None:
        self._asked = True  # first: a rank that has not seen it is at the step that is read next
        told = self.step if step is None else step
        reason = self._stop.reason
        with contextlib.suppress(OSError):  # a full disk: each stops by itself after a while
            if reason is not None and not _text(self._asked_file):
                self._asked_file.write_text(reason, encoding="utf-8")
            self._mine.write_text(f"{told}\n", encoding="utf-8")
        self._told = told

    def _agree(self) -> None:
        steps = []
        for path in self._files:
            first, ended, _ = _text(path).partition("\n")
            if not ended:  # not told, or not wholly
                return
            steps.append(int(first))
        self.at = max(steps) + 1


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
