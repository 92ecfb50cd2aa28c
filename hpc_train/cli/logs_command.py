"""`hpc-train logs`: what a rank has written, and what it goes on to write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from hpc_train import api
from hpc_train.cli.common import run_argument, runs_dir_option

__all__ = ["command"]

POLL_S = 0.3


@click.command("logs")
@run_argument
@click.option("--rank", type=int, default=0, show_default=True, help="Global rank.")
@click.option("--attempt", type=int, help="Number of the attempt; the newest by default.")
@click.option("--supervisor", is_flag=True, help="The supervisor's log instead of a rank's.")
@click.option("-f", "--follow", is_flag=True, help="Wait for it, and go on as it is written.")
@runs_dir_option
def command(
    run: str, rank: int, attempt: int | None, supervisor: bool, follow: bool, runs_dir: Path | None
) -> int:
    """Show what a rank of RUN has written.

    With -f it waits for a log that is not there yet, goes on to the next attempt's, and ends with
    the run; Ctrl-C leaves the job alone.
    """
    found = api.Run.find(run, runs_dir)
    if not follow:
        click.echo(found.logs(rank, attempt) if not supervisor else _supervisor(found), nl=False)
        return 0
    try:
        for text in _follow(found, rank, attempt, supervisor):
            click.echo(text, nl=False)
    except KeyboardInterrupt:
        click.echo("left; the job goes on", err=True)
    return 0


def _supervisor(run: api.Run) -> str:
    path = run.directory.latest_attempt.supervisor_log
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _follow(run: api.Run, rank: int, attempt: int | None, supervisor: bool) -> Iterator[str]:
    """New text as it comes. The log is found anew each time: a restart begins another one."""
    offsets: dict[Path, int] = {}
    waiting = False
    statuses = run.follow()
    next_status = 0.0
    ended = False
    while True:
        log = run.log_file(rank, attempt)
        if supervisor:
            log = log.with_name("supervisor.log")
        path = log.resolve()
        text, offsets[path] = _read_from(path, offsets.get(path, 0))
        if text:
            yield text
        elif ended:
            return
        elif not path.exists() and not waiting:
            waiting = True
            click.echo(f"waiting for {log}", err=True)
        if time.monotonic() >= next_status:
            next_status = time.monotonic() + 2
            ended = attempt_is_over(run, attempt) or next(statuses).state.ended
        time.sleep(0 if ended else POLL_S)


def attempt_is_over(run: api.Run, attempt: int | None) -> bool:
    """Whether the one attempt that is followed has ended."""
    if attempt is None:
        return False
    from hpc_train.runs.events import read_events
    from hpc_train.runs.history import attempts_in

    known = attempts_in(read_events(run.directory.events))
    return any(one.attempt == attempt and one.ended is not None for one in known)


def _read_from(path: Path, offset: int) -> tuple[str, int]:
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            data = stream.read()
    except FileNotFoundError:
        return "", offset
    return data.decode(errors="replace"), offset + len(data)
