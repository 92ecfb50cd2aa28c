"""`hpc-train status`: a run and its history."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import click

from hpc_train import api
from hpc_train.cli.common import complete_runs, json_option, print_json, runs_dir_option
from hpc_train.cli.diagnosis_lines import diagnosis_lines
from hpc_train.cli.finding import newest_to_read, run_to_read, tell_folder
from hpc_train.cli.going_on import goes_on
from hpc_train.cli.namesakes import others_that_go_on
from hpc_train.cli.sweep_text import print_sweep
from hpc_train.errors import HpcTrainError, UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.history_text import WIDTH, history_lines
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus
from hpc_train.runs.step_times import slower_text
from hpc_train.sweeps import find_sweep, newest_sweep


@click.command("status")
@click.argument("run", metavar="[RUN]", required=False, shell_complete=complete_runs)
@click.option(
    "--best", metavar="METRIC[:min|:max]", help="Of a sweep: the best point by this metric."
)
@runs_dir_option
@json_option
def command(run: str | None, best: str | None, runs_dir: Path | None, as_json: bool) -> int:
    """Show RUN (a name, a run id, a run directory, a job id, latest) and what happened to it.

    RUN may be a sweep, too: a row a point.

    The exit code is 0 whatever the state is. That of the run is the exit code of submit, resume or
    test with --wait; diagnose ends with 3 where something failed, and --json says `state`.
    """
    sweep = newest_sweep(runs_dir) if run is None else find_sweep(run, runs_dir)
    if sweep:
        tell_folder(run or "", sweep.directory.name, sweep.directory, runs_dir)
        also = "" if as_json else others_that_go_on(run or "", sweep.directory, runs_dir)
        print_sweep(sweep.status(), best, as_json=as_json, notes=[also])
        return 0
    also = ""
    if run is None:
        status = api.Run(newest_to_read(runs_dir)).status()
    else:
        found = run_to_read(run, runs_dir)
        also, status = others_that_go_on(run, found.directory, runs_dir), found.status()
    if best:
        name = run_word(status.run_dir)
        raise UsageError(
            f"--best is for a sweep, and {status.name} is one run",
            f"hpc-train checkpoints {name} --best names its best model, hpc-train status {name} its"
            " metrics",
        )
    slower = slower_text(status)
    if as_json:
        print_json({**status.to_json(), "slow": slower or None})
        return 0
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    first, *rest = history_lines(status, time.time(), min(columns, WIDTH))
    click.secho(first, bold=True)
    if slower:
        rest.append(f"  slow       {slower}")
    rest += [
        f"  note       {note}" for note in (also, _edited(status), _edited_code(status)) if note
    ]
    for line in (*rest, *diagnosis_lines(status, indent="  ")):
        click.echo(line)
    if status.state.ended and status.state is not RunState.COMPLETED:
        click.echo(f"  go on      {goes_on(status)}")
    return 0


def _edited(status: RunStatus) -> str:
    """That the config's file has other values than a run that waits or trains."""
    if status.state.ended or not status.submitted:
        return ""
    from hpc_train.backends.kept_in_a_run import edited_since

    return edited_since(RunDir(Path(status.run_dir)), status.submitted)


def _edited_code(status: RunStatus) -> str:
    """That files of its code are others than a run that waits or trains has begun with."""
    if status.state.ended or not status.submitted:
        return ""
    from hpc_train.runs.provenance import edited_meanwhile, named_files

    attempt = status.attempts[-1].attempt if status.attempts else None
    try:
        files = edited_meanwhile(RunDir(Path(status.run_dir)), attempt)
    except (HpcTrainError, OSError):
        return ""  # nobody knows
    if not files:
        return ""
    since, who = ("the submission", "the job") if attempt is None else (f"attempt {attempt}", "")
    have, it = ("has", "it") if len(files) == 1 else ("have", "them")
    takes = f"{who or 'the next attempt'} takes {it}"
    return (
        f"{named_files(files)} {have} changed since {since}: {takes} (snapshot=git keeps the code)"
    )
