"""Staying with a run: one line that moves on a terminal, a line a change in a pipe."""

from __future__ import annotations

import shutil
import sys
import time

import click

from hpc_train import api
from hpc_train.cli.common import shell_word
from hpc_train.cli.main import INTERRUPTED
from hpc_train.runs.history_text import duration, metrics_text
from hpc_train.runs.status import RunStatus
from hpc_train.supervisor.exitcodes import EXIT_CODES

__all__ = ["follow_run"]


def follow_run(run: api.Run, *, show: bool, as_json: bool = False) -> int:
    """Stay until the run's end and say how it was; a Ctrl-C leaves the job alone and says so.

    Args:
        show: Whether to show the progress meanwhile.
        as_json: Standard output has its document already: everything goes to standard error.

    Returns:
        The exit code of the run's state.
    """
    began = time.monotonic()
    painter = _Painter(show)
    try:
        for status in run.follow():
            painter.paint(status, time.monotonic() - began)
    except KeyboardInterrupt:
        painter.finish()
        name = shell_word(run.directory.run_id)
        click.echo(f"left; the job goes on. End it with: hpc-train cancel {name}", err=True)
        return INTERRUPTED
    painter.finish()
    _epilogue(status, err=as_json)
    return EXIT_CODES.get(status.state, 1)


class _Painter:
    """Writes to standard error, so that standard output stays free for data."""

    def __init__(self, show: bool) -> None:
        self.show = show
        self.terminal = sys.stderr.isatty()
        self.said = ""
        self.next_at = 0.0

    def paint(self, status: RunStatus, elapsed_s: float) -> None:
        """Show the run's state; in a pipe only when it changed, and steps every ten seconds."""
        if not self.show:
            return
        attempt = f"attempt {status.attempts[-1].attempt}" if status.attempts else ""
        fixed = "  ".join(part for part in (status.name, status.state.value, attempt) if part)
        why = status.reason if status.state.value == "pending" else ""
        moving = f"step {status.step}  {duration(elapsed_s)}"
        if self.terminal:
            line = "  ".join(part for part in (fixed, moving, why) if part)
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\x1b[K{line[:width]}", err=True, nl=False)
        elif fixed + why != self.said or elapsed_s >= self.next_at:
            click.echo("  ".join(part for part in (fixed, moving, why) if part), err=True)
            self.said = fixed + why
            self.next_at = elapsed_s + 10

    def finish(self) -> None:
        """Leave the moving line."""
        if self.show and self.terminal:
            click.echo(err=True)


def _epilogue(status: RunStatus, *, err: bool) -> None:
    name = shell_word(status.run)
    click.echo(f"{status.state.value}  {status.reason}", err=True)
    if status.metrics:
        click.echo(f"metrics    {metrics_text(status)}", err=err)
    click.echo(f"run        {status.run_dir}", err=err)
    click.echo(f"history    hpc-train status {name}", err=err)
    if status.state.value != "completed":
        click.echo(f"logs       hpc-train logs {name}", err=err)
        click.echo(f"go on      hpc-train resume {name}", err=err)
