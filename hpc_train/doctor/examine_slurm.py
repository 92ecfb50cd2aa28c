"""What Slurm is and what the site allows, as lines with a fix. Sources: slurm.conf(5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.backends.submit import NAME_CLUSTER, is_configured
from hpc_train.errors import SlurmError
from hpc_train.plan.hostlist import folded
from hpc_train.preflight.checks.findings import Finding
from hpc_train.slurm.command import is_available
from hpc_train.slurm.jobs import job_details
from hpc_train.slurm.nodes import NodeRow, known_nodes, nodes_out, told_by_reason
from hpc_train.slurm.site import SlurmSite, ask_site

ANSWER_S = 5.0
OLDEST = (22, 5)  # --cpus-per-task of srun means something else before (RELEASE_NOTES)
_ALIVE = "`scontrol ping`: is the controller up, and does this host reach it?"


def check_slurm(environ: Mapping[str, str]) -> list[Finding]:
    """Ask Slurm, where there is one."""
    if not (is_available("sbatch") and is_available("scontrol")):
        return [Finding("", "", "slurm", "ok", "none here: --cluster local, or run")]
    try:
        return [*check_site(ask_site(ANSWER_S)), *check_nodes(known_nodes())]
    except SlurmError as error:
        if is_configured(environ):
            return [Finding("", "", "slurm", "fail", error.message, _ALIVE)]
        text = "its commands are here and no cluster behind them: submit trains on this machine"
        return [Finding("", "", "slurm", "warn", text, f"for the cluster: {NAME_CLUSTER}")]


def check_site(site: SlurmSite) -> Iterator[Finding]:
    """Version, requeue, arrays, preemption and time limits. Pure."""
    config = site.config
    yield _version(config)
    yield _requeue(config)
    yield _arrays(config)
    yield from _preemption(site)
    yield _time_limits(site)


def _version(config: Mapping[str, str]) -> Finding:
    said = config.get("SLURM_VERSION", "")
    numbers = tuple(map(int, re.findall(r"\d+", said)[:2]))
    text = f"{said or 'unknown version'}, cluster {config.get('ClusterName', '?')}"
    if numbers and numbers < OLDEST:
        fix = "nothing before 22.05 was tried: train on few nodes first"
        return Finding("", "", "slurm", "warn", text, fix)
    return Finding("", "", "slurm", "ok", text)


def _requeue(config: Mapping[str, str]) -> Finding:
    if config.get("JobRequeue") == "0":
        text = "JobRequeue=0: jobs are requeued only where they ask; hpc-train's do (--requeue)"
    else:
        text = "JobRequeue=1: jobs are requeued"
    return Finding("", "", "requeue", "ok", text)


def _arrays(config: Mapping[str, str]) -> Finding:
    size = int(config.get("MaxArraySize") or 0)
    if size < 2:
        text = f"MaxArraySize={size}: job arrays are off"
        return Finding("", "", "arrays", "warn", text, "ask the site, or submit one job a point")
    return Finding("", "", "arrays", "ok", f"MaxArraySize={size}: indices up to {size - 1}")


def _preemption(site: SlurmSite) -> Iterator[Finding]:
    kind = site.config.get("PreemptType", "(null)")
    mode = site.config.get("PreemptMode", "OFF")
    if kind in ("(null)", "preempt/none") or mode == "OFF":
        yield Finding("", "", "preemption", "ok", "none")
        return
    modes: dict[str, list[str]] = {}
    graces: dict[str, list[str]] = {}
    for partition in site.partitions:
        name = partition.get("PartitionName", "?")
        modes.setdefault(partition.get("PreemptMode", mode), []).append(name)
        graces.setdefault(partition.get("GraceTime", "0"), []).append(name)
    yield Finding("", "", "preemption", "ok", f"{kind}: {_by_partition(modes)}")
    if "CANCEL" in modes:
        text = f"{folded(modes['CANCEL'])}: a preempted job is not requeued"
        fix = "nothing to do where jobs may be submitted from a node: a run goes on as a new job"
        yield Finding("", "", "preempted jobs", "warn", text, fix)
    wait = site.config.get("KillWait", "30 sec")
    text = f"GraceTime in s: {_by_partition(graces)}; KillWait {wait}"
    preempting = [names for grace, names in graces.items() if grace == "0"]
    if preempting and set(modes) - {"OFF"}:
        fix = (
            "one step and one save have to fit into KillWait, else lower checkpoint.every_n_minutes"
        )
        yield Finding("", "", "grace", "warn", text, fix)
    else:
        yield Finding("", "", "grace", "ok", text)


def _time_limits(site: SlurmSite) -> Finding:
    limits: dict[str, list[str]] = {}
    for partition in site.partitions:
        star = "*" if partition.get("Default") == "YES" else ""
        limit = partition.get("MaxTime", "?")
        limits.setdefault(limit, []).append(f"{partition.get('PartitionName', '?')}{star}")
    if not limits:
        return Finding("", "", "MaxTime", "fail", "no partition is open to you", "ask the site")
    text = "; ".join(f"{', '.join(names)} {limit}" for limit, names in limits.items())
    return Finding("", "", "MaxTime", "ok", text)


def check_nodes(rows: Sequence[NodeRow]) -> Iterator[Finding]:
    """Which nodes take no jobs, and why; nothing where Slurm did not tell. Pure.

    Args:
        rows: Of `known_nodes`.
    """
    every, out = {node for _, node, _, _ in rows}, nodes_out(rows)
    if every and not out:
        yield Finding("", "", "nodes", "ok", f"{len(every)}, none of them down or drained")
    elif every:
        text = f"{len(out)} of {len(every)} take no jobs: {told_by_reason(out)}"
        fix = "nothing to change: jobs that need them wait until an administrator resumes them"
        yield Finding("", "", "nodes", "warn", text, fix)


def _by_partition(values: Mapping[str, list[str]]) -> str:
    if len(values) == 1:
        return next(iter(values))
    return "; ".join(f"{value} on {', '.join(names)}" for value, names in values.items())


def check_scontrol_in_job(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether a job may ask the controller of itself, which a requeue needs; nothing outside."""
    job = environ.get("SLURM_JOB_ID")
    if not job:
        return
    try:
        job_details(job)
    except SlurmError as error:
        fix = "runs go on as new jobs if sbatch works here, else they end: ask the site"
        yield Finding("", "", "scontrol in a job", "warn", error.message, fix)
    else:
        yield Finding("", "", "scontrol in a job", "ok", f"answers of job {job}")
