"""`hpc-train top`: all runs on one live page, on the terminal or in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from hpc_train.cli.common import print_table, runs_dir_option
from hpc_train.errors import HpcTrainError, UsageError


@click.command("top")
@click.option("--active", is_flag=True, help="At first only runs that wait or train.")
@click.option(
    "--filter", "text", default="", metavar="WORDS", help="At first only runs with these words."
)
@click.option("--web", is_flag=True, help="As a page for a browser of this machine, read-only.")
@click.option("--port", type=click.IntRange(0, 65535), help="Of --web; any free one by default.")
@runs_dir_option
def command(active: bool, text: str, web: bool, port: int | None, runs_dir: Path | None) -> int:
    """Show all runs and how they go on, until q is pressed.

    Where there is no terminal it is one table, printed once.
    """
    if port is not None and not web:
        raise UsageError("--port is for --web", "hpc-train top --web --port PORT")
    if web and (active or text):
        option = "--active" if active else "--filter"
        fix = "hpc-train top --web, whose page has a filter"
        raise UsageError(f"{option} is for the terminal", fix)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if not web and not is_terminal:
        _print_once(runs_dir, text, active=active)
        return 0
    try:
        if web:
            from hpc_train.top.web_page import serve

            serve(runs_dir, port or 0, click.echo)
        else:
            from hpc_train.top.live_page import show_live_page

            show_live_page(runs_dir, text, active=active)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "aiohttp"):
            raise
        what = f"top needs {error.name}, which is not installed"
        from hpc_train.runs.installed import install_command

        raise HpcTrainError(what, install_command(extra="top")) from error
    return 0


def _print_once(runs_dir: Path | None, text: str, *, active: bool) -> None:
    from hpc_train.top.run_watcher import RunWatcher
    from hpc_train.top.watched_run import HEADER, LEAST_NEEDED, chosen

    snapshot = RunWatcher(runs_dir).look_once()
    rows = [row.cells for row in chosen(snapshot, text, active=active)]
    if rows:
        print_table(HEADER, rows, least_needed=LEAST_NEEDED)
    elif not snapshot.notes:
        click.echo("no such runs; hpc-train list --all shows all", err=True)
    for note in snapshot.notes:
        click.echo(note, err=True)
