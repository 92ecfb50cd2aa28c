"""Everything that a report says of one run, read from its directory. Knows no Slurm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hpc_train.codec import encode, read_object
from hpc_train.errors import HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.report.goodput import AttemptFacts, Goodput, goodput
from hpc_train.report.node_use import NodeUse, read_nodes
from hpc_train.report.series import Series, read_metrics, throughput
from hpc_train.report.unwritten import unwritten
from hpc_train.report.usage import Accounted, AskedUsed, asked_and_used
from hpc_train.runs.checkpoints import MANIFEST, checkpoint_steps
from hpc_train.runs.events import read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import read_state
from hpc_train.runs.ranks import read_heartbeats
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.status import SESSION, RunStatus

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """One run as it is reported.

    Attributes:
        plan: None where there is none (a Session's run), or where it cannot be read.
        environment: environment.json; empty where there is none.
        versions: Of torch and what else makes the result, by the newest checkpoint.
        throughput: Steps a second over the seconds since `origin`.
        missing: A line for each thing that could not be told.
    """

    status: RunStatus
    plan: Plan | None
    environment: dict[str, Any]
    versions: dict[str, str]
    goodput: Goodput
    metrics: tuple[Series, ...]
    throughput: Series | None
    origin: float
    nodes: tuple[NodeUse, ...]
    usage: tuple[AskedUsed, ...]
    missing: tuple[str, ...]

    @property
    def device(self) -> str:
        """What its hours are counted in."""
        return "GPU" if _gpus_per_node(self.plan, self.status, self.nodes) else "node"

    @property
    def ranks(self) -> int:
        """Of the newest attempt that has trained; 0 where none has."""
        trained = [it.ranks for it in self.goodput.attempts if it.steps]
        planned = self.plan.shape.world_size if self.plan else 0
        return (trained[-1] or planned) if trained else 0

    @property
    def steps_per_s(self) -> float | None:
        """Over all attempts, while they trained."""
        rates = [(it.steps, it.steps_per_s) for it in self.goodput.attempts if it.steps_per_s]
        spent_s = sum(steps / rate for steps, rate in rates if rate)
        return sum(steps for steps, _ in rates) / spent_s if spent_s > 0 else None

    @property
    def samples_per_s(self) -> float | None:
        """The same in samples; None where the batch size is the script's own business."""
        batch = self.plan.batch.global_batch_size if self.plan else 0
        return self.steps_per_s * batch if self.steps_per_s and batch else None

    def to_json(self) -> dict[str, Any]:
        """The run's part of `hpc-train report --json`; NaN is null."""
        shares = self.goodput
        document = {
            **self.status.to_json(),
            "goodput": {
                "share": shares.share,
                "device_share": shares.device_share,
                "device": self.device,
                "wall_s": shares.wall_s,
                "seconds": shares.seconds,
                "device_seconds": shares.device_seconds,
                "attempts": [
                    encode(it) | {"steps_per_s": it.steps_per_s} for it in shares.attempts
                ],
                "notes": list(shares.notes),
            },
            "throughput": {
                "steps_per_s": self.steps_per_s,
                "samples_per_s": self.samples_per_s,
                "series": encode(self.throughput),
            },
            "series": [encode(series) for series in self.metrics],
            "nodes": [encode(node) for node in self.nodes],
            "asked_and_used": [encode(row) for row in self.usage],
            "missing": list(self.missing),
        }
        clean: dict[str, Any] = _finite(document)
        return clean


def gather(
    run: RunDir, status: RunStatus, now: float, accounted: Accounted | None = None
) -> RunReport:
    """Read what the run has left; what is not there is named in `missing`.

    Args:
        status: As it is known now.
        now: Seconds since the epoch.
        accounted: What Slurm's accounting counted, where there is one.
    """
    missing: list[str] = []
    plan = _plan(run, status, missing)
    nodes = read_nodes(run)
    shares = _goodput(run, status, _gpus_per_node(plan, status, nodes), now)
    if not status.attempts:
        missing.append("no attempt has begun yet" if not status.state.ended else "no attempt began")
    origin = shares.attempts[0].began if shares.attempts else status.submitted or now
    pace = throughput(run, shares.attempts, origin)
    metrics = read_metrics(run)
    if status.attempts:
        too_few = unwritten(run, status, metrics)
        missing += [too_few] if too_few else []
        absent = {
            "no metrics: there is no metrics.csv": not metrics and not too_few,
            "no throughput over time: rank 0 left no progress": pace is None,
            "no node was watched: monitor/ is empty": not nodes,
        }
        missing += [text for text, is_absent in absent.items() if is_absent]
    return RunReport(
        status=status,
        plan=plan,
        environment={"git_diff": "", **read_state(run)},
        versions=_versions(run),
        goodput=shares,
        metrics=tuple(metrics),
        throughput=pace,
        origin=origin,
        nodes=tuple(nodes),
        usage=tuple(asked_and_used(plan, status.attempts, nodes, accounted or Accounted())),
        missing=tuple(missing),
    )


def _gpus_per_node(plan: Plan | None, status: RunStatus, nodes: Sequence[NodeUse]) -> int:
    """What was held; on a machine that turned out to have none, the ranks were on its CPUs."""
    planned = plan.shape.gpus_per_node if plan else 0
    seen = any("gpu_memory_gib" in node.values for node in nodes)
    return planned if status.backend == "slurm" or seen or not nodes else 0


def _goodput(run: RunDir, status: RunStatus, gpus_per_node: int, now: float) -> Goodput:
    facts = {record.attempt: _facts(run, record.attempt) for record in status.attempts}
    last = max((it.beat.time for it in facts.values() if it.beat), default=0.0)
    is_open = not status.state.ended
    begun = max((record.started for record in status.attempts), default=status.submitted or now)
    lost = status.state is RunState.LOST
    return goodput(
        read_events(run.events),
        facts,
        gpus_per_node=gpus_per_node,
        until=now if is_open and not lost else max(last, begun),
        is_open=is_open,
    )


def _facts(run: RunDir, attempt: int) -> AttemptFacts:
    beats = read_heartbeats(run.attempt(attempt))
    return AttemptFacts(beat=beats[0] if beats else None, ranks=len(beats))


def _plan(run: RunDir, status: RunStatus, missing: list[str]) -> Plan | None:
    if status.backend == SESSION or not run.plan.exists():
        missing.append("no plan: a script with a Session of its own, so nothing was asked for")
        return None
    try:
        return read_plan(run)
    except (OSError, ValueError, HpcTrainError) as error:
        missing.append(f"no plan: {getattr(error, 'message', error)}")
        return None


def _versions(run: RunDir) -> dict[str, str]:
    folders = list(checkpoint_steps(run).values())
    told = read_object(folders[-1] / MANIFEST).get("versions") if folders else None
    return {str(k): str(v) for k, v in told.items()} if isinstance(told, dict) else {}


def _finite(value: Any) -> Any:
    """The same without NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value
