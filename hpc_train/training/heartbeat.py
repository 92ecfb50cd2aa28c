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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hpc_train.plan.states import RankExit
from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import FailedSaves, Heartbeat, append_progress, write_heartbeat
from hpc_train.training.node_heartbeats import NodeHeartbeats
from hpc_train.training.resume.stop import StopFlag

# Dumps stacks where even threads cannot run, since C code holds the GIL. A real-time signal: glibc
# keeps the first two, NCCL and PyTorch use none (signal(7)).
STACKS_SIGNAL = signal.SIGRTMIN + 3
_POLL_S = 0.25
_WINDOW_S = 30.0  # over which the pace is taken
_LEAST_OWN = 20  # steps, before a rank's own part of them is told
# Between two lines of the progress: a hundredth of the time so far, at most this. So the file of a
# short training is fine enough for a picture, and that of a week stays under a megabyte.
_PROGRESS_S = 60.0


class Pace:
    """Steps a second over the last half minute, or over the last step where one takes longer."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int]] = deque()
        self._newest: float | None = None

    def see(self, phase: str, step: int | None, now: float) -> float | None:
        """Take in where the training is at `now`, in seconds; returns the pace, if there is one.

        Outside of training it stays as it was: an evaluation is no slow step.
        """
        if phase != "train" or step is None:
            self._steps.clear()
            return self._newest
        if not self._steps or self._steps[-1][1] != step:
            self._steps.append((now, step))
        while len(self._steps) > 2 and now - self._steps[0][0] > _WINDOW_S:
            self._steps.popleft()
        (began, first), (ended, last) = self._steps[0], self._steps[-1]
        if last > first:
            self._newest = (last - first) / (ended - began)
        return self._newest


class HeartbeatThread:
    """What a rank is doing now, and the thread that tells.

    The main thread sets plain attributes; nothing here ever blocks it.

    Attributes:
        step: Optimizer steps taken since the run's first attempt; None before training began.
        batch: Of the evaluation, or of the epoch.
        every_s: Between two heartbeats; taken up by `start`.
        steps: In all; None where nobody knows.
        epoch: The one at hand, from 1; `epochs` are all of them.
        metrics: Gives the numbers to tell; called in the thread, so it reads what is there.
        failed_saves: Gives what is told of saves; called in the thread.
        also: Called in the thread, four times a second.
        ranks: How many there are, where the script at hand decides it.
        is_quiet: Another process tells what this rank does.
    """

    def __init__(
        self, attempt: AttemptDir, *, rank: int, node: str, every_s: float, stop: StopFlag
    ) -> None:
        self.rank = rank
        self.node = node
        self._phase: tuple[str, float, dict[str, float]] = ("start", time.monotonic(), {})
        self.pid = os.getpid()
        self.step: int | None = None
        self.batch = 0
        self.steps: int | None = None
        self.epoch: int | None = None
        self.epochs: int | None = None
        self.metrics: Callable[[], dict[str, float]] = dict
        self.failed_saves: Callable[[], FailedSaves | None] = lambda: None
        self.also: Callable[[], None] = lambda: None
        self.ranks: int | None = None
        self.is_quiet = False
        self._attempt = self._requests = attempt
        self._node_beats: NodeHeartbeats | None = None
        self.every_s = every_s
        self._pace = Pace()
        self._stop = stop
        self._moved = time.time()
        self._seen: tuple[str, int | None, int] = ("start", None, 0)
        self._step_times_s: deque[float] = deque(maxlen=50)
        self._step_at: float | None = None
        self._own_times_s: deque[float] = deque(maxlen=50)
        self._own_since: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._dumped = False
        self._complained = False
        self._told: tuple[float, int] | None = None  # when, monotonic, and which step
        self._began = time.monotonic()

    @property
    def phase(self) -> str:
        """start, train, validate, save or end; how long each took is counted as it is left."""
        return self._phase[0]

    @phase.setter
    def phase(self, phase: str) -> None:
        # One tuple, put in place at once: the thread reads it meanwhile.
        self._phase = (phase, time.monotonic(), self.seconds())
        self._own_since = None

    def seconds(self) -> dict[str, float]:
        """Spent in each phase so far."""
        phase, since, seconds = self._phase
        return {**seconds, phase: seconds.get(phase, 0.0) + time.monotonic() - since}

    def share(self, node_beats: NodeHeartbeats | None) -> None:
        """Before `start`: tell it to the ranks of this node, and hear requests from them."""
        self._node_beats = node_beats
        if node_beats is not None:
            self._requests = node_beats.requests
            self._stop.look_at(node_beats.stop)

    def start(self) -> None:
        """Begin to beat."""
        self._attempt.stacks.mkdir(parents=True, exist_ok=True)
        self._stacks = self._attempt.rank_stacks(self.rank).open("w", encoding="utf-8")
        # SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL: what Python was doing, in the same file.
        faulthandler.enable(self._stacks, all_threads=True)
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

    def begins_step(self) -> None:
        """All that belongs to the step before is done."""
        self._own_since = time.monotonic()

    def computed(self) -> None:
        """What comes now may wait for other ranks: a backward pass sums the gradients over all."""
        if self._own_since is not None:
            self._own_times_s.append(time.monotonic() - self._own_since)
        self._own_since = None

    def moves(self) -> None:
        """The training moves, though it takes no step."""
        self._moved = time.time()

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
            self._fetch_requests()
            self._stop.poll()
            self.also()
            self._look_for_requests()
            if not self.is_quiet and (ended or time.monotonic() >= next_beat):
                self._beat()
                next_beat = time.monotonic() + self.every_s
            if ended:
                break
            ended = self._ended.wait(_POLL_S)
        if self._node_beats is not None:
            self._node_beats.leave(self.rank)

    def _fetch_requests(self) -> None:
        node = self._node_beats
        if node is None:
            return
        try:
            node.look()
        except OSError:  # the node's memory is full or gone: this rank goes on by itself
            self._stop.look_at(node.run_stop)
            self._requests, self._node_beats = self._attempt, None

    def _beat(self) -> None:
        now = time.time()
        seen = (self.phase, self.step, self.batch)
        if seen != self._seen:
            self._seen, self._moved = seen, now
        # The main thread appends meanwhile; a copy made in one go is whole.
        times_s, own_s = list(self._step_times_s), list(self._own_times_s)
        beat = Heartbeat(
            rank=self.rank,
            node=self.node,
            pid=self.pid,
            time=now,
            moved=self._moved,
            phase=self.phase,
            step=self.step or 0,
            batch=self.batch,
            step_time_s=statistics.median(times_s) if times_s else None,
            own_s=statistics.median(own_s) if len(own_s) >= _LEAST_OWN else None,
            steps=self.steps,
            epoch=self.epoch,
            epochs=self.epochs,
            steps_per_s=self._pace.see(self.phase, self.step, time.monotonic()),
            metrics=self.metrics(),
            ranks=self.ranks,
            failed_saves=self.failed_saves(),
            seconds={phase: round(spent, 2) for phase, spent in self.seconds().items()},
        )
        try:
            # People's commands read rank 0's; the last one is not left to others.
            if not self._tell_node(beat) or self.rank == 0 or beat.phase == "end":
                write_heartbeat(self._attempt, beat)
            self._tell_progress(beat)
        except OSError as error:
            if not self._complained:
                print(f"WARNING: no heartbeat can be written: {error}", file=sys.stderr, flush=True)  # noqa: T201
            self._complained = True

    def _tell_node(self, beat: Heartbeat) -> bool:
        """Whether the node's ranks see to it that this is told."""
        try:
            if self._node_beats is not None:
                self._node_beats.beat(beat, self.every_s)
        except OSError:  # the node's memory is full, or the carrier cannot write
            return False
        return self._node_beats is not None

    def _tell_progress(self, beat: Heartbeat) -> None:
        now = time.monotonic()
        if self.rank != 0 or self.step is None:
            return
        pause_s = min(_PROGRESS_S, max(self.every_s, (now - self._began) / 100))
        is_due = self._told is None or now - self._told[0] >= pause_s or beat.phase == "end"
        if is_due and (self._told is None or self._told[1] != beat.step):
            append_progress(self._attempt, beat)
            self._told = (now, beat.step)

    def _look_for_requests(self) -> None:
        if not self._dumped and self._requests.dump_request.exists():
            self._dumped = True
            faulthandler.dump_traceback(self._stacks, all_threads=True)
        code = _abort_code(self._requests.abort)
        if code is not None:
            print(f"told by the supervisor to leave with {code}", file=sys.stderr, flush=True)  # noqa: T201
            if self._node_beats is not None:
                self._node_beats.leave(self.rank)
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
