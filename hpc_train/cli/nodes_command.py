"""`hpc-train nodes`: which nodes are left out, and why."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import click

from hpc_train.backends.left_out_by_runs import LeftOut, left_out_by_runs
from hpc_train.cli.common import json_option, print_json, print_table
from hpc_train.errors import UsageError
from hpc_train.runs.bad_nodes import BadNode, clusters, forget, read_bad_nodes
from hpc_train.runs.history_text import clock
from hpc_train.runs.registry import folders
from hpc_train.runs.run_word import run_word

HEADER = ("CLUSTER", "NODE", "SINCE", "UNTIL", "RUN", "WHY")


@click.command("nodes")
@click.option("--forget", "forgotten", multiple=True, metavar="NODE", help="Use NODE again.")
@json_option
def command(forgotten: tuple[str, ...], as_json: bool) -> int:
    """Show the nodes that preflights and runs of yours have found bad.

    New submissions leave them out until the time shown. Those that stand with "the run's end" a run
    leaves out of its own job, after a failure of the node: other runs may have them.
    """
    now = time.time()
    known = _remembered(now)
    if unknown := [node for node in forgotten if node not in {bad.node for _, bad in known}]:
        raise _not_to_forget(unknown, sorted({bad.node for _, bad in known}))
    for cluster in clusters(os.environ):
        forget(os.environ, cluster, forgotten, now)
    known = _remembered(now)
    of_runs = left_out_by_runs(folders(None))
    if as_json:
        print_json(_document(known, of_runs))
    elif not known and not of_runs:
        click.echo("no node is left out", err=True)
    else:
        rows = [
            (name, bad.node, clock(bad.time), clock(bad.until), bad.run, bad.reason)
            for name, bad in known
        ]
        rows += [
            ("", it.node, clock(it.since), "the run's end", it.run.run_id, it.reason)
            for it in of_runs
        ]
        print_table(HEADER, rows)
    return 0


def _remembered(now: float) -> list[tuple[str, BadNode]]:
    """With the cluster of each."""
    return [
        (name, bad)
        for name in clusters(os.environ)
        for bad in read_bad_nodes(os.environ, name, now)
    ]


def _document(known: Sequence[tuple[str, BadNode]], of_runs: Sequence[LeftOut]) -> dict[str, Any]:
    rows = [
        {
            "cluster": name,
            "node": bad.node,
            "since": bad.time,
            "until": bad.until,
            "run": bad.run,
            "reason": bad.reason,
        }
        for name, bad in known
    ]
    until_their_end = [
        {"node": it.node, "since": it.since, "run": it.run.run_id, "reason": it.reason}
        for it in of_runs
    ]
    return {"schema_version": 1, "nodes": rows, "of_runs": until_their_end}


def _not_to_forget(unknown: Sequence[str], remembered: Sequence[str]) -> UsageError:
    """That nodes are not remembered: one may be left out by a run, whose job holds the list."""
    of_runs = [it for it in left_out_by_runs(folders(None)) if it.node in unknown]
    others = [node for node in unknown if node not in {it.node for it in of_runs}]
    if others:
        known_ones = ", ".join(remembered) or "no node is"
        return UsageError(f"{', '.join(others)} is not left out", f"left out: {known_ones}")
    nodes = ", ".join(dict.fromkeys(it.node for it in of_runs))
    runs = list(dict.fromkeys(run_word(it.run.path) for it in of_runs))
    told = f"the run {runs[0]}" if len(runs) == 1 else f"the runs {', '.join(runs)}"
    again = f"hpc-train cancel {runs[0]}, and once it is cancelled hpc-train resume {runs[0]}"
    return UsageError(
        f"{nodes} is left out by the job of {told} alone, until it ends; other runs may have it",
        f"for a job that may have it, too: {again}",
    )
