"""`hpc-train report`: what runs were worth, on the terminal or as a page."""

from __future__ import annotations

import fnmatch
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train import api
from hpc_train.cli.common import (
    check_page,
    complete_runs,
    json_option,
    print_json,
    print_table,
    runs_dir_option,
    write_page,
)
from hpc_train.cli.finding import newest_to_read, run_to_read
from hpc_train.cli.shell_patterns import pattern_expected
from hpc_train.errors import HpcTrainError, UsageError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import PATTERN, folders
from hpc_train.runs.this_folder import own_first
from hpc_train.sweeps import find_sweep, newest_sweep

if TYPE_CHECKING:
    from hpc_train.report.gather import RunReport

IN_A_PIPE = 100  # columns, unless COLUMNS says otherwise
# For a terminal that knows no more than ASCII.
PLAIN = str.maketrans("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉°", "__..--=#  .:-=# ")


@click.command("report")
@click.argument("runs", metavar="[RUN]...", nargs=-1, shell_complete=complete_runs)
@click.option("--html", type=click.Path(path_type=Path), help="Write one page, complete in itself.")
@runs_dir_option
@json_option
def command(runs: tuple[str, ...], html: Path | None, runs_dir: Path | None, as_json: bool) -> int:
    """Show what RUN was worth: attempts, goodput, metrics, nodes, asked against used.

    Several RUNs, 'PATTERN*' or a sweep, are put side by side as well; without RUN it is the newest.
    """
    from hpc_train.backends.report_runs import report_runs
    from hpc_train.report.compare import compared
    from hpc_train.report.gather import SCHEMA_VERSION

    if html is not None:
        check_page(html)
        if str(html) == "-" and as_json:
            raise UsageError("--html - and --json are both for standard output", "name a file")
    with pattern_expected("hpc-train report", runs):
        meant = [run for word in runs or ("",) for run in _meant(word, runs_dir)]
    reports = report_runs(meant)
    rows = compared(reports) if len(reports) > 1 else []
    if html is not None:
        from hpc_train.report.page import render_page

        write_page(html, render_page(reports))
    if as_json:
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "runs": [report.to_json() for report in reports],
                "compared": [vars(row) for row in rows],
            }
        )
        return 0
    if html is not None:
        if str(html) != "-":
            click.echo(f"written: {html}")
        return 0
    _print(reports)
    if rows:
        from hpc_train.report.text import comparison_table

        header, cells = comparison_table(rows)
        click.echo()
        needless = ["SAMPLES/S", "STATE", *reversed(header[7:]), "STEPS/S", "GOODPUT", "RANKS"]
        print_table(header, cells, least_needed=needless)
    return 0


def _meant(word: str, runs_dir: Path | None) -> list[RunDir]:
    """The run that a word means, or all points of a sweep that have begun."""
    sweep = find_sweep(word, runs_dir) if word else newest_sweep(runs_dir)
    if sweep:
        directories = [sweep.directory.point(n) for n in range(len(sweep.directory.plan.points))]
        begun = [directory for directory in directories if directory.plan.exists()]
        if not begun:
            name = sweep.directory.sweep_id
            raise HpcTrainError(
                f"no point of the sweep {name} has begun yet", f"hpc-train status {name}"
            )
        return begun
    if PATTERN.search(word):
        runs = [run.directory for run in api.Run.all(runs_dir)]
        if matching := [run for run in runs if fnmatch.fnmatchcase(run.name, word)]:
            return own_first(matching, folders(runs_dir))
    if word:
        return [run_to_read(word, runs_dir).directory]
    return [newest_to_read(runs_dir)]


def _print(reports: Sequence[RunReport]) -> None:
    from hpc_train.report.text import report_lines

    width = max(30, shutil.get_terminal_size((IN_A_PIPE, 24)).columns)
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower()
    for place, report in enumerate(reports):
        if place:
            click.echo()
        for line in report_lines(report, width):
            text = line.text if "utf" in encoding else line.text.translate(PLAIN)
            click.secho(text, fg=line.color, bold=line.bold or None)
