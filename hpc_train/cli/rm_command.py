"""`hpc-train rm`: remove runs that have ended."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.common import (
    complete_runs,
    json_option,
    print_json,
    print_table,
    runs_dir_option,
)
from hpc_train.cli.shell_patterns import pattern_expected
from hpc_train.cli.state_word import states_option
from hpc_train.errors import HpcTrainError, UsageError
from hpc_train.runs.disk_use import entry_id, size_text

if TYPE_CHECKING:
    from hpc_train.backends.remove_runs import Removal, Removals


@click.command("rm")
@click.argument("runs", metavar="RUN...", nargs=-1, shell_complete=complete_runs)
@states_option("Only those in this state, of all where no RUN is named; repeatable.")
@click.option("--yes", is_flag=True, help="Do not ask, and remove last checkpoints, too.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
@runs_dir_option
@json_option
def command(
    runs: tuple[str, ...],
    states: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Remove runs and sweeps that have ended, by id, folder, job id, name or 'PATTERN*'.

    A run that saved checkpoints is removed with --yes only; one that waits or trains, or that such
    a run needs, is not removed.
    """
    from hpc_train.backends.remove_runs import check_ended, plan_removals, remove

    if not runs and not states:
        fix = "name it by its id; several: --state failed, or 'PATTERN*'"
        raise UsageError("Missing argument RUN...", fix)
    with pattern_expected("hpc-train rm", runs):
        planned = plan_removals(runs or ("*",), runs_dir, states)
    size = sum(item.use.total for item in planned.removed)
    if not as_json:
        _show(planned)
    count = f"{len(planned.removed)} run{'s' if len(planned.removed) != 1 else ''}"
    if planned.removed and not dry_run:
        saved = [entry_id(item.entry) for item in planned.removed if item.step is not None]
        if not yes:
            _ask(f"remove {count}, {size_text(size)}?", saved, as_json=as_json)
        check_ended(planned.removed)
        for item in planned.removed:
            remove(item.entry)
    if as_json:
        removed: list[dict[str, Any]] = [
            {"run": entry_id(item.entry), "name": item.entry.name, "run_dir": str(item.entry.path)}
            | {"state": item.state.value, "step": item.step, "bytes": item.use.total}
            for item in planned.removed
        ]
        done = {"dry_run": dry_run, "removed": removed, "kept": planned.kept, "bytes": size}
        print_json({"schema_version": 1, **done})
    else:
        click.echo(f"{'would remove' if dry_run else 'removed'} {count}, {size_text(size)}")
    return 0


def _show(planned: Removals) -> None:
    rows = [_cells(item) for item in planned.removed]
    if rows:
        print_table(["NAME", "RUN", "STATE", "CHECKPOINT", "SIZE"], rows, least_needed=())
    for run, why in planned.kept.items():
        click.echo(f"kept: {run} {why}", err=True)


def _cells(item: Removal) -> list[str]:
    saved = "-" if item.step is None else f"step {item.step}"
    size = size_text(item.use.total)
    return [item.entry.name, entry_id(item.entry), item.state.value, saved, size]


def _ask(question: str, saved: list[str], *, as_json: bool) -> None:
    """Raises UsageError where a question is not enough or nobody is there; or after a no."""
    if saved:
        which = ", ".join(saved[:5]) + (" ..." if saved[5:] else "")
        what = "its last checkpoint" if len(saved) == 1 else "their last checkpoints"
        raise UsageError(
            f"nothing was removed: {which} would lose {what}",
            "with --yes they go as well; without checkpoints no run can be resumed",
        )
    if as_json or not sys.stdin.isatty():
        raise UsageError("nothing was removed: nobody is there to ask", "add --yes")
    if not click.confirm(question, err=True):
        raise HpcTrainError("nothing was removed")
