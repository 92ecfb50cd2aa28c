"""All runs, kept up to date: what has changed is read again, and Slurm is asked rarely."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpc_train.backends.follow import ASK_SLURM_EVERY_S
from hpc_train.backends.observe import SlurmAnswer, ask_slurm
from hpc_train.backends.sweep_jobs import observe_all
from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import RunState
from hpc_train.report.node_use import gpus_now
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import all_runs, folders, no_folder, not_whole, to_make_one
from hpc_train.runs.status import SESSION, RunStatus
from hpc_train.runs.sweep_dir import Entry, all_sweeps, with_sweeps
from hpc_train.runs.sweep_status import SweepStatus
from hpc_train.top.watched_run import RunsSnapshot, WatchedRun, unreadable

FIRST = 30  # runs that are shown before the others have been read
AT_ONCE = 500  # runs that are read before a page is told of them
EVERY_S = 2.0
# Of one core: a pass that cost much is followed by a longer pause.
SHARE, LONGEST_PAUSE_S = 0.008, 15.0
# Of the runs that have ended, so many of the newest and so many others are looked at in a pass.
LOOKED_AT = 50
MOST_FRESH = 200  # of those that have ended just now, the newest are looked at in each pass
SETTLED_S = 60.0  # nothing was written for so long: the end is the end
# What a damaged file or one of another version does to its reader.
DAMAGED = (HpcTrainError, OSError, ValueError, TypeError, KeyError, AttributeError)

Signature = tuple[int, ...]


@dataclass(frozen=True)
class _Known:
    """A row, and what its files and Slurm's answer were when it was made.

    Attributes:
        over: It has ended by its own word, so that no answer of Slurm's changes it.
        settled: It has ended, and was not written to for `SETTLED_S`.
    """

    row: WatchedRun
    signature: Signature
    answer: SlurmAnswer
    over: bool
    settled: bool


class RunWatcher:
    """Watches all runs below a folder, in a thread of its own.

    Args:
        runs_dir: As `registry.folders` takes it.
        publish: Called from the thread once there is a new snapshot, `newest`.
    """

    def __init__(self, runs_dir: Path | None, publish: Callable[[], None] = lambda: None) -> None:
        self.newest: RunsSnapshot | None = None
        self._publish = publish
        self._roots = folders(runs_dir)  # raises where that is no folder
        self._entries: list[Entry] = []
        self._known: dict[Path, _Known] = {}
        self._open: list[Entry] = []
        self._settled: list[Entry] = []
        self._ended: tuple[WatchedRun, ...] = ()
        self._is_sorted = False
        self._there: tuple[object, ...] | None = None
        self._whole: set[Path] = set()
        self._partial: tuple[Path, ...] = ()
        self._answer = SlurmAnswer(asked=())
        self._asking: threading.Thread | None = None
        self._ask_at, self._turn = 0.0, 0
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin; it ends with `stop`, or with the process."""
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def stop(self) -> None:
        """End it."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            before, known = time.process_time(), len(self._known)
            try:
                for _ in self.passes():
                    self._publish()
                    if self._stop.is_set():
                        return
            except DAMAGED as error:  # what is shown is old, and must not look as if it were new
                shown = self.newest or RunsSnapshot()
                self.newest = replace(shown, notes=(f"the runs cannot be read: {error}",))
                self._publish()
            self._stop.wait(EVERY_S)
            spent_s = time.process_time() - before  # with what the page drew of it
            if len(self._known) == known:
                self._stop.wait(min(max(0.0, spent_s / SHARE - EVERY_S), LONGEST_PAUSE_S))

    def passes(self) -> Iterator[RunsSnapshot]:
        """Look once; the first time in steps, the newest runs first."""
        is_new = self._scan()
        unread = [entry for entry in self._entries if entry.path not in self._known]
        for first in [0, *range(FIRST, len(unread), AT_ONCE)] if is_new else []:
            some = unread[first : FIRST if first == 0 else first + AT_ONCE]
            self._observe(some)
            if first:  # what has not ended is among the newest, as a rule
                self._ask()
            if some:
                yield self._snapshot()
        if is_new:
            self._partial = tuple(not_whole(self._roots, self._whole))
        self._ask()
        self._observe(self._to_look_at())
        yield self._snapshot()

    def look_once(self) -> RunsSnapshot:
        """All runs, with Slurm's answer waited for."""
        for snapshot in self.passes():
            found = snapshot
        if self._asking:
            self._asking.join()
            *_, found = self.passes()
        return found

    def _scan(self) -> bool:
        """Find the runs, where a folder of them has changed, or a run that was half made."""
        there = (*_changes(self._roots), *map(_mtime_ns, self._partial))
        if there == self._there:
            return False
        try:
            runs, sweeps = all_runs(self._roots), all_sweeps(self._roots)
            self._entries = with_sweeps(runs, sweeps)
        except OSError:  # one was removed meanwhile
            return False
        self._whole = {run.path for run in runs} | {sweep.path for sweep in sweeps}
        self._there, self._is_sorted = there, False
        here = {entry.path for entry in self._entries}
        self._known = {path: known for path, known in self._known.items() if path in here}
        return True

    def _sort_out(self) -> None:
        """Tell what goes on from what has ended, where any row has moved from one to the other."""
        if self._is_sorted:
            return
        known = [(it, self._known[it.path]) for it in self._entries if it.path in self._known]
        self._open, self._settled, fresh = [], [], 0
        for entry, it in known:
            fresh += it.over and not it.settled
            in_turn = it.settled or (it.over and fresh > MOST_FRESH)
            (self._settled if in_turn else self._open).append(entry)
        self._ended = tuple(it.row for _, it in known if it.row.status.state.ended)
        self._is_sorted = True

    def _to_look_at(self) -> list[Entry]:
        """What goes on, and in turn some of what has ended: it may have been resumed."""
        self._sort_out()
        self._turn = (self._turn + LOOKED_AT) % max(1, len(self._settled))
        others = self._settled[max(FIRST, self._turn) :][:LOOKED_AT]
        return [*self._open, *self._settled[:FIRST], *others]

    def _observe(self, entries: Sequence[Entry]) -> None:
        """Read those that have changed, or of which Slurm has told something new."""
        now, answer, changed = time.time(), self._answer, []
        for entry in entries:
            signature, known = _signature(entry), self._known.get(entry.path)
            is_old = known and (known.over or known.settled or known.answer is answer)
            if known is None or known.signature != signature or not is_old:
                changed.append((entry, signature))
            elif known.over and not known.settled and _is_settled(known.row, signature, now):
                self._known[entry.path] = replace(known, settled=True)
                self._is_sorted = False
        rows = _observed([entry for entry, _ in changed], now, answer)
        for (entry, signature), row in zip(changed, rows, strict=True):
            before = self._known.get(entry.path)
            if before is None or before.answer is not answer:  # as seldom as Slurm is asked
                row = replace(row, gpu_percent=_gpu_percent(row, now))
            else:
                row = replace(row, gpu_percent=before.row.gpu_percent)
            settled = _is_settled(row, signature, now)
            self._known[entry.path] = _Known(row, signature, answer, _is_over(row, answer), settled)
            if before is None or settled or row.status.state.ended or before.row.status.state.ended:
                self._is_sorted = False

    def _ask(self) -> None:
        """Have a thread ask Slurm of all jobs at once; the page never waits for its answer."""
        now = time.monotonic()
        if now < self._ask_at or (self._asking and self._asking.is_alive()):
            return
        self._sort_out()
        jobs = {job for entry in self._open for job in self._jobs_of(self._known[entry.path])}
        if not jobs:
            return
        self._ask_at = now + ASK_SLURM_EVERY_S

        def ask() -> None:
            self._answer = replace(ask_slurm(jobs), asked=jobs)

        self._asking = threading.Thread(target=ask, name="ask-slurm", daemon=True)
        self._asking.start()

    def _jobs_of(self, known: _Known) -> list[str]:
        """Those that Slurm may know more of than the runs themselves say."""
        before = self._answer.asked or ()
        return [
            run.job_id
            for run in _runs_in(known.row)
            if run.backend == "slurm" and run.job_id and (run.silence or run.job_id in before)
        ]

    def _snapshot(self) -> RunsSnapshot:
        self._sort_out()
        rows = (self._known[entry.path].row for entry in self._open)
        active = tuple(row for row in rows if not row.status.state.ended)
        notes = []
        if self._answer.silence and active:
            notes.append(f"{self._answer.silence}: states are the last known")
        if self._partial:
            more = f" and {len(self._partial) - 1} more" if len(self._partial) > 1 else ""
            notes.append(f"half deleted, or not yours to read: {self._partial[0]}{more}")
        if not self._entries:
            where = ", ".join(map(str, self._roots)) or no_folder()
            notes.append(f"no runs in {where}; {to_make_one()}")
        unread = len(self._entries) - len(self._known)
        self.newest = RunsSnapshot(active, self._ended, unread, tuple(notes))
        return self.newest


