"""Staying with a run: one line that moves on a terminal, in a pipe a line a change or a minute."""

from __future__ import annotations

import re
import shutil
import sys
import time

import click

from hpc_train import api
from hpc_train.cli.common import CODE_TOLD, print_json
from hpc_train.cli.diagnosis_lines import diagnosis_lines
from hpc_train.cli.going_on import goes_on
from hpc_train.cli.main import INTERRUPTED
from hpc_train.plan.states import RunState
from hpc_train.runs.events import EventKind, read_events, since_last
from hpc_train.runs.history import attempts_in
from hpc_train.runs.history_text import (
    duration,
    metrics_text,
    printable,
    progress_text,
    shortened,
)
from hpc_train.runs.ranks import Heartbeat
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus
from hpc_train.runs.step_times import slower_text
from hpc_train.supervisor.exitcodes import EXIT_CODES

LINE_EVERY_S = 60.0
LEAST_NAME = 14  # characters, as in `list`


def follow_run(run: api.Run, *, show: bool, as_json: bool = False) -> int:
    """Stay until the run's end and say how it was; a Ctrl-C leaves the job alone and says so.

    Args:
        show: Whether to show the progress meanwhile.
        as_json: Standard output gets one document, at the end: everything else is said on standard
            error.

    Returns:
        The exit code of the run's state.
    """
    began = time.monotonic()
    line = LiveLine(show)
    told = slower = ""
    notes = _Notes(run)
    status: RunStatus | None = None
    try:
        for status in run.follow():
            if show and status.trouble and status.trouble != told:
                told = status.trouble
                line.clear()
                _warn_that_it_does_not_start(status)
            if show and not slower and (slower := slower_text(status)):
                line.clear()
                click.secho("slow: ", err=True, fg="yellow", nl=False)
                click.echo(slower, err=True)
            for note in notes.new(status):
                line.clear()
                click.secho("note: ", err=True, fg="yellow", nl=False)
                click.echo(note, err=True)
            if not status.state.ended:
                line.show(*line_of(status, time.monotonic() - began))
    except KeyboardInterrupt:
        code = INTERRUPTED
        line.finish()
        name = run_word(run.directory.path)
        click.echo(f"left; the job goes on. End it with: hpc-train cancel {name}", err=True)
    else:
        line.finish()
        assert status is not None, "a run has a status before it has ended"
        code = EXIT_CODES[status.state]
        print_end(status, err=as_json)
    if as_json:
        document = (status or run.status()).to_json()
        print_json({**document, "cluster": document["backend"]})
    return code


