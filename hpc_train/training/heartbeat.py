"""A thread beside the training: signs of life, stacks on request, leaving when told to.

It works while the main thread hangs in a collective. It watches three files: `stop` (save and
leave), `dump-stacks` and `abort` of the attempt, which the supervisor makes: so a death anywhere is
known on all nodes within a second, and not when gloo or NCCL run into their timeouts.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpc_train.plan.states import RankExit
from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from hpc_train.training.resume.stop import StopFlag

__all__ = ["STACKS_SIGNAL", "HeartbeatThread"]

# Dumps stacks where even threads cannot run, since C code holds the GIL. A real-time signal: glibc
# keeps the first two, NCCL and PyTorch use none (signal(7)).
STACKS_SIGNAL = signal.SIGRTMIN + 3
_POLL_S = 0.25


class HeartbeatThread:
    """What a rank is doing now, and the thread that tells.

    The main thread sets plain attributes; nothing here ever blocks it.

    Attributes:
        phase: start, train, validate, save or end.
        step: Optimizer steps taken since the run's first attempt; None before training began.
        batch: Of the evaluation, or of the epoch.
        every_s: Between two heartbeats; taken up by `start`.
    """

    def __init__(
        self, attempt: AttemptDir, *, rank: int, node: str, every_s: float, stop: StopFlag
    ) -> None:
        self.rank = rank
        self.node = node
        self.phase = "start"
        self.step: int | None = None
        self.batch = 0
        self._attempt = attempt
        self.every_s = every_s
        self._stop = stop
        self._moved = time.time()
        self._seen: tuple[str, int | None, int] = ("start", None, 0)
        self._step_times_s: deque[float] = deque(maxlen=50)
        self._step_at: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._dumped = False
        self._complained = False

    def start(self) -> None:
        """Begin to beat."""
        folder = self._attempt.stacks
        folder.mkdir(parents=True, exist_ok=True)
        self._stacks = (folder / f"rank-{self.rank}.txt").open("w", encoding="utf-8")
        faulthandler.register(STACKS_SIGNAL, self._stacks, all_threads=True)
        self._thread = threading.Thread(target=self._run, name="hpc-train heartbeat", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """The last beat, in phase "end"."""
        self.phase = "end"
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
            faulthandler.unregister(STACKS_SIGNAL)

    def stepped(self, step: int) -> None:
        """An optimizer step is done."""
        now = time.monotonic()
        if self._step_at is not None:
            self._step_times_s.append(now - self._step_at)
        self._step_at = now
        self.step = step

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Be in `phase` for a while; it is no step's time."""
        before, self.phase = self.phase, phase
        try:
            yield
        finally:
            self.phase = before
            self._step_at = None

    def _run(self) -> None:
        next_beat = 0.0
        ended = False
        while True:
            self._stop.poll()
            self._look_for_requests()
            if ended or time.monotonic() >= next_beat:
                self._beat()
                next_beat = time.monotonic() + self.every_s
            if ended:
                return
            ended = self._ended.wait(_POLL_S)

    def _beat(self) -> None:
        now = time.time()
        seen = (self.phase, self.step, self.batch)
        if seen != self._seen:
            self._seen, self._moved = seen, now
        # The main thread appends meanwhile; a copy made in one go is whole.
        times_s = list(self._step_times_s)
        beat = Heartbeat(
            rank=self.rank,
            node=self.node,
            pid=os.getpid(),
            time=now,
            moved=self._moved,
            phase=self.phase,
            step=self.step or 0,
            batch=self.batch,
            step_time_s=statistics.median(times_s) if times_s else None,
        )
        try:
            write_heartbeat(self._attempt, beat)
        except OSError as error:
            if not self._complained:
                print(f"WARNING: no heartbeat can be written: {error}", file=sys.stderr, flush=True)  # noqa: T201
            self._complained = True

    def _look_for_requests(self) -> None:
        if not self._dumped and self._attempt.dump_request.exists():
            self._dumped = True
            faulthandler.dump_traceback(self._stacks, all_threads=True)
        code = _abort_code(self._attempt.abort)
        if code is not None:
            print(f"told by the supervisor to leave with {code}", file=sys.stderr, flush=True)  # noqa: T201
            os._exit(code)


def _abort_code(path: Path) -> int | None:
    """The code in the file; None while it is not there or not filled yet."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    if not text:
        return None
    return int(text) if text.isdigit() else int(RankExit.NETWORK)
