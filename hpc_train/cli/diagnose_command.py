"""`hpc-train diagnose`: why a run or a job failed, by all that it has left."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train.cli.common import complete_runs, json_option, print_json, runs_dir_option
from hpc_train.cli.finding import tell_folder
from hpc_train.errors import CheckError, UsageError


@click.command("diagnose")
@click.argument("words", metavar="[RUN|JOB|LOG...]", nargs=-1, shell_complete=complete_runs)
@click.option("--attempt", type=click.IntRange(min=0), help="Of RUN; the newest that has ended.")
@runs_dir_option
@json_option
def command(
    words: tuple[str, ...], attempt: int | None, runs_dir: Path | None, as_json: bool
) -> int:
    """Say why it failed: which rank first, the cause, the lines that say so, and the fix.

    RUN is a name, a run id, a run directory or a job id; without one it is the newest. LOG is a
    log of anything, written by hpc-train or not: files, folders, patterns, - for standard input.

    The exit code is 3 where something failed, 0 where nothing did, 1 where there is nothing to
    read.
    """
    from hpc_train.backends.diagnose_run import diagnose_run, run_meant
    from hpc_train.diagnose.diagnosis import told
    from hpc_train.diagnose.read_logs import diagnose_logs

    run = run_meant(words, runs_dir)
    if run is None:
        if attempt is not None:
            raise UsageError("--attempt is of a RUN, and none is named", "leave it out")
        diagnosis = diagnose_logs(words)
    else:
        tell_folder("".join(words[:1]), run.name, run, runs_dir)
        diagnosis = diagnose_run(run, attempt=attempt)
    if as_json:
        print_json(diagnosis.to_json())
    else:
        for number, line in enumerate(told(diagnosis)):
            click.secho(line, bold=number == 0 or None)
    return CheckError.exit_code if diagnosis.findings else 0