def _changes(roots: Iterable[Path]) -> Iterator[object]:
    """When runs were added to or taken from the folders of each name."""
    for root in roots:
        try:
            with os.scandir(root) as names:
                yield root, sorted((it.name, it.stat().st_mtime_ns) for it in names if it.is_dir())
        except OSError:
            yield root, None


def _signature(entry: Entry) -> Signature:
    """Differs once a run has written anything that its row tells."""
    files = [entry.events]
    if isinstance(entry, RunDir):
        files.append(entry.latest_attempt.heartbeat(0))
    else:
        try:
            points = [entry.point(number) for number in range(len(entry.plan.points))]
        except DAMAGED:
            points = []
        files += [file for it in points for file in (it.events, it.latest_attempt.heartbeat(0))]
    return tuple(_mtime_ns(file) for file in files)


def _mtime_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _observed(entries: Sequence[Entry], now: float, answer: SlurmAnswer) -> list[WatchedRun]:
    """Their rows; one that cannot be read does not hide the others."""
    try:
        found = observe_all(entries, now, answer)
        return [_row(entry, seen) for entry, seen in zip(entries, found, strict=True)]
    except DAMAGED as error:
        if len(entries) == 1:
            return [unreadable(entries[0], error)]
        half = len(entries) // 2
        return [
            r for some in (entries[:half], entries[half:]) for r in _observed(some, now, answer)
        ]


def _row(entry: Entry, seen: RunStatus | SweepStatus) -> WatchedRun:
    if isinstance(seen, SweepStatus):
        return WatchedRun(entry, seen.as_run(), seen)
    return WatchedRun(entry, seen)


def _runs_in(row: WatchedRun) -> list[RunStatus]:
    return [point.run for point in row.sweep.points] if row.sweep else [row.status]


def _is_over(row: WatchedRun, answer: SlurmAnswer) -> bool:
    """Whether it has ended by its own word: then Slurm was not asked of its job, nor silent."""
    return all(
        run.state.ended
        and run.backend == "slurm"
        and not run.silence
        and run.job_id not in (answer.asked or ())
        for run in _runs_in(row)
    )


def _is_settled(row: WatchedRun, signature: Signature, now: float) -> bool:
    """Whether nothing more will happen to it until somebody resumes it, and writes that down."""
    return (
        all(run.state.ended and run.backend != SESSION for run in _runs_in(row))
        and now - signature[0] / 1e9 > SETTLED_S
    )


def _gpu_percent(row: WatchedRun, now: float) -> float | None:
    if row.status.state is not RunState.RUNNING or not isinstance(row.entry, RunDir):
        return None
    return gpus_now(row.entry, now)
