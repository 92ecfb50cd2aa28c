"""An attempt's preflight: ask for the verdict, record it, act on it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from hpc_train.plan.container import in_container, srun_options
from hpc_train.plan.plan import Plan
from hpc_train.preflight.one_node import verdict_of_one
from hpc_train.preflight.options import PreflightRequest
from hpc_train.preflight.run_preflight import run_preflight
from hpc_train.preflight.verdict import Verdict
from hpc_train.runs.atomic import write_text
from hpc_train.runs.bad_nodes import BadNode, remember
from hpc_train.runs.events import EventKind
from hpc_train.supervisor.attempt import Attempt
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.refusal import judge_refusal


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What the ranks may start with.

    Attributes:
        nodes: To train on, in order.
        environment: For every rank.
        per_node: node -> variables that differ there.
        refused: Why the ranks must not start; None if they may.
    """

    nodes: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    per_node: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    refused: AttemptOutcome | None = None


def check_nodes(attempt: Attempt) -> Checked:
    """Check the attempt's nodes as `preflight` in the config asks; record the verdict, and act."""
    plan, allocation = attempt.plan, attempt.allocation
    if not allocation.has_steps:
        return _check_this_machine(attempt)
    request = PreflightRequest(
        nodes=allocation.nodes,
        folder=attempt.folder.path / "preflight",
        environ=attempt.environ,
        python=plan.shell.python,
        cwd=plan.workdir,
        rank_python=tuple(in_container(plan, [plan.container.python])) if plan.container else (),
        rank_options=tuple(srun_options(plan)),
        wanted=plan.shape.nodes,
        gpus_per_node=plan.shape.gpus_per_node,
        ranks_per_node=plan.shape.ranks_per_node,
        uses_gloo=_uses_gloo(plan),
        unreachable=attempt.unreachable,
        seed=attempt.number,
        srun=allocation.srun,
    )
    verdict = run_preflight(plan.preflight, request)
    if verdict.bad_nodes and attempt.is_being_stopped:
        attempt.log.say("preflight: broken off, as the job is ended: no node is to blame")
        return Checked(nodes=(), refused=judge_refusal(verdict))
    _record(attempt, verdict)
    return _act(attempt, verdict)


def _check_this_machine(attempt: Attempt) -> Checked:
    """Of ranks that are all here a variable of the user's alone can be wrong."""
    plan, nodes = attempt.plan, attempt.allocation.nodes[: attempt.plan.shape.nodes]
    is_looked_at = plan.preflight.mode != "off" and _uses_gloo(plan)
    environ = {**attempt.environ, **plan.shell.variables}
    verdict = verdict_of_one(nodes, environ, is_looked_at=is_looked_at)
    if verdict.verdict != "no-go":
        return Checked(nodes=nodes)
    _record(attempt, verdict)
    return _act(attempt, verdict)


def _uses_gloo(plan: Plan) -> bool:
    """Whether the ranks surely meet by it: a script, or a strategy of its own, may do otherwise."""
    is_own = plan.script is not None or not isinstance(
        plan.training.trainer.get("strategy", "auto"), str
    )
    return plan.shape.world_size > 1 and not plan.shape.gpus_per_node and not is_own


def _record(attempt: Attempt, verdict: Verdict) -> None:
    document = {"nodes": list(attempt.allocation.nodes), **verdict.to_json()}
    write_text(attempt.folder.preflight, json.dumps(document, indent=2) + "\n")
    attempt.tell(
        EventKind.PREFLIGHT,
        verdict=verdict.verdict,
        bad_nodes=list(verdict.bad_nodes),
        summary="\n".join(_for_history(verdict)),
        seconds=verdict.seconds,
    )
    for line in verdict.summary:
        attempt.log.say(f"preflight: {line}")
    for item in verdict.environment:
        attempt.log.say(f"preflight: {item.name}={item.value}: {item.reason}")
    if not (verdict.bad_nodes and attempt.allocation.is_slurm):
        return  # nobody but Slurm gives a later run other nodes
    now = time.time()
    until = now + attempt.plan.preflight.memory_of_bad_nodes_h * 3600
    bad = [
        BadNode(node, _why(verdict, node), attempt.run.run_id, now, until)
        for node in verdict.bad_nodes
    ]
    trouble = remember(attempt.environ, attempt.allocation.cluster, bad)
    if trouble:
        attempt.log.say(f"the bad nodes could not be remembered: {trouble}")


def _act(attempt: Attempt, verdict: Verdict) -> Checked:
    nodes = tuple(node for node in attempt.allocation.nodes if node in verdict.use_nodes)
    if verdict.verdict != "no-go" and len(nodes) >= attempt.plan.shape.nodes:
        return Checked(
            nodes=nodes[: attempt.plan.shape.nodes],
            environment={item.name: item.value for item in verdict.environment},
            per_node=verdict.per_node,
        )
    return Checked(nodes=nodes, refused=judge_refusal(verdict))


def _for_history(verdict: Verdict) -> list[str]:
    """The answer and what is wrong; what could not be told is in preflight.json and in the log."""
    first, *rest = verdict.summary
    if all(line.startswith("skipped: everything") for line in rest) and rest:
        return rest
    levels = ("fail", "warn", "unknown") if verdict.checked_nothing else ("fail", "warn")
    return [first, *(line for line in rest if line.startswith(levels))]


def _why(verdict: Verdict, node: str) -> str:
    failed = (f for f in verdict.findings if f.node == node and f.level == "fail")
    return next((f"{f.part} {f.check}: {f.evidence}" for f in failed), "refused")
