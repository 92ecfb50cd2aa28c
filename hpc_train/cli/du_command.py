"""`hpc-train du`: what the runs take on the disk."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from hpc_train.cli.common import json_option, most_options, print_json, print_table, runs_dir_option
from hpc_train.runs.disk_use import DiskUse, disk_use, entry_id, folders_of, size_text
from hpc_train.runs.registry import folders
from hpc_train.runs.sweep_dir import entries

PARTS = ("checkpoints", "logs", "snapshot", "other", "total")


@click.command("du")
@most_options("the largest")
@runs_dir_option
@json_option
def command(number: int, everything: bool, runs_dir: Path | None, as_json: bool) -> int:
    """Show what runs take on the disk, the largest first; Slurm is not asked.

    A file that runs share by a hard link counts for the newest of them.
    """
    seen: set[tuple[int, int]] = set()
    known = [(entry, disk_use(folders_of(entry), seen)) for entry in entries(folders(runs_dir))]
    known.sort(key=lambda item: item[1].total, reverse=True)
    shown = known if everything else known[:number]
    whole = {part: sum(getattr(use, part) for _, use in known) for part in PARTS}
    if as_json:
        rows = [
            {"run": entry_id(entry), "name": entry.name, "run_dir": str(entry.path), **_json(use)}
            for entry, use in shown
        ]
        print_json({"schema_version": 1, "runs": rows, "count": len(known), **whole})
        return 0
    if known:
        rows_shown = [[entry.name, entry_id(entry), *_cells(_json(use))] for entry, use in shown]
        last = [f"{len(known):,} run{'s' if len(known) > 1 else ''}", "", *_cells(whole)]
        header = ["NAME", "RUN", *map(str.upper, PARTS)]
        print_table(header, [*rows_shown, last], least_needed=("SNAPSHOT", "OTHER", "LOGS"))
    else:
        click.echo("no runs", err=True)
    if len(shown) < len(known):
        click.echo(f"{len(shown)} of {len(known):,} runs; --all shows them", err=True)
    if closed := sum(use.unreadable for _, use in known):
        click.echo(f"{closed} folders may not be looked into and are not counted", err=True)
    return 0


def _json(use: DiskUse) -> dict[str, int]:
    return dataclasses.asdict(use) | {"total": use.total}


def _cells(sizes: dict[str, int]) -> list[str]:
    return [size_text(sizes[part]) for part in PARTS]