class LiveLine:
    """Where a run stands, on standard error, so that standard output stays free for data.

    On a terminal it is one line that is drawn anew; elsewhere one is written when what is said at
    its beginning changes, and once a minute while the rest of it does.
    """

    def __init__(self, show: bool = True) -> None:
        self._show = show
        self._terminal = sys.stderr.isatty()
        self._said = ""
        self._next_at = 0.0

    def show(self, fixed: str, moving: str) -> None:
        """Show `fixed` and what moves."""
        if not self._show:
            return
        text = f"{fixed}  {moving}".rstrip()
        now = time.monotonic()
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\x1b[K{_fitted(text, width)}", err=True, nl=False)
        elif fixed != self._said or (moving and now >= self._next_at):
            click.echo(text, err=True)
            self._said, self._next_at = fixed, now + LINE_EVERY_S

    def clear(self) -> None:
        """Make place for another line on the same terminal."""
        if self._show and self._terminal:
            click.echo("\r\x1b[K", err=True, nl=False)

    def finish(self) -> None:
        """Leave the line as it is."""
        if self._show and self._terminal:
            click.echo(err=True)


def _fitted(text: str, width: int) -> str:
    """With a shorter name where there is no room for all, then without the last parts."""
    name, *rest = text.split("  ")
    least = min(len(name), LEAST_NAME)
    while rest and len("  ".join(rest)) + 2 + least > width:
        rest.pop()
    room = width - sum(len(part) + 2 for part in rest)
    return "  ".join([shortened(name, room), *rest])


def line_of(status: RunStatus, elapsed_s: float) -> tuple[str, str]:
    """Of a run that has not ended: what changes seldom, and what moves."""
    words = [one_part(status.name), status.state.value]
    if status.attempts and status.attempts[-1].attempt:
        words.append(f"attempt {status.attempts[-1].attempt}")
    if status.state is RunState.RUNNING:
        words += [f"({said})" for said in (status.silence, status.waiting) if said]
        fixed, moving = running_line("  ".join(words), status.beat)
        warning = status.forecast.warning if status.forecast else ""
        return fixed, "  ".join(filter(None, (moving, warning)))
    reason = "does not start" if status.trouble else status.reason
    goes_on = f"goes on from step {status.step}" if status.attempts else ""
    meaning = f"({status.meant})" if status.meant and not status.trouble else ""
    fixed = "  ".join(word for word in (*words, goes_on, reason) if word)
    if sys.stderr.isatty():  # where there is no room for all, the last is left out
        return fixed, "  ".join(filter(None, (duration(elapsed_s), meaning)))
    # In a pipe only a change of the reason is news.
    return " ".join(filter(None, (fixed, meaning))), ""


def one_part(name: str) -> str:
    """A run's name without the two spaces that are between the parts of a line."""
    return " ".join(printable(name).split())


def running_line(name: str, beat: Heartbeat | None) -> tuple[str, str]:
    """The same while it trains; that the first step begins is a change."""
    text = progress_text(beat)
    return (name, text) if beat and beat.steps_per_s else (f"{name}  {text}", "")


class _Notes:
    """What went wrong and the run goes on, once each: also who only waits has to know.

    What is noted of attempts before the submission that is followed is history.
    """

    def __init__(self, run: api.Run) -> None:
        events = read_events(run.directory.events)
        before = events[: len(events) - len(since_last(events, EventKind.SUBMITTED))]
        self._past = {attempt.attempt for attempt in attempts_in(before)}
        self._told: set[str] = set()
        context = click.get_current_context(silent=True)
        self._files = context.meta.get(CODE_TOLD) if context else None

    def new(self, status: RunStatus) -> list[str]:
        attempts = [it for it in status.attempts if it.attempt not in self._past]
        notes = [note for attempt in attempts for note in attempt.notes]
        notes = [note for note in notes if not self._is_of_told_files(note)]
        if status.failed_saves and (attempts or status.beat):
            # By its words: the count and the step go on.
            notes.append(f"saves fail: {status.failed_saves.partition(': ')[2]}")
        new = [note for note in dict.fromkeys(notes) if note not in self._told]
        self._told.update(new)
        return new

    def _is_of_told_files(self, note: str) -> bool:
        """Whether the same edits were noted before the run went on."""
        found = re.match(r"the code is not that of [\w ]+: ([^;]+)", note)
        return found is not None and found[1] == self._files


def _warn_that_it_does_not_start(status: RunStatus) -> None:
    click.secho("warning: ", err=True, fg="yellow", nl=False)
    click.echo(f"the job does not start: {status.trouble}", err=True)
    click.echo(f"  end it with: hpc-train cancel {run_word(status.run_dir)}", err=True)


def print_end(status: RunStatus, *, err: bool = False) -> None:
    """How a run ended and why, where it is, and what can be typed next.

    Args:
        err: All of it on standard error, not the first line alone.
    """
    name = run_word(status.run_dir)
    click.echo(f"{status.state.value}  {status.reason}", err=True)
    for line in diagnosis_lines(status):
        click.echo(line, err=err)
    if status.metrics:
        click.echo(f"metrics    {metrics_text(status.metrics)}", err=err)
    click.echo(f"run        {status.run_dir}", err=err)
    click.echo(f"history    hpc-train status {name}", err=err)
    if status.state is not RunState.COMPLETED:
        rank = status.attempts[-1].rank if status.attempts else None
        of_rank = f" --rank {rank}" if rank else ""
        if status.attempts:
            click.echo(f"logs       hpc-train logs {name}{of_rank}", err=err)
        click.echo(f"go on      {goes_on(status)}", err=err)
