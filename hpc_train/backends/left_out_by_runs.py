"""Nodes that a run leaves out of its own job after a failure; no other run is told of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.backends.observe import observe
from hpc_train.errors import HpcTrainError
from hpc_train.runs.events import Event, read_events
from hpc_train.runs.history import has_ended, since_submission
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import all_runs

_MOST_READ = 100  # runs, the newest ones


@dataclass(frozen=True)
class LeftOut:
    """A node that a run's job may not have until the run ends.

    Attributes:
        since: Seconds since the epoch.
        reason: Of the attempt that blamed it.
    """

    node: str
    run: RunDir
    since: float
    reason: str


def left_out_by_runs(folders: Sequence[Path]) -> list[LeftOut]:
    """Those of the runs that have not ended, by run; Slurm is asked where a run has some."""
    found: dict[RunDir, list[LeftOut]] = {}
    for run in all_runs(folders)[:_MOST_READ]:
        try:
            nodes = _of_its_job(run, read_events(run.events))
        except (OSError, HpcTrainError):
            continue
        if nodes:
            found[run] = nodes
    statuses = observe(list(found), time.time()) if found else []
    pairs = zip(found.values(), statuses, strict=True)
    return [one for nodes, status in pairs if not status.state.ended for one in nodes]


def _of_its_job(run: RunDir, events: Sequence[Event]) -> list[LeftOut]:
    """What the newest decision since its submission left out: a resume's job may have all nodes."""
    if has_ended(events):
        return []
    told = [attempt for attempt in since_submission(events) if attempt.decision]
    nodes = []
    for node in told[-1].excluded if told else ():
        blame = next((it for it in reversed(told) if node in it.blamed), told[-1])
        nodes.append(LeftOut(node, run, blame.ended or blame.started, blame.reason))
    return nodes
