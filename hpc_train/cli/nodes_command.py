"""`hpc-train nodes`: which nodes are left out, and why."""

from __future__ import annotations

import os
import time

import click

from hpc_train.cli.common import json_option, print_json, print_table
from hpc_train.errors import UsageError
from hpc_train.runs.bad_nodes import clusters, forget, read_bad_nodes
from hpc_train.runs.history_text import clock

HEADER = ("CLUSTER", "NODE", "SINCE", "UNTIL", "RUN", "WHY")


@click.command("nodes")
@click.option("--forget", "forgotten", multiple=True, metavar="NODE", help="Use NODE again.")
@json_option
def command(forgotten: tuple[str, ...], as_json: bool) -> int:
    """Show the nodes that preflights and runs of yours have found bad.

    New submissions leave them out until the time shown.
    """
    now = time.time()
    left_out = {
        bad.node for name in clusters(os.environ) for bad in read_bad_nodes(os.environ, name, now)
    }
    if unknown := [node for node in forgotten if node not in left_out]:
        known_ones = ", ".join(sorted(left_out)) or "no node is"
        raise UsageError(f"{', '.join(unknown)} is not left out", f"left out: {known_ones}")
    for cluster in clusters(os.environ):
        forget(os.environ, cluster, forgotten, now)
    known = [
        (name, bad)
        for name in clusters(os.environ)
        for bad in read_bad_nodes(os.environ, name, now)
    ]
    if as_json:
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
        print_json({"schema_version": 1, "nodes": rows})
    elif not known:
        click.echo("no node is left out", err=True)
    else:
        print_table(
            HEADER,
            [
                (name, bad.node, clock(bad.time), clock(bad.until), bad.run, bad.reason)
                for name, bad in known
            ],
        )
    return 0
