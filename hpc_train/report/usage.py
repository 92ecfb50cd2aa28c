"""Asked against used, as seff and jobstats tell it, with the flag to change. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpc_train.plan.plan import Plan
from hpc_train.plan.states import Outcome
from hpc_train.plan.units import memory_mib, slurm_time, time_s
from hpc_train.report.node_use import NodeUse
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.history_text import duration

LITTLE, MUCH = 0.5, 0.95
ROOM = 1.3  # what is advised beside what was used
QUARTER_S = 900
START_S = 120  # of a shorter run the GPUs' use is that of its start


@dataclass(frozen=True)
class Accounted:
    """What Slurm's accounting counted; None where it did not."""

    cpu_share: float | None = None  # of the CPUs that were held, over all jobs
    memory_mib: float | None = None  # of the node that needed most


@dataclass(frozen=True, kw_only=True)
class AskedUsed:
    """One row; `share` is used of asked, `advice` is empty where nothing should change."""

    what: str
    asked: str
    used: str
    share: float | None
    advice: str = ""


def asked_and_used(
    plan: Plan | None,
    attempts: Sequence[AttemptRecord],
    nodes: Sequence[NodeUse],
    accounted: Accounted,
) -> list[AskedUsed]:
    """Time, memory, CPUs, GPUs and their memory, as far as each is known."""
    if plan is None:
        return []
    rows = (
        _time(plan, attempts),
        _memory(plan, nodes, accounted),
        _cpus(plan, nodes, accounted),
        *_gpus(plan, nodes, has_trained=_ran_s(attempts) >= START_S),
    )
    return [row for row in rows if row is not None]


def _option(plan: Plan, name: str) -> str:
    return next((value or "" for option, value in plan.slurm.options if option == name), "")


def _time(plan: Plan, attempts: Sequence[AttemptRecord]) -> AskedUsed | None:
    asked = _option(plan, "time")
    try:
        limit_s = time_s(asked) if asked else None
    except ValueError:
        limit_s = None
    ended = [record.ended - record.started for record in attempts if record.ended is not None]
    if not ended or limit_s is None:
        return None
    share = max(ended) / limit_s
    ran_out = any(record.outcome is Outcome.TIMEOUT for record in attempts)
    advice = ""
    if ran_out:
        advice = "the limit stopped it; a longer --time saves starts"
    elif share < LITTLE:
        wanted_s = int(-(-max(ended) * ROOM // QUARTER_S) * QUARTER_S)
        if wanted_s < limit_s:
            advice = f"--time {slurm_time(wanted_s)}: a shorter job starts earlier"
    used = f"{duration(max(ended))}, the longest attempt"
    return AskedUsed(what="time", asked=duration(limit_s), used=used, share=share, advice=advice)


def _memory(plan: Plan, nodes: Sequence[NodeUse], accounted: Accounted) -> AskedUsed | None:
    peaks = [node.values["memory_gib"] for node in nodes if "memory_gib" in node.values]
    used_gib = accounted.memory_mib / 1024 if accounted.memory_mib else max(peaks, default=None)
    if used_gib is None:
        return None
    source = "of the ranks" if accounted.memory_mib else "of the whole node"
    key, units = _memory_key(plan)
    try:
        asked_gib = memory_mib(_option(plan, key)) * units / 1024 if key else 0.0
    except ValueError:
        asked_gib = 0.0
    used = f"{used_gib:.1f} GiB, the most {source}"
    if not asked_gib:
        what = "all of a node" if key else "the site's default"
        return AskedUsed(what="memory a node", asked=what, used=used, share=None)
    share = used_gib / asked_gib
    advice = ""
    if share > MUCH or (share < LITTLE and asked_gib > 2):
        wanted = max(1, -int(-used_gib * ROOM / units // 1))
        why = "it was nearly full" if share > MUCH else "the rest is free for others"
        advice = f"slurm.{key.replace('-', '_')}={wanted}G: {why}"
    return AskedUsed(
        what="memory a node", asked=f"{asked_gib:.1f} GiB", used=used, share=share, advice=advice
    )


def _memory_key(plan: Plan) -> tuple[str, int]:
    """Which option asks for memory, and how many of its units a node has."""
    cpus = (plan.slurm.cpus_per_rank or 1) * plan.shape.ranks_per_node
    units = {"mem": 1, "mem-per-gpu": max(1, plan.shape.gpus_per_node), "mem-per-cpu": cpus}
    return next(((key, count) for key, count in units.items() if _option(plan, key)), ("", 1))


def _cpus(plan: Plan, nodes: Sequence[NodeUse], accounted: Accounted) -> AskedUsed | None:
    ranks = plan.shape.ranks_per_node
    asked = (plan.slurm.cpus_per_rank or 0) * ranks
    told = [
        node.values["cpu_percent"] / 100 * node.cpus
        for node in nodes
        if node.cpus and "cpu_percent" in node.values
    ]
    if accounted.cpu_share is not None and asked:
        used, source = accounted.cpu_share * asked, ""
    elif told:
        used, source = sum(told) / len(told), ", of the whole node"
    else:
        return None
    text = f"{used:.1f} busy on average{source}"
    if not asked:
        return AskedUsed(what="CPUs a node", asked="the site's default", used=text, share=None)
    share = used / asked
    advice = ""
    if share < LITTLE / 2 and asked > ranks:
        wanted = max(1, -int(-used * ROOM / ranks // 1))
        if wanted < (plan.slurm.cpus_per_rank or 0):
            advice = f"slurm.cpus_per_gpu={wanted}: so many were busy"
    elif share > MUCH:
        advice = f"slurm.cpus_per_gpu={2 * (plan.slurm.cpus_per_rank or 1)}: all of them were busy"
    return AskedUsed(what="CPUs a node", asked=str(asked), used=text, share=share, advice=advice)


def _ran_s(attempts: Sequence[AttemptRecord]) -> float:
    """Of all attempts; without end where one still runs."""
    return sum(
        record.ended - record.started if record.ended is not None else math.inf
        for record in attempts
    )


def _gpus(plan: Plan, nodes: Sequence[NodeUse], *, has_trained: bool) -> Iterator[AskedUsed]:
    """GPUs and their memory; no advice where it ran for a short time, most of it the start."""
    asked = plan.shape.gpus_per_node
    uses = [node.values["gpu_percent"] for node in nodes if "gpu_percent" in node.values]
    if not asked or not uses:
        return
    percent = sum(uses) / len(uses)
    advice = ""
    if percent < 100 * LITTLE and has_trained:
        fewer = f", or ask for fewer: --gpus {asked // 2}" if asked > 1 else ""
        advice = f"they wait: more data workers and CPUs (slurm.cpus_per_gpu){fewer}"
    used = f"{percent:.0f} % busy on average"
    yield AskedUsed(
        what="GPUs a node", asked=str(asked), used=used, share=percent / 100, advice=advice
    )
    peaks = [node.values["gpu_memory_gib"] for node in nodes if "gpu_memory_gib" in node.values]
    sizes = [node.gpu_memory_gib for node in nodes if node.gpu_memory_gib]
    if not peaks or not sizes:
        return
    share = max(peaks) / min(sizes)
    advice = "micro_batch_size: a larger one fits" if share < LITTLE and has_trained else ""
    yield AskedUsed(
        what="GPU memory",
        asked=f"{min(sizes):.0f} GiB",
        used=f"{max(peaks):.1f} GiB, the most",
        share=share,
        advice=advice,
    )
