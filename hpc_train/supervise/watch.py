"""Watching the ranks: have they ended, do they move, was somebody asked to stop."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hpc_train.config.schema import WatchdogConfig
from hpc_train.store.layout import AttemptDir
from hpc_train.store.ranks import Heartbeat, read_exits, read_heartbeats
from hpc_train.supervise.launch import Ranks
from hpc_train.supervise.outcome import Hang

__all__ = ["Movement", "Watched", "watch"]

POLL_S = 0.1
BEATS_EVERY_S = 1.0
# A step of many ranks may take this many times its median and is still only slow.
PATIENCE = 30
# Time for the launcher to end by itself once a rank has said that it failed or saved.
LAUNCHER_GRACE_S = 20.0
SILENCE_S = 15.0
STACKS_S = 3.0


@dataclass(frozen=True)
class Watched:
    """What was seen: the launcher's status, and why it was ended where we ended it."""

    launcher_code: int
    hang: Hang | None = None
    silent_nodes: tuple[str, ...] = ()


@dataclass
class Movement:
    """When each rank last moved or gave a sign of life, by the supervisor's own clock.

    The nodes' clocks are not compared with one another: they may be an hour apart.
    """

    limits: WatchdogConfig
    started: float
    moved: dict[int, float] = field(default_factory=dict)
    alive: dict[int, float] = field(default_factory=dict)
    last: dict[int, Heartbeat] = field(default_factory=dict)

    def see(self, beats: Sequence[Heartbeat], now: float) -> None:
        """Take in the newest beats; `now` is monotonic."""
        for beat in beats:
            before = self.last.get(beat.rank)
            if before is None or before.time != beat.time:
                self.alive[beat.rank] = now
            if before is None or _position(before) != _position(beat):
                self.moved[beat.rank] = now
            self.last[beat.rank] = beat

    def silent_nodes(self, now: float) -> tuple[str, ...]:
        """Nodes of which no rank gives a sign of life while ranks elsewhere do."""
        quiet = {rank for rank, at in self.alive.items() if now - at > self._silence_s()}
        if not quiet or len(quiet) == len(self.alive):
            return ()
        nodes = {beat.node for beat in self.last.values()}
        speaking = {beat.node for rank, beat in self.last.items() if rank not in quiet}
        return tuple(sorted(nodes - speaking))

    def hang(self, world_size: int, now: float) -> Hang | None:
        """The hang, once nothing has moved on any rank for longer than the phase allows."""
        newest = max(self.moved.values(), default=self.started)
        limit = self.limit_s(world_size)
        if now - newest <= limit:
            return None
        late = self.late_ranks(world_size, now)
        nodes = tuple(sorted({self.last[rank].node for rank in late if rank in self.last}))
        who = _who(late, nodes)
        return Hang(
            reason=f"nothing moved for {now - newest:.0f} s (limit {limit:.0f} s); {who}",
            late_ranks=late,
            # All ranks late means nobody can be told apart, so no node is blamed.
            nodes=nodes if len(late) < world_size else (),
        )

    def late_ranks(self, world_size: int, now: float) -> tuple[int, ...]:
        """Ranks that are silent, else missing, else behind the others; all if none stands out."""
        silent = [rank for rank, at in self.alive.items() if now - at > self._silence_s()]
        missing = [rank for rank in range(world_size) if rank not in self.last]
        for group in (silent, missing):
            if group and len(group) < world_size:
                return tuple(sorted(group))
        front = max((_progress(beat) for beat in self.last.values()), default=(0, 0))
        behind = [rank for rank, beat in self.last.items() if _progress(beat) < front]
        return tuple(sorted(behind)) or tuple(range(world_size))

    def limit_s(self, world_size: int) -> float:
        """How long nothing may move now, by the phase the slowest rank is in."""
        limits = self.limits
        phases = {beat.phase for beat in self.last.values()}
        if len(self.last) < world_size or "start" in phases:
            return limits.start_timeout_s
        if "save" in phases:
            return limits.save_timeout_s
        times = [beat.step_time_s for beat in self.last.values() if beat.step_time_s is not None]
        learned = max(limits.floor_s, PATIENCE * statistics.median(times)) if times else None
        if "validate" in phases:
            return limits.validation_timeout_s or learned or limits.start_timeout_s
        return limits.step_timeout_s or learned or limits.start_timeout_s

    def _silence_s(self) -> float:
        return max(SILENCE_S, 10 * self.limits.heartbeat_s)


def watch(
    ranks: Ranks,
    attempt: AttemptDir,
    limits: WatchdogConfig,
    world_size: int,
    *,
    node_answers: Callable[[str], bool],
    each_second: Callable[[], None],
) -> Watched:
    """Wait until the ranks are gone; end them where they would wait for ever.

    Args:
        node_answers: Tells whether a silent node is still there at all.
        each_second: Called about once a second (signals to pass on, progress to tell).
    """
    movement = Movement(limits, started=time.monotonic())
    next_look = time.monotonic()
    first_exit: float | None = None
    # Many ranks' files are read less often, so that watching costs the file system little.
    look_every_s = max(BEATS_EVERY_S, world_size / 200)
    while (code := ranks.poll()) is None:
        time.sleep(POLL_S)
        now = time.monotonic()
        if now < next_look:
            continue
        next_look = now + look_every_s
        each_second()
        movement.see(read_heartbeats(attempt), now)
        if first_exit is None and any(record.code for record in read_exits(attempt)):
            first_exit = now
        if first_exit is not None and now - first_exit > LAUNCHER_GRACE_S:
            ranks.kill()
            return Watched(ranks.poll() or 1, silent_nodes=movement.silent_nodes(now))
        lost = tuple(node for node in movement.silent_nodes(now) if not node_answers(node))
        if lost:
            _end(ranks, attempt, code=76)
            return Watched(ranks.poll() or 1, silent_nodes=lost)
        hang = movement.hang(world_size, now) if limits.enabled else None
        if hang is not None:
            attempt.dump_request.touch()
            time.sleep(STACKS_S)
            _end(ranks, attempt, code=77)
            return Watched(ranks.poll() or 1, hang=hang)
    return Watched(code, silent_nodes=movement.silent_nodes(time.monotonic()))


def _end(ranks: Ranks, attempt: AttemptDir, *, code: int) -> None:
    """Let ranks that still can leave by themselves do so, then end the step."""
    attempt.abort.write_text(f"{code}\n", encoding="utf-8")
    deadline = time.monotonic() + 3
    while ranks.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_S)
    ranks.kill()


def _position(beat: Heartbeat) -> tuple[str, int, int, float]:
    return beat.phase, beat.step, beat.batch, beat.moved


def _progress(beat: Heartbeat) -> tuple[int, int]:
    return beat.step, beat.batch


def _who(late: Sequence[int], nodes: Sequence[str]) -> str:
    names = ", ".join(map(str, late[:8])) + (" ..." if len(late) > 8 else "")
    return f"late: rank{'s' if len(late) > 1 else ''} {names} on {', '.join(nodes) or 'no node'}"
