"""`hpc-train logs`: what ranks have written, and what they go on to write."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from hpc_train import api
from hpc_train.cli.common import complete_runs, print_notes, runs_dir_option
from hpc_train.cli.finding import newest_to_read, run_to_read
from hpc_train.errors import HpcTrainError, RunFailedError, UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.events import read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.history_text import shortened
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import SESSION, RunStatus
from hpc_train.runs.unsaid_ends import UNEXPLAINED

POLL_S = 0.3
MOST_OF_ERROR = 200  # characters
OF_RANK = re.compile(r"rank-(\d+)\.log\Z")


class RankNumber(click.IntRange):
    """A rank by its number; `all` is another option."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        if value == "all":
            raise UsageError("--rank is one rank's number", "--all shows all ranks")
        return super().convert(value, param, ctx)


@click.command("logs")
@click.argument("run", metavar="[RUN]", required=False, shell_complete=complete_runs)
@click.option("--rank", type=RankNumber(min=0), help="Global rank; 0 by default.")
@click.option("--all", "every", is_flag=True, help="All ranks, each line with its rank.")
@click.option("--attempt", type=click.IntRange(min=0), help="The newest by default.")
@click.option("--supervisor", is_flag=True, help="The supervisor's log instead of a rank's.")
@click.option("-n", "lines", type=click.IntRange(min=0), help="Only the last LINES of each log.")
@click.option("-f", "--follow", is_flag=True, help="Wait for it, and go on as it is written.")
@runs_dir_option
def command(
    run: str | None,
    rank: int | None,
    every: bool,
    attempt: int | None,
    supervisor: bool,
    lines: int | None,
    follow: bool,
    runs_dir: Path | None,
) -> int:
    """Show what a rank of RUN has written; without RUN that of the newest.

    With -f it waits for a log that is not there yet, goes on to the next attempt's, and ends with
    the run; Ctrl-C leaves the job alone.
    """
    if every + supervisor + (rank is not None) > 1:
        raise UsageError("--rank, --all and --supervisor exclude one another", "give one of them")
    if run is None:
        found = api.Run(newest_to_read(runs_dir))
        print_notes([f"the newest run: {found.directory.name}/{found.directory.run_id}"])
    else:
        found = run_to_read(run, runs_dir)
    _refuse_what_cannot_be(found, rank, attempt)
    logs = _Logs(found, None if every else rank or 0, attempt, supervisor, lines)
    if not follow:
        texts = list(logs.news())
        if not texts and not logs.files():
            raise _no_log(found, logs.owner)
        if not texts and lines != 0:
            click.echo(_nothing_yet(found, logs.who, attempt), err=True)
        click.echo("".join(texts), nl=False)
        _tell_first(found, logs)
        return 0
    try:
        for text in _follow(found, logs, attempt):
            click.echo(text, nl=False)
        _tell_first(found, logs)
    except KeyboardInterrupt:
        click.echo("left; the job goes on", err=True)
    return 0


def _tell_first(run: api.Run, logs: _Logs) -> None:
    """Say which rank failed first, where the log of one that lost its connection is shown."""
    attempts = attempts_in(read_events(run.directory.events))
    asked = [it for it in attempts if logs.attempt in (None, it.attempt)]
    if logs.rank is None or logs.supervisor or not asked:
        return
    ended = asked[-1]
    if ended.rank in (None, logs.rank) or not ended.error:
        return
    what = f"{shortened(ended.error, MOST_OF_ERROR)}{f', {ended.where}' if ended.where else ''}"
    of = f" --attempt {ended.attempt}" if logs.attempt is not None else ""
    line = f"hpc-train logs {run_word(run.directory.path)} --rank {ended.rank}{of}"
    click.echo(f"rank {ended.rank} failed first ({what}): {line}", err=True)


