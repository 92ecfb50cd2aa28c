"""Watching the ranks: have they ended, do they move, was somebody asked to stop."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hpc_train.config.schema import WatchdogConfig
from hpc_train.diagnose.left_loops import left_loops
from hpc_train.diagnose.stacks import Stack, places_apart, read_stacks
from hpc_train.diagnose.uneven_shares import uneven_shares
from hpc_train.plan.states import RankExit
from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import Heartbeat, read_exits, read_heartbeats
from hpc_train.supervisor.awake_clock import awake_clock
from hpc_train.supervisor.deaths import Death
from hpc_train.supervisor.evidence import Hang
from hpc_train.supervisor.launch import Ranks

POLL_S = 0.1
BEATS_EVERY_S = 1.0
# A step of many ranks may take this many times its median and is still only slow.
PATIENCE = 30
# Once a rank has failed: for the others to say the same, and for the launcher to end them. srun
# sends SIGTERM, which a rank in a collective only notes, and SIGKILL after KillWait (30 s). Gloo
# itself may leave a rank waiting for its group's timeout, 30 min: what it wrote to a peer that has
# died is in no list that is told (gloo/transport/tcp/pair.cc, Pair::signalException).
FAILED_GRACE_S = 3.0
# Once a rank has saved and left, the others have saved as well and are on their way out.
SAVED_GRACE_S = 20.0
# After this a silent rank is called late, and its node is asked whether it is there.
SILENCE_S = 15.0
SUSPECT_S = 5.0
# All at once are silent: a file system may show new files a minute late (nfs(5), ac).
ALL_SILENT_S = 120.0
ASK_NODES_EVERY_S = 3.0
# srun may wait for minutes for a node that cannot be reached: after this, and then as often, the
# nodes whose ranks have given no sign of life yet are asked.
FIRST_BEATS_S = 30.0
STACKS_S = 3.0


@dataclass(frozen=True)
class Watched:
    """What was seen: the launcher's status, and why it was ended where we ended it.

    Attributes:
        deaths: Where nodes were lost, the ranks that had ended before; those that are reported
            later were ended by us.
        is_killed: The launcher was ended by us; else it knows of the ends of all ranks.
    """

    launcher_code: int
    hang: Hang | None = None
    lost_nodes: tuple[str, ...] = ()
    deaths: tuple[Death, ...] = ()
    is_killed: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the launcher has said all that it knows: nothing else ended the ranks."""
        return not (self.is_killed or self.hang or self.lost_nodes)


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
        """Take in the newest beats; `now` is by the clock of `watch`, as everywhere here."""
        for beat in beats:
            before = self.last.get(beat.rank)
            if before is None or before.time != beat.time:
                self.alive[beat.rank] = now
            if before is None or _position(before) != _position(beat):
                self.moved[beat.rank] = now
            self.last[beat.rank] = beat

    def suspects(self, now: float) -> tuple[str, ...]:
        """Nodes of which no rank gives a sign of life; they are asked, so a few seconds suffice."""
        nodes = {beat.node for beat in self.last.values()}
        quiet = self._silent(now, max(SUSPECT_S, 5 * self.limits.heartbeat_s))
        speaking = {beat.node for rank, beat in self.last.items() if rank not in quiet}
        return tuple(sorted(nodes - speaking))

    def stalls(self, now: float) -> bool:
        """Whether training steps take so much longer than usual that a peer may be unreachable."""
        times = [beat.step_time_s for beat in self.last.values() if beat.step_time_s is not None]
        if not times or {beat.phase for beat in self.last.values()} != {"train"}:
            return False
        return now - max(self.moved.values()) > max(SUSPECT_S, 10 * statistics.median(times))

    def hang(self, world_size: int, now: float) -> Hang | None:
        """The hang, once nothing has moved on any rank for longer than the phase allows."""
        told = [beat.ranks for beat in self.last.values() if beat.ranks is not None]
        world_size = max(told, default=world_size)
        if len(self._silent(now, ALL_SILENT_S)) == world_size:
            return Hang(
                reason=f"no rank gave a sign of life for {ALL_SILENT_S:.0f} s, on any node",
                late_ranks=tuple(range(world_size)),
            )
        newest = max(self.moved.values(), default=self.started)
        limit = self.limit_s(world_size, now)
        if now - newest <= limit:
            return None
        late = self.late_ranks(world_size, now, limit)
        nodes = tuple(sorted({self.last[rank].node for rank in late if rank in self.last}))
        return Hang(
            reason=f"nothing moved for {now - newest:.0f} s (limit {limit:.0f} s)",
            who=_who(late, nodes, world_size),
            late_ranks=late,
            step=max((beat.step for beat in self.last.values()), default=None),
            # All ranks late means nobody can be told apart, so no node is blamed.
            nodes=nodes if len(late) < world_size else (),
        )

    def late_ranks(self, world_size: int, now: float, limit_s: float) -> tuple[int, ...]:
        """Ranks that are silent, else missing, else behind the others; all if none stands out."""
        silent = self._silent(now, min(self._silence_s, limit_s / 2))
        missing = [rank for rank in range(world_size) if rank not in self.last]
        for group in (silent, missing):
            if group and len(group) < world_size:
                return tuple(sorted(group))
        front = max((_progress(beat) for beat in self.last.values()), default=(0, 0))
        behind = [rank for rank, beat in self.last.items() if _progress(beat) < front]
        return tuple(sorted(behind)) or tuple(range(world_size))

    def limit_s(self, world_size: int, now: float) -> float:
        """How long nothing may move now, by the phase the slowest rank is in.

        A rank that fell silent while it started, and without which the others cannot have taken
        steps, has started: it was stopped before it could tell.
        """
        limits = self.limits
        times = [beat.step_time_s for beat in self.last.values() if beat.step_time_s is not None]
        phases = {beat.phase for beat in self.last.values()}
        if times and phases != {"start"}:
            silent = self._silent(now, self._silence_s)
            starting = {rank for rank, beat in self.last.items() if beat.phase == "start"}
            phases -= {"start"} if starting <= silent else set()
        if len(self.last) < world_size or "start" in phases:
            return limits.start_timeout_s
        if "save" in phases:
            return limits.save_timeout_s
        learned = max(limits.floor_s, PATIENCE * statistics.median(times)) if times else None
        if "validate" in phases:
            return limits.validation_timeout_s or learned or limits.start_timeout_s
        return limits.step_timeout_s or learned or limits.start_timeout_s

    @property
    def _silence_s(self) -> float:
        return max(SILENCE_S, 10 * self.limits.heartbeat_s)

    def _silent(self, now: float, longer_than_s: float) -> set[int]:
        return {rank for rank, at in self.alive.items() if now - at > longer_than_s}


