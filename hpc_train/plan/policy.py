"""What follows an attempt: `decide`, a pure function and the only place where that is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hpc_train.config.schema import RequeueConfig
from hpc_train.plan.hostlist import folded
from hpc_train.plan.states import Action, Outcome, RunState

Refused = Literal["", "nodes", "site", "untold"]
ATTEMPTS_WITHOUT_A_STEP = 2
OF_TRAINING = "so it is the training's own"  # of an error that no other node cures


@dataclass(frozen=True, kw_only=True)
class AttemptSummary:
    """What `decide` needs to know of one attempt.

    Attributes:
        ended: Seconds since the epoch.
        blamed: Nodes that are held to be the cause.
        first_step: Optimizer steps in the checkpoint that its ranks went on from.
        saved_step: Optimizer steps in the newest valid checkpoint when it ended.
        error: Type and message of the first failure; empty without one.
        failed_step: The step at which it failed; None where nobody knows.
        refused: Set where the preflight refused to start: `nodes` that it names, the `site` (the
            same on every node), or `untold` where nobody could be named.
    """

    attempt: int
    outcome: Outcome
    ended: float
    reason: str = ""
    blamed: tuple[str, ...] = ()
    first_step: int = 0
    saved_step: int = 0
    error: str = ""
    failed_step: int | None = None
    refused: Refused = ""

    @property
    def progressed(self) -> bool:
        """Whether the run is further than before, and will still be after a restart."""
        return self.saved_step > self.first_step


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions:
    """What this place allows.

    Attributes:
        can_requeue: `scontrol requeue` (or a relaunch on a local run) can be tried.
        can_resubmit: A fresh submission can be tried.
        requeued_already: The scheduler has put the job back by itself.
        now: Seconds since the epoch.
        node_is_gone: A node of the job is dead, and Slurm has not seen it yet. It holds such a job
            in COMPLETING until SlurmdTimeout (slurm.conf(5), 300 s by default), so that a requeue
            would wait as long; a fresh job on other nodes need not.
        usable_nodes: Nodes that the job could have next, as far as Slurm knows; None if unknown.
        nodes_needed: How many it asks for.
        demanded_nodes: Those that its nodelist names. Slurm gives it all of them or nothing, and
            with one of them left out the job waits for ever (BadConstraints, seen on 22.05).
        cancelled: Who has cancelled the run meanwhile, in words; empty where nobody has.
    """

    can_requeue: bool
    can_resubmit: bool
    now: float
    requeued_already: bool = False
    node_is_gone: bool = False
    usable_nodes: frozenset[str] | None = None
    nodes_needed: int = 0
    demanded_nodes: frozenset[str] = frozenset()
    cancelled: str = ""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What follows, why, and which nodes to leave out from now on."""

    action: Action
    reason: str
    state: RunState  # of the run, once the decision is carried out
    exclude: tuple[str, ...] = field(default=())


def decide(
    outcome: AttemptSummary,
    history: Sequence[AttemptSummary],
    policy: RequeueConfig,
    scheduler: SchedulerOptions,
) -> Decision:
    """What follows the attempt that just ended.

    Args:
        outcome: The attempt that just ended.
        history: The attempts before it, oldest first.
        policy: The user's wishes.
        scheduler: What the scheduler allows, and the time.

    Returns:
        The decision; its reason is a sentence for the history.
    """
    final = _final(outcome)
    if final is not None:
        return final
    if scheduler.cancelled:
        return Decision(action=Action.STOP, reason=scheduler.cancelled, state=RunState.CANCELLED)
    refusal = _refusal(outcome, history, policy)
    if refusal:
        state = RunState.TIMED_OUT if outcome.outcome is Outcome.TIMEOUT else RunState.FAILED
        return Decision(action=Action.STOP, reason=refusal, state=state)
    blamed = excluded_nodes([*history, outcome], policy, scheduler.now)
    if not_mended := _not_mended(outcome, blamed, scheduler):
        return Decision(action=Action.STOP, reason=not_mended, state=RunState.FAILED)
    return _go_on(outcome, blamed, scheduler)


def excluded_nodes(
    history: Sequence[AttemptSummary], policy: RequeueConfig, now: float
) -> tuple[str, ...]:
    """Nodes to leave out: the latest blamed first, forgotten after a while, at most so many."""
    newest_first: dict[str, None] = {}
    for attempt in reversed(history):
        if now - attempt.ended <= policy.exclude_for_h * 3600:
            newest_first.update(dict.fromkeys(attempt.blamed))
    return tuple(list(newest_first)[: policy.max_excluded_nodes])


def _final(attempt: AttemptSummary) -> Decision | None:
    """The outcomes after which nothing follows, whatever the policy."""
    follows = attempt.outcome.follows
    if follows.state is None:
        return None
    return Decision(action=Action.STOP, reason=follows.reason, state=follows.state)