@dataclass
class _Logs:
    """The logs that were asked for, and how far each has been read.

    Attributes:
        rank: None for all.
        last: How many lines of what is there at first; None for all.
    """

    run: api.Run
    rank: int | None
    attempt: int | None
    supervisor: bool
    last: int | None
    offsets: dict[Path, int] = field(default_factory=dict)

    def files(self) -> dict[Path, str]:
        """Each log that is there, and what to put before its lines.

        They are found anew each time: a restart begins others.
        """
        one = self.run.log_file(self.rank or 0, self.attempt)
        if self.supervisor:
            one = one.with_name("supervisor.log")
        if self.supervisor or self.rank is not None:
            return {one.resolve(): ""} if one.exists() else {}
        ranks = sorted(
            (int(match[1]), path.resolve())
            for path in one.parent.glob("rank-*.log")
            if (match := OF_RANK.match(path.name))
        )
        return {path: f"[rank{rank}]: " for rank, path in ranks}

    @property
    def who(self) -> str:
        """Who writes them."""
        of_ranks = "no rank" if self.rank is None else f"rank {self.rank}"
        return "the supervisor" if self.supervisor else of_ranks

    @property
    def owner(self) -> str:
        """The same in front of the run's name; empty for all of it."""
        return "" if self.supervisor or self.rank is None else f"rank {self.rank} of "

    def has_text(self) -> bool:
        """Whether those that are there now have had some."""
        return any(self.offsets.get(path) for path in self.files())

    def news(self, *, ended: bool = True) -> Iterator[str]:
        """What was written since the last call; a line that has no end yet only where `ended`."""
        for path, prefix in self.files().items():
            text = self._read(path, whole_lines=bool(prefix) and not ended)
            if prefix:
                text = "".join(f"{prefix}{line}\n" for line in text.splitlines())
            if text:
                yield text
        self.last = None  # what comes from here on is new

    def _read(self, path: Path, *, whole_lines: bool) -> str:
        first = path not in self.offsets
        with path.open("rb") as stream:
            stream.seek(self.offsets.get(path, 0))
            data = stream.read()
        if whole_lines:
            data = data[: data.rfind(b"\n") + 1]
        self.offsets[path] = self.offsets.get(path, 0) + len(data)
        if first and self.last is not None:
            lines = data.splitlines(keepends=True)
            data = b"".join(lines[len(lines) - self.last :] if self.last < len(lines) else lines)
        return data.decode(errors="replace")


def _refuse_what_cannot_be(run: api.Run, rank: int | None, attempt: int | None) -> None:
    """An attempt that there never was, or a rank of a smaller run; waiting would bring neither.

    Raises:
        UsageError: with what there is.
    """
    name = f"{run.directory.name} ({run.directory.run_id})"
    known = sorted(int(path.name) for path in run.directory.attempts.glob("[0-9]*"))
    if attempt is not None and known and attempt > known[-1]:
        raise UsageError(
            f"{name} has no attempt {attempt}", f"--attempt K, of {known[0]} to {known[-1]}"
        )
    ranks = None if run.log_file(rank or 0, attempt).exists() else _world_size(run)
    if rank is not None and ranks is not None and rank >= ranks:
        raise UsageError(
            f"{name} has no rank {rank}", f"it has {ranks}: --rank R, of 0 to {ranks - 1}"
        )


def _world_size(run: api.Run) -> int | None:
    """Ranks of the run as it is planned now; None where it has no plan that can be read."""
    try:
        return read_plan(run.directory).shape.world_size
    except (OSError, HpcTrainError):
        return None


def _no_log(run: api.Run, who: str) -> HpcTrainError:
    """Why there is none; only a run that has failed is told as one."""
    status = run.status()
    name = f"{status.name} ({status.run})"
    if status.last_words:
        hint = f"all of it: {run.directory.job_log(status.job_id)}"
        return RunFailedError(f"{who}{name} has left no log, since {status.reason}", hint)
    if status.backend == SESSION:
        said = "what it prints is where it was started"
        return HpcTrainError(f"{name} is a script of its own, with a Session: {said}")
    if status.state.ended:
        kind = RunFailedError if status.state in UNEXPLAINED else HpcTrainError
        hint = f"hpc-train status {run_word(status.run_dir)} says why"
        if status.state is RunState.CANCELLED:
            goes_on = "lets it go on" if status.attempts else "begins it"
            hint = f"hpc-train resume {run_word(status.run_dir)} {goes_on}"
        if (earlier := _attempt_with_logs(run)) is not None:
            hint = f"attempt {earlier} has: --attempt {earlier}; {hint}"
        why = f": {status.stands}" if status.state is RunState.CANCELLED else ""
        return kind(f"{who}{name} has left no log{why}", hint)
    return HpcTrainError(f"{who}{name} has no log yet: it is {_stands(status)}", "-f waits for it")


