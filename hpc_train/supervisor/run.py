"""The supervisor: attempt after attempt, until the run ends or Slurm carries it on."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hpc_train.errors import HpcTrainError, SlurmError
from hpc_train.plan.length import trial_text
from hpc_train.plan.plan import Plan
from hpc_train.plan.policy import AttemptSummary, Decision, SchedulerOptions, decide
from hpc_train.plan.script import demanded_nodes
from hpc_train.plan.states import CANCEL_ASKED, NO_FOLDER, Action, RankExit, RunState
from hpc_train.runs.atomic import write_text
from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.history import attempts_in, job_ids, since_submission, summaries
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lock import held_lock
from hpc_train.runs.read_plan import read_plan
from hpc_train.slurm.command import is_available
from hpc_train.slurm.control import cancel
from hpc_train.slurm.nodes import usable_nodes
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.attempt import Attempt, AttemptResult, new_attempt
from hpc_train.supervisor.attempt_ended import AttemptEnded, tell_listeners
from hpc_train.supervisor.dependents import move_dependents
from hpc_train.supervisor.exitcodes import EXIT_CODES
from hpc_train.supervisor.node_check import check_nodes
from hpc_train.supervisor.orphaned_attempt import close_unfinished, refuse_if_superseded
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.resubmit import go_on
from hpc_train.supervisor.run_folder import watched_folder
from hpc_train.supervisor.signals import SupervisorSignals
from hpc_train.supervisor.stopcause import StopCause
from hpc_train.supervisor.supervisor_log import SupervisorLog

LOCK_WAIT_S = 120.0
WENT_ON = int(RankExit.SAVED)  # this job ends unfinished; another one carries the run on


def supervise(run: RunDir, environ: Mapping[str, str], *, batch: bool) -> int:
    """Train until the run is over, or until a requeued or fresh job carries it on.

    Args:
        batch: Whether this is the batch step of a Slurm job, which Slurm can requeue; in the
            foreground of an `salloc` or on a laptop the supervisor starts again by itself.

    Returns:
        The exit code: that of the run's final state, or 75 where another job goes on.

    Raises:
        HpcTrainError: when the run cannot be started here at all.
    """
    log = SupervisorLog()
    if run.done.exists():
        log.say(f"run {run.run_id} is already complete; nothing to do")
        return 0
    plan = read_plan(run)
    allocation = _checked_allocation(run, plan, environ)
    signals = SupervisorSignals()
    signals.install(at_terminal=not (batch and allocation.is_slurm))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(watched_folder(run))
        owner = f"job {allocation.job_id} (process {os.getpid()} on {os.uname().nodename})"
        stack.enter_context(held_lock(run.lock, owner, wait_s=LOCK_WAIT_S))
        left_open = close_unfinished(run, allocation, environ, log)
        if left_open is not None and _is_of_submission(run, allocation, left_open[0]):
            number, ending = left_open
            past = Attempt(number, plan, allocation, run, environ, signals, log)
            decision = _decide(past, ending, StopCause(None, requeued=True), batch=batch)
            if decision.action is Action.STOP:
                return _end(past, decision)
        while True:
            attempt = new_attempt(plan, allocation, run, environ, signals, log)
            attempt.check_folder = folder.check
            result = _check_and_train(attempt)
            decision = _decide(attempt, result.ending, result.stop, batch=batch)
            if decision.action is Action.STOP:
                return _end(attempt, decision)
            if batch and allocation.is_slurm:
                return _hand_over(attempt, result, decision, stack)
            log.say(f"starting again: {decision.reason}")


def _checked_allocation(run: RunDir, plan: Plan, environ: Mapping[str, str]) -> Allocation:
    """Where the attempts run.

    Raises:
        HpcTrainError: they cannot, or another job trains the run.
    """
    if not Path(plan.workdir).is_dir():
        back = f"bring it back where all nodes see it, and then hpc-train resume {run.path}"
        # Where no attempt has begun the nodes may never have seen it: the login node's own disk.
        copied = "copy the project to a file system that all nodes see, and submit it there"
        raise HpcTrainError(
            f"{NO_FOLDER} {plan.workdir} is not there on {os.uname().nodename}",
            back if attempts_in(read_events(run.events)) else f"{copied}; or {back}",
        )
    if plan.hosts:
        allocation = Allocation.of_hosts(plan, run.plan)
    else:
        allocation = Allocation.from_env(environ, plan.shape)
    allocation.check_srun(environ)
    refuse_if_superseded(run, allocation)
    return allocation


def _is_of_submission(run: RunDir, allocation: Allocation, attempt: int) -> bool:
    """Whether nobody has submitted or resumed the run since; after that it goes on anyway.

    A job of which nobody has told is such a submission: it may begin before that is written down.
    """
    events = read_events(run.events)
    recent = since_submission(events) if allocation.job_id in job_ids(events) else []
    return any(record.attempt == attempt for record in recent)


def _check_and_train(attempt: Attempt) -> AttemptResult:
    """Check the nodes and train on them, again where srun could not start on all of them."""
    while True:
        if cancelled := attempt.end_if_cancelled():
            return cancelled
        checked = check_nodes(attempt)
        if checked.refused is not None:
            return attempt.refuse(checked.refused)
        result = attempt.carry_out(checked.nodes, checked.environment, checked.per_node)
        if result is not None:
            return result


def _decide(attempt: Attempt, ending: AttemptOutcome, stop: StopCause, *, batch: bool) -> Decision:
    history = _ended_attempts(attempt.run)
    on_slurm = attempt.allocation.is_slurm and batch
    # In the foreground a stop that came from Slurm takes the allocation away: nothing can follow.
    can_relaunch = not on_slurm and stop.outcome is None
    shape = attempt.plan.shape
    blames_somebody = any(past.blamed for past in history)
    scheduler = SchedulerOptions(
        can_requeue=can_relaunch or (on_slurm and is_available("scontrol") and stop.may_requeue),
        can_resubmit=on_slurm and is_available("sbatch"),
        requeued_already=stop.requeued,
        now=time.time(),
        node_is_gone=on_slurm and bool(ending.gone),
        usable_nodes=_usable_nodes(attempt, batch=batch) if blames_somebody else None,
        nodes_needed=shape.nodes + (shape.spares if on_slurm else 0),
        demanded_nodes=demanded_nodes(attempt.plan) if on_slurm else frozenset(),
        cancelled=attempt.why_cancelled() if ending.outcome.follows.state is None else "",
    )
    decision = decide(history[-1], history[:-1], attempt.plan.requeue, scheduler)
    if decision.state is RunState.COMPLETED:
        decision = replace(decision, reason=_what_is_complete(attempt, history[-1], decision))
    attempt.tell(
        EventKind.DECIDED,
        action=decision.action.value,
        reason=decision.reason,
        exclude=list(decision.exclude),
    )
    _tell_all(attempt, decision)
    return decision


def _what_is_complete(attempt: Attempt, newest: AttemptSummary, decision: Decision) -> str:
    """Why nothing follows: a test, a bench or a trial is no training."""
    if attempt.plan.verb != "fit":
        return newest.reason  # "the test is complete", "all steps are measured"
    trial = trial_text(attempt.plan.training.trainer)
    return f"{trial} is complete" if trial else decision.reason


def _ended_attempts(run: RunDir) -> list[AttemptSummary]:
    """Those since the run was last submitted, the newest of which has just ended.

    Raises:
        HpcTrainError: the history holds none: somebody has changed it.
    """
    history = summaries(since_submission(read_events(run.events)))
    if not history:
        raise HpcTrainError(
            f"{run.events} tells of no attempt that has ended, though one has",
            f"was it replaced meanwhile? hpc-train resume {run.path} goes on from what is saved",
        )
    return history


def _tell_all(attempt: Attempt, decision: Decision) -> None:
    newest = _ended_attempts(attempt.run)[-1]
    event = AttemptEnded(run=attempt.run, plan=attempt.plan, attempt=newest, decision=decision)
    tell_listeners(event, attempt.log.say)


def _usable_nodes(attempt: Attempt, *, batch: bool) -> frozenset[str] | None:
    if not attempt.allocation.has_steps:
        return None
    if not (batch and attempt.allocation.is_slurm):
        return frozenset(attempt.allocation.nodes)  # starting again here is within this allocation
    try:
        return usable_nodes(attempt.environ.get("SLURM_JOB_PARTITION", ""))
    except SlurmError:
        return None  # nobody to ask: the blamed nodes are left out, as Slurm lets us


def _end(attempt: Attempt, decision: Decision) -> int:
    attempt.tell(EventKind.RUN_ENDED, state=decision.state.value, reason=decision.reason)
    if decision.state is RunState.COMPLETED:
        write_text(attempt.run.done, f"completed in attempt {attempt.number}\n")
    return EXIT_CODES[decision.state]


def _hand_over(
    attempt: Attempt, result: AttemptResult, decision: Decision, stack: contextlib.ExitStack
) -> int:
    try:
        job_id = go_on(
            decision,
            attempt.allocation,
            attempt.run,
            attempt.plan,
            requeued_already=result.stop.requeued,
            say=attempt.log.say,
            before_resubmit=stack.close,
        )
    except SlurmError as error:
        reason = f"could not go on: {error.message}"
        attempt.tell(EventKind.RUN_ENDED, state=RunState.FAILED.value, reason=reason)
        _tell_all(attempt, Decision(action=Action.STOP, reason=reason, state=RunState.FAILED))
        raise HpcTrainError(
            reason, f"when Slurm is back: hpc-train resume {attempt.run.path}"
        ) from error
    attempt.tell(EventKind.WENT_ON, action=decision.action.value, job_id=job_id)
    if attempt.cancel_requested():
        return _cancel_follower(attempt, job_id)
    attempt.log.say(f"job {job_id} carries the run on")
    if job_id != attempt.allocation.job_id:
        move_dependents(attempt.run, attempt.log.say)
    return WENT_ON


def _cancel_follower(attempt: Attempt, job_id: str) -> int:
    """A cancel came when the run was on its way into the queue, and may have met the old job."""
    try:
        cancel(job_id)
    except SlurmError as error:  # it will see the wish when it begins
        attempt.log.say(f"job {job_id} could not be cancelled: {error.message}")
        return WENT_ON
    decision = Decision(action=Action.STOP, reason=CANCEL_ASKED, state=RunState.CANCELLED)
    return _end(attempt, decision)
