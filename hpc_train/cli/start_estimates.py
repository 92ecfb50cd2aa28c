"""`submit --test-only`: whether and when Slurm would start a job, in one partition or more."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

import click

from hpc_train import api
from hpc_train.cli.common import print_json, print_table
from hpc_train.errors import SlurmError
from hpc_train.slurm.jobs import seconds_of

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig
    from hpc_train.slurm.control import StartEstimate


def print_starts(loaded: LoadedConfig, partitions: str | None, *, as_json: bool) -> int:
    """Say when it would start; with `partitions` (by commas) in each of them, the earliest first.

    Raises:
        SlurmError: where no partition would take it.
    """
    if partitions is None:
        from hpc_train.backends.shapes_given import shapes_of_slurm

        with shapes_of_slurm(loaded.config, "slurm"):
            estimate = api.test_only(loaded)
        if as_json:
            print_json({"schema_version": 1, **dataclasses.asdict(estimate)})
        else:
            click.echo(f"Slurm would take it: {_start(loaded, estimate)}")
    else:
        _print_each(loaded, [name for name in partitions.split(",") if name], as_json=as_json)
    if not as_json:
        click.echo("nothing was submitted (--test-only)", err=True)
    return 0


def _start(loaded: LoadedConfig, estimate: StartEstimate) -> str:
    """Slurm's words; behind jobs without a time limit it counts with a year for each."""
    from hpc_train.backends.pending_job import FAR_S, NO_LIMIT_IN_FRONT

    start = seconds_of(estimate.start)
    is_far = start is not None and start - time.time() > FAR_S
    return NO_LIMIT_IN_FRONT if is_far and not loaded.config.slurm.begin else estimate.text


def _print_each(loaded: LoadedConfig, partitions: list[str], *, as_json: bool) -> None:
    slurm = loaded.config.slurm
    rows = []
    for name in dict.fromkeys(partitions):
        there = dataclasses.replace(slurm, partition=name)
        config = dataclasses.replace(loaded.config, slurm=there)
        row = {"partition": name, "start": "", "nodes": "", "refused": "", "waits": ""}
        try:
            estimate = api.test_only(dataclasses.replace(loaded, config=config))
        except SlurmError as error:
            row["refused"] = error.message
        else:
            said = _start(loaded, estimate)
            is_known = bool(estimate.start) and said == estimate.text
            row |= (
                {"start": estimate.start, "nodes": estimate.nodes} if is_known else {"waits": said}
            )
        rows.append(row)
    # Slurm's times sort as text.
    rows.sort(key=lambda row: (bool(row["refused"]), not row["start"], row["start"]))
    if all(row["refused"] for row in rows):
        said = "; ".join(f"{row['partition']}: {row['refused']}" for row in rows)
        raise SlurmError(f"no partition would take it: {said}", "`sinfo -s` lists them")
    if as_json:
        print_json({"schema_version": 1, "partitions": rows})
        return
    cells = [
        [row["partition"], row["start"] or "-", row["nodes"] or row["refused"] or row["waits"]]
        for row in rows
    ]
    print_table(["PARTITION", "START", "NODES"], cells)
