"""Carrying out a decision: requeue, a fresh submission, nodes left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from hpc_train.errors import SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.plan.policy import Decision
from hpc_train.plan.script import exclusion, job_options
from hpc_train.plan.states import Action
from hpc_train.runs.events import read_events
from hpc_train.runs.history import job_ids
from hpc_train.runs.layout import RunDir
from hpc_train.slurm import control
from hpc_train.slurm.control import is_answer_lost
from hpc_train.slurm.jobs import is_federated
from hpc_train.slurm.nodes import usable_nodes
from hpc_train.supervisor.allocation import Allocation

# The controller may be restarting at this very moment; the batch step lives until it is back.
CONTROLLER_AWAY = ("Unable to contact", "Connection refused", "Transport endpoint")
CONTROLLER_WAIT_S = 600.0
EXCLUDE_TRIES = 8

Result = TypeVar("Result")


def go_on(
    decision: Decision,
    allocation: Allocation,
    run: RunDir,
    plan: Plan,
    *,
    requeued_already: bool,
    say: Callable[[str], None],
    before_resubmit: Callable[[], None],
) -> str:
    """Put the run back into Slurm's queue.

    Args:
        before_resubmit: Frees what a fresh job needs (the run's lock) before it may start.

    Returns:
        The id of the job that carries the run from now on.

    Raises:
        SlurmError: when neither a requeue nor a fresh submission was accepted.
    """
    exclude = _known_here(allocation.job_id, decision.exclude)
    if requeued_already:
        _exclude(allocation.job_id, plan, exclude, say)
        return allocation.job_id
    if exclude and is_federated(allocation.job_id):
        say("a federation's job cannot be told which nodes to leave out; submitting a fresh one")
    elif decision.action is Action.REQUEUE:
        try:
            _patiently(lambda: control.requeue(allocation.job_id, allocation.restarts), say)
        except SlurmError as error:
            say(f"the requeue was refused ({error.message}); submitting a fresh job instead")
        else:
            _exclude(allocation.job_id, plan, exclude, say)
            return allocation.job_id
    before_resubmit()
    options = job_options(plan, exclude)
    known = {allocation.job_id, *job_ids(read_events(run.events))}
    asked = dict(plan.slurm.options)
    return _patiently(lambda: control.sbatch(run.script, options, known=known, asked=asked), say)


def _known_here(job: str, nodes: Sequence[str]) -> Sequence[str]:
    """Nodes that this cluster has: another one's names make it refuse a federation's job."""
    if not (nodes and is_federated(job)):
        return nodes
    try:
        usable = usable_nodes("")
    except SlurmError:
        return ()
    return [node for node in nodes if node in usable]


def _exclude(job: str, plan: Plan, nodes: Sequence[str], say: Callable[[str], None]) -> None:
    """Right after a requeue the job completes, and then its node list may be changed."""
    if not nodes:
        return
    for _ in range(EXCLUDE_TRIES):
        try:
            control.exclude_nodes(job, exclusion(plan, nodes))
        except SlurmError as error:
            trouble = error.message
            time.sleep(0.25)
        else:
            return
    say(f"could not leave out {', '.join(nodes)}: {trouble}")


def _patiently(act: Callable[[], Result], say: Callable[[str], None]) -> Result:
    deadline = time.monotonic() + CONTROLLER_WAIT_S
    wait_s = 1.0
    while True:
        try:
            return act()
        except SlurmError as error:
            words = str(error)
            away = is_answer_lost(words) or any(text in words for text in CONTROLLER_AWAY)
            if not away or time.monotonic() > deadline:
                raise
            say(f"the controller is away ({error.message}); asking again in {wait_s:.0f} s")
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, 15.0)