def _refusal(
    attempt: AttemptSummary, history: Sequence[AttemptSummary], policy: RequeueConfig
) -> str:
    """Why the run must not go on; empty if it may."""
    if not policy.enabled:
        return "requeue.enabled is false"
    attempts = len(history) + 1
    if policy.max_attempts is not None and attempts >= policy.max_attempts:
        return f"requeue.max_attempts ({policy.max_attempts}) is reached"
    if history and _same_error(attempt, history[-1]):
        return (
            f"the same error came twice at step {attempt.failed_step}, {OF_TRAINING}:"
            f" {attempt.error}"
        )
    in_vain = _saved_in_vain([*history, attempt])
    if in_vain > policy.budget:
        return (
            f"what {in_vain} attempts in a row had saved was found damaged, and requeue.budget is"
            f" {policy.budget}: is the file system of the run directory sound?"
        )
    idle = _idle_attempts([*history, attempt])
    if len(idle) >= ATTEMPTS_WITHOUT_A_STEP and all(
        not tried.outcome.follows.is_fault for tried in idle[-ATTEMPTS_WITHOUT_A_STEP:]
    ):
        return f"{len(idle)} attempts in a row ended without one new step that was saved"
    faults = [tried for tried in idle if tried.outcome.follows.is_fault]
    if attempt.outcome.follows.is_fault and len(faults) > policy.budget:
        return (
            f"{len(faults)} node, network or hang failures in a row without one new step that was"
            f" saved, and requeue.budget is {policy.budget}"
        )
    return ""


def _same_error(attempt: AttemptSummary, before: AttemptSummary) -> bool:
    return (
        attempt.outcome.follows.is_fault
        and attempt.error != ""
        and attempt.failed_step is not None
        and (attempt.error, attempt.failed_step) == (before.error, before.failed_step)
    )


def _saved_in_vain(history: Sequence[AttemptSummary]) -> int:
    """How many of the latest attempts had to begin before what the one before them had saved."""
    count = 0
    for before, after in zip(reversed(history[:-1]), reversed(history[1:]), strict=True):
        if after.first_step >= before.saved_step:
            break
        count += 1
    return count


def _idle_attempts(history: Sequence[AttemptSummary]) -> list[AttemptSummary]:
    """The attempts since the last one that made progress, oldest first."""
    idle: list[AttemptSummary] = []
    for attempt in reversed(history):
        if attempt.progressed:
            break
        idle.append(attempt)
    return idle[::-1]


def _dispensable(blamed: Sequence[str], scheduler: SchedulerOptions) -> tuple[str, ...]:
    """Those of the blamed nodes without which enough are left; the latest blamed go first."""
    usable = scheduler.usable_nodes
    others = [node for node in blamed if node not in scheduler.demanded_nodes]
    if usable is None:
        return tuple(sorted(others))
    left_out: list[str] = []
    for node in others:
        if len(usable.difference(left_out, {node})) >= scheduler.nodes_needed:
            left_out.append(node)
    return tuple(sorted(left_out))


def _not_mended(attempt: AttemptSummary, blamed: Sequence[str], scheduler: SchedulerOptions) -> str:
    """Why no other set of nodes would change the preflight's no; empty where one might.

    A node that is gone is waited for: Slurm starts the job again when it is back.
    """
    if attempt.refused == "site":
        return "every node has it, so no other nodes would help"
    kept = set(attempt.blamed).difference(_dispensable(blamed, scheduler))
    if attempt.refused != "nodes" or not kept or scheduler.node_is_gone:
        return ""
    if demanded := sorted(kept & scheduler.demanded_nodes):
        fix = "mend it, or resume with slurm.nodelist=null"
        return f"{_named(demanded)}: {fix}"
    return (
        f"{folded(sorted(kept))} cannot be left out, since {scheduler.nodes_needed} nodes are"
        " needed and no others are there: mend it, or ask for fewer nodes"
    )


def _named(nodes: Sequence[str]) -> str:
    them = "them" if nodes[1:] else "it"
    return f"{folded(nodes)} cannot be left out, since slurm.nodelist names {them}"


def _go_on(attempt: AttemptSummary, blamed: Sequence[str], scheduler: SchedulerOptions) -> Decision:
    exclude = _dispensable(blamed, scheduler)
    kept = sorted(set(blamed).difference(exclude))
    because = f"{attempt.outcome.value.replace('_', ' ')}: goes on from step {attempt.saved_step}"
    because += f", without {', '.join(exclude)}" if exclude else ""
    demanded = [node for node in kept if node in scheduler.demanded_nodes]
    if demanded:
        because += f"; {_named(demanded)}"
    if few := [node for node in kept if node not in demanded]:
        needed = scheduler.nodes_needed
        because += f"; {', '.join(few)} cannot be left out, since {needed} nodes are needed"
    # A dead node that is needed has to come back first, and a requeue waits for just that.
    elsewhere = scheduler.node_is_gone and scheduler.can_resubmit and not kept
    if scheduler.requeued_already or (scheduler.can_requeue and not elsewhere):
        return Decision(
            action=Action.REQUEUE, reason=because, state=RunState.PENDING, exclude=exclude
        )
    if scheduler.can_resubmit:
        why = (
            "Slurm still holds this one for the dead node"
            if scheduler.node_is_gone
            else "this one may not be requeued"
        )
        return Decision(
            action=Action.RESUBMIT,
            reason=f"{because}, as a fresh job since {why}",
            state=RunState.PENDING,
            exclude=exclude,
        )
    return Decision(
        action=Action.STOP,
        reason=f"{attempt.outcome.value}: neither a requeue nor a fresh job is possible here",
        state=RunState.FAILED,
    )