def watch(
    ranks: Ranks,
    attempt: AttemptDir,
    limits: WatchdogConfig,
    nodes: Sequence[str],
    world_size: int,
    *,
    lost_nodes: Callable[[], Collection[str]],
    each_second: Callable[[], None],
) -> Watched:
    """Wait until the ranks are gone; end them where they would wait for ever.

    Args:
        nodes: Of the attempt, in the order of the ranks.
        lost_nodes: Asks all nodes, and says which do not answer; may take seconds.
        each_second: Called about once a second (signals to pass on, progress to tell).
    """
    with awake_clock(time.monotonic) as clock:
        return _watch(ranks, attempt, limits, nodes, world_size, lost_nodes, each_second, clock)


def _watch(
    ranks: Ranks,
    attempt: AttemptDir,
    limits: WatchdogConfig,
    nodes: Sequence[str],
    world_size: int,
    lost_nodes: Callable[[], Collection[str]],
    each_second: Callable[[], None],
    clock: Callable[[], float],
) -> Watched:
    movement = Movement(limits, started=clock())
    failure = _FailureWatch(attempt, ranks, nodes, world_size)
    questions = _NodeQuestions(movement, failure, nodes, world_size, lost_nodes, clock)
    next_look = clock()
    # Many ranks' files are read less often, so that watching costs the file system little.
    look_every_s = max(BEATS_EVERY_S, world_size / 200)
    while (code := ranks.poll()) is None:
        time.sleep(POLL_S)
        now = clock()
        if now < next_look:
            continue
        next_look = now + look_every_s
        each_second()
        movement.see(read_heartbeats(attempt), now)
        failure.look(now)
        if ranks.unlaunched(nodes):
            return _ended(ranks, attempt, RankExit.NETWORK)
        if lost := questions.lost(now):
            return _ended(ranks, attempt, RankExit.NETWORK, lost_nodes=lost)
        if failure.overdue(now):
            return _ended(ranks, attempt, RankExit.NETWORK)
        if limits.enabled and (hang := movement.hang(world_size, now)) is not None:
            with contextlib.suppress(OSError):  # a full disk: then there are no stacks
                attempt.dump_request.touch()
            time.sleep(STACKS_S)
            hang = _with_places(hang, read_stacks(attempt), movement.last, world_size)
            return _ended(ranks, attempt, RankExit.WATCHDOG, hang=hang)
    return Watched(code)