def _attempt_with_logs(run: api.Run) -> int | None:
    """The newest attempt that has logs of ranks."""
    numbers = (int(path.parent.name) for path in run.directory.attempts.glob("[0-9]*/rank-*.log"))
    return max(numbers, default=None)


def _stands(status: RunStatus) -> str:
    """Its state and why, with what Slurm's word for it means."""
    is_told = status.meant and not status.trouble
    return f"{status.stands} ({status.meant})" if is_told else status.stands


def _nothing_yet(run: api.Run, who: str, asked: int | None) -> str:
    """Of logs that are there and empty: whose, and what there will be."""
    status = run.status()
    newest = status.attempts[-1].attempt if status.attempts else 0
    number = newest if asked is None else asked
    if status.state.ended or number != newest or not _is_open(status):
        hint = f"hpc-train status {run_word(status.run_dir)} says how it ended"
        return f"{who} {_written(who)} in attempt {number}; {hint}"
    return f"{_what_it_does(status, who)}; -f waits for it"


def _is_open(status: RunStatus) -> bool:
    return bool(status.attempts) and status.attempts[-1].ended is None


def _written(who: str) -> str:
    return "has written anything" if who == "no rank" else "has written nothing"


def _what_it_does(status: RunStatus, who: str) -> str:
    """Of the newest attempt, which is open, and of which there is no line yet."""
    starts = status.beat is None or status.beat.phase == "start"
    stands = "is starting" if starts else "runs"
    return f"attempt {status.attempts[-1].attempt} {stands}, and {who} {_written(who)} yet"


def _follow(run: api.Run, logs: _Logs, attempt: int | None) -> Iterator[str]:
    """New text as it comes, to the end of the run or of the one attempt."""
    waiting, shown, told = False, False, ""
    statuses = run.follow()
    next_status, ended, status = 0.0, False, None
    while True:
        texts = list(logs.news(ended=ended))
        yield from texts
        shown = shown or bool(texts)
        if ended and not texts:
            if status and not status.attempts and not logs.files():
                raise _no_log(run, logs.owner)
            if not shown and logs.files() and logs.last != 0:
                click.echo(_nothing_yet(run, logs.who, attempt), err=True)
            return
        if time.monotonic() >= next_status:
            next_status = time.monotonic() + 2
            status = next(statuses)
            ended = _is_over(status, attempt) or status.state.ended
            if not ended and not logs.has_text():
                told = _tell_waiting(status, logs, told)
        if not waiting and not ended and not logs.files():
            waiting = True
            click.echo(f"waiting for {run.log_file(logs.rank or 0, attempt)}", err=True)
        time.sleep(0 if ended else POLL_S)


def _tell_waiting(status: RunStatus, logs: _Logs, told: str) -> str:
    """Say what is waited for, once for each state of the run and each attempt; returns which."""
    if status.state is RunState.RUNNING and _is_open(status):
        which = f"attempt {status.attempts[-1].attempt}"
        why = f": {status.waiting}" if status.waiting else ""
        text = f"{_what_it_does(status, logs.who)}{why}"
    elif logs.files():
        return told  # the attempt before has left none, and the next has none yet
    else:
        which, text = status.stands, f"it is {_stands(status)}"
    if which != told:
        click.echo(text, err=True)
    return which


def _is_over(status: RunStatus, attempt: int | None) -> bool:
    """Whether the one attempt that is followed has ended."""
    return any(one.attempt == attempt and one.ended is not None for one in status.attempts)