def _with_places(
    hang: Hang, stacks: Sequence[Stack], beats: Mapping[int, Heartbeat], world_size: int
) -> Hang:
    """Where the ranks wait for each other; not beside a late rank that cannot even say its own."""
    is_named = len(hang.late_ranks) < world_size
    if is_named and not {stack.rank for stack in stacks}.issuperset(hang.late_ranks):
        return hang
    uneven = uneven_shares(stacks, beats) or left_loops(stacks)
    return replace(hang, places=places_apart(stacks), uneven=uneven)


class _FailureWatch:
    """When the first rank ended otherwise than well, and which nodes have said nothing since."""

    def __init__(
        self, attempt: AttemptDir, ranks: Ranks, nodes: Sequence[str], world_size: int
    ) -> None:
        self._attempt = attempt
        self._ranks = ranks
        self._node_of = [nodes[rank * len(nodes) // world_size] for rank in range(world_size)]
        self._at: float | None = None
        self._spoken: set[int] = set()
        self._all_saved = True

    def look(self, now: float) -> None:
        """Read what the ranks and their launcher have said so far."""
        codes = {record.rank: record.code for record in read_exits(self._attempt)}
        codes |= {death.rank: death.code or -death.signal for death in self._ranks.deaths()}
        bad = [code for code in codes.values() if code]
        self._spoken = set(codes)
        self._all_saved = all(code == RankExit.SAVED for code in bad)
        if bad and self._at is None:
            self._at = now

    def silent_nodes(self, now: float) -> set[str]:
        """Nodes of ranks that neither ended nor were ended though another one failed."""
        if self._at is None or now - self._at < FAILED_GRACE_S / 2:
            return set()
        return self.nodes_of(set(range(len(self._node_of))) - self._spoken)

    def nodes_of(self, ranks: Collection[int]) -> set[str]:
        """The nodes of some ranks."""
        return {self._node_of[rank] for rank in ranks}

    def overdue(self, now: float) -> bool:
        """Whether the launcher has had its time to end the others."""
        grace_s = SAVED_GRACE_S if self._all_saved else FAILED_GRACE_S
        return self._at is not None and now - self._at > grace_s


class _NodeQuestions:
    """Which nodes may be lost, and when they are asked."""

    def __init__(
        self,
        movement: Movement,
        failure: _FailureWatch,
        nodes: Sequence[str],
        world_size: int,
        lost_nodes: Callable[[], Collection[str]],
        clock: Callable[[], float],
    ) -> None:
        self._movement = movement
        self._failure = failure
        self._nodes = nodes
        self._ranks = frozenset(range(world_size))
        self._lost_nodes = lost_nodes
        self._clock = clock
        self._next = clock()
        self._next_first_beats = self._next + FIRST_BEATS_S

    def lost(self, now: float) -> tuple[str, ...]:
        """Suspected nodes that do not answer; takes seconds where one is asked."""
        suspects = {*self._movement.suspects(now), *self._failure.silent_nodes(now)}
        if self._movement.stalls(now):
            suspects.update(self._nodes)
        if now >= self._next_first_beats:
            suspects |= self._failure.nodes_of(self._ranks.difference(self._movement.last))
            self._next_first_beats = now + FIRST_BEATS_S
        if not suspects or now < self._next:
            return ()
        lost = tuple(sorted(suspects.intersection(self._lost_nodes())))
        self._next = self._clock() + ASK_NODES_EVERY_S
        return lost


def _ended(
    ranks: Ranks,
    attempt: AttemptDir,
    code: RankExit,
    *,
    hang: Hang | None = None,
    lost_nodes: tuple[str, ...] = (),
) -> Watched:
    """End the step, once ranks that still can have had the time to leave by themselves."""
    deaths = tuple(ranks.deaths()) if lost_nodes else ()
    with contextlib.suppress(OSError):  # a full disk: then the launcher ends them
        attempt.abort.write_text(f"{int(code)}\n", encoding="utf-8")
    deadline = time.monotonic() + 3
    while ranks.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_S)
    is_killed = ranks.poll() is None
    ranks.kill()
    return Watched(ranks.poll() or 1, hang, lost_nodes, deaths, is_killed)


def _position(beat: Heartbeat) -> tuple[str, int, int, float]:
    return beat.phase, beat.step, beat.batch, beat.moved


def _progress(beat: Heartbeat) -> tuple[int, int]:
    return beat.step, beat.batch


def _who(late: Sequence[int], nodes: Sequence[str], world_size: int) -> str:
    if 1 < world_size == len(late):
        return "no rank is behind the others" if nodes else "no rank has begun"
    names = ", ".join(map(str, late[:8])) + (" ..." if len(late) > 8 else "")
    return f"late: rank{'s' if len(late) > 1 else ''} {names} on {', '.join(nodes) or 'no node'}"
