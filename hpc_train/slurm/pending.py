"""Why a job waits, or does not train though it has begun: Slurm's reasons in the config's words.

Source: squeue(1), JOB REASON CODES and JOB STATE CODES.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpc_train.config.schema import SlurmConfig
from hpc_train.plan.hostlist import expand
from hpc_train.slurm.jobs import seconds_of
from hpc_train.slurm.nodes import UNUSABLE, NodeRow, NodeState, down_nodes_for, told_out
from hpc_train.slurm.refusals import ACCOUNT_SHOWN, QOS_SHOWN, first_meaning
from hpc_train.slurm.reservations import Reservation, explain_reserved, is_reserved
from hpc_train.slurm.waited_for import never_met, waited_for

# With these the job waits for ever unless somebody changes it.
PENDING_FOR_GOOD = {
    "PartitionTimeLimit": ("slurm.time", "is longer than its partition allows"),
    "PartitionNodeLimit": ("slurm.nodes", "is more than its partition allows"),
    "PartitionConfig": (
        "slurm",
        "asks for more than its partition has or allows (time, nodes, CPUs, memory)",
    ),
    "PartitionDown": ("slurm.partition", "is down"),
    "PartitionInactive": ("slurm.partition", "is inactive"),
    "BadConstraints": ("slurm.constraint, nodelist or exclude", "can not be satisfied"),
    "InvalidAccount": ("slurm.account", "is not valid"),
    "InvalidQOS": ("slurm.qos", "is not valid"),
    "DependencyNeverSatisfied": ("slurm.dependency", "will never be satisfied"),
    "ReqNodeNotAvail": ("slurm.nodes or slurm.nodelist", "needs nodes that are down or drained"),
    "AssocMaxWallDurationPerJobLimit": ("slurm.time", "is longer than your account allows"),
    "QOSMaxWallDurationPerJobLimit": ("slurm.time", "is longer than your QOS allows"),
    "QOSMaxNodePerJobLimit": ("slurm.nodes", "is more than your QOS allows"),
    "QOSMaxGRESPerJob": ("slurm.gpus_per_node", "is more than your QOS allows"),
}
WITHOUT_WAIT = "slurm.dependency=null"  # with this a run begins that has waited in vain
# Of these, the ones that an administrator or a repair may end.
_OF_PARTITION = ("PartitionDown", "PartitionInactive")
_MAY_PASS = (*_OF_PARTITION, "ReqNodeNotAvail")
# Where several keys may be meant: those of them that can be, and what is meant where none is set.
_ONE_OF = {
    "BadConstraints": (
        ("constraint", "nodelist", "exclude"),
        "what slurm asks for (nodes, GPUs, CPUs, memory)",
    ),
    "ReqNodeNotAvail": (("nodelist",), "slurm.nodes"),
}
# A job that is held waits until somebody lets it go.
_HELD = {
    r"JobHeldUser": "somebody holds the job (scontrol hold): `scontrol release {job}` lets it go",
    r"JobHeldAdmin": "an administrator holds the job, and only they can release it: ask them for"
    " `scontrol release {job}`",
    r"job requeued in held state": "the job was put back into the queue and is held (scontrol"
    " requeuehold, or RequeueExitHold of slurm.conf): `scontrol release {job}` lets it go",
    r"requeued held|held state": "Slurm could not start the job on its nodes, requeued and holds"
    " it: `sinfo -R` names nodes with trouble, `scontrol release {job}` lets it go",
}
# What the ordinary reasons mean.
_MEANINGS = {
    r"Resources$": "nodes that it could have are taken by other jobs",
    r"Priority$": "other jobs are in front of it",
    r"BeginTime$": "not before its slurm.begin; after a requeue Slurm waits for two minutes",
    r"Dependency$": "another job has to end first: --after, or slurm.dependency",
    r"JobArrayTaskLimit$": "as many points as --at-most allows have begun",
    r"Licenses$": "all of its slurm.licenses are in use",
    r"Reservation$": "its slurm.reservation has not begun, or is full",
    r"QOS(?!NotAllowed)\w+$": "a limit of its QOS (slurm.qos), which other jobs use up or this one"
    f" alone is beyond: `{QOS_SHOWN}` shows it",
    r"Assoc\w+$": "a limit of your account (slurm.account), which other jobs use up or this one"
    f" alone is beyond: `{ACCOUNT_SHOWN}` shows it",
}
_BEGUN = {
    "SUSPENDED": "Slurm has suspended the job; its ranks go on when it resumes it",
    "STOPPED": "somebody has stopped the job (scancel --signal=STOP); it goes on after CONT",
    "COMPLETING": "Slurm is ending the job",
    "SIGNALING": "Slurm is ending the job",
}
# A requeued job waits for its old credential's end, 120 s by default (AuthInfo, slurm.conf(5)).
REQUEUE_WAIT_S = 600.0
_UNAVAILABLE = "UnavailableNodes:"
_NODES_OUT = "Nodes required for job are DOWN, DRAINED"  # or reserved for jobs of other partitions
_OWN_KEYS = frozenset(item.name for item in dataclasses.fields(SlurmConfig))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is known of a job that waits, beside Slurm's reason.

    Attributes:
        options: sbatch's long options by name, as its run asked for them; None where unknown.
        has_run: It has begun before, and was requeued.
        run: Its run, where that has a config in which a key can be changed.
        resumable: The same, where it has steps that a cancel and a resume keep.
        nodes: What Slurm has, where it was asked.
        reservations: The same of them.
        now: When they were, in seconds since the epoch.
        start: When it can begin at the earliest, in Slurm's form, local to the cluster.
        dependency: The jobs that it waits for, as squeue tells them.
    """

    options: Mapping[str, str | None] | None = None
    has_run: bool = False
    run: str = ""
    resumable: str = ""
    nodes: Sequence[NodeRow] = ()
    reservations: Sequence[Reservation] = ()
    now: float = 0.0
    start: str = ""
    dependency: str = ""


_NOTHING = Asked()


def explain_pending(reason: str, job_id: str = "JOB", asked: Asked = _NOTHING) -> str:
    """Why a job will wait for ever, in the config's words; empty for ordinary reasons.

    What is wrong ends with the first colon.
    """
    if held := first_meaning(reason, _HELD):
        return held.format(job=job_id)
    word = _word(reason)
    if word not in PENDING_FOR_GOOD:
        return ""
    if is_reserved(reason):
        return _reserved(asked)
    if word == "DependencyNeverSatisfied":
        return _in_vain(asked)
    keys = _keys(word, asked)
    way = _way(keys, asked)
    found = re.search(rf"{_UNAVAILABLE}([^\s()]+)", reason)
    if word in _MAY_PASS:
        whys = told_out(_named(found[1] if found else "", asked.nodes))
        of_nodes = whys or "`sinfo -R` says why"
        told = "`sinfo -s` shows those that are up" if word in _OF_PARTITION else of_nodes
        way = f"{told}; it starts when that has passed, or {way}"
    trouble = PENDING_FOR_GOOD[word][1]
    return f"{keys} {trouble}{f' ({found[1]})' if found else ''}: {way}"


def _in_vain(asked: Asked) -> str:
    """Which job has ended otherwise than it should, and what lets this one begin without it."""
    key, trouble = PENDING_FOR_GOOD["DependencyNeverSatisfied"]
    which = never_met(asked.dependency)
    said = f"{key} {trouble}{f' ({which})' if which else ''}"
    if not asked.run:
        return f"{said}: cancel it, change the key, submit again"
    keeps = ", which keeps its steps" if asked.resumable else ""
    way = f"`hpc-train cancel {asked.run}`, then `hpc-train resume {asked.run} {WITHOUT_WAIT}`"
    return f"{said}: {way}{keeps}"


def _reserved(asked: Asked) -> str:
    """What is reserved, until when, and what may be done beside waiting for that."""
    said, shorter = explain_reserved(asked.reservations, asked.options, asked.nodes, asked.now)
    passes = "it starts when that has passed"
    rest = f"{shorter} ({_way('slurm.time', asked)}); else {passes}" if shorter else passes
    return f"{said}: {rest}"


def explain_waiting(reason: str, asked: Asked = _NOTHING) -> str:
    """What an ordinary reason of a job that waits means, and its key; empty where none is known."""
    if explain_pending(reason):
        return ""
    if reason.startswith(_NODES_OUT) and asked.options is not None:
        return told_out(down_nodes_for(asked.options, asked.nodes))
    word = _word(reason)
    if word == "BeginTime" and asked.options is not None:
        return _not_before(asked)
    jobs = waited_for(asked.dependency) if word == "Dependency" else ""
    return jobs or first_meaning(word, _MEANINGS)


def explain_running(slurm_state: str) -> str:
    """Why the ranks of a job that has begun do not train, or will not for long; else empty."""
    return _BEGUN.get(slurm_state, "")


def never_starts(reason: str) -> bool:
    """Whether a job that waits for this reason can start only after it has been changed."""
    word = _word(reason)
    return word in PENDING_FOR_GOOD and word not in _MAY_PASS


def waits_for_nodes(reason: str) -> bool:
    """Whether the states of nodes tell more of it."""
    return _UNAVAILABLE in reason or reason.startswith(_NODES_OUT)


def is_in_vain(reason: str) -> bool:
    """Whether it waits for a job that has ended otherwise than it should."""
    return _word(reason) == "DependencyNeverSatisfied"


def is_not_before(reason: str) -> bool:
    """Whether it waits for a time that is known, and for nothing else."""
    return _word(reason) == "BeginTime"


def _not_before(asked: Asked) -> str:
    """Until when it waits for a time, and who has set that."""
    until = f" {asked.start.replace('T', ' ')}" if asked.start else ""
    if asked.options and asked.options.get("begin") and not asked.has_run:
        return f"not before its slurm.begin{f',{until}' if until else ''}"
    at = seconds_of(asked.start)
    if at is not None and at - asked.now > REQUEUE_WAIT_S:  # set by `scontrol update StartTime=`
        return f"not before{until}"
    return f"Slurm waits for about two minutes after a requeue{f': until{until}' if until else ''}"


def _keys(word: str, asked: Asked) -> str:
    """The keys that keep it waiting, out of those that are set."""
    if word not in _ONE_OF or asked.options is None:
        return PENDING_FOR_GOOD[word][0]
    names, else_meant = _ONE_OF[word]
    found = [_as_key(name) for name in names if asked.options.get(name)]
    return " or ".join(found) or else_meant


def _as_key(option: str) -> str:
    return f"slurm.{option}" if option in _OWN_KEYS else f"slurm.extra.{option}"


def _way(keys: str, asked: Asked) -> str:
    """How to change it: what has been trained is kept where that can be."""
    if not asked.resumable:
        return "cancel it, change the key, submit again"
    is_one = re.fullmatch(r"slurm\.\w+", keys)
    change = f"{keys}=VALUE" if is_one else "slurm.KEY=VALUE"
    return (
        f"`hpc-train cancel {asked.resumable}`, then `hpc-train resume {asked.resumable} {change}`,"
        " which keeps its steps"
    )


def _named(hostlist: str, nodes: Sequence[NodeRow]) -> dict[str, NodeState]:
    """Of the nodes that Slurm names, those that are still out."""
    try:
        names = expand(hostlist) if hostlist else []
    except ValueError:  # cut short, as squeue does with a long reason
        return {}
    return {
        name: (state, reason)
        for _, name, state, reason in nodes
        if name in names and UNUSABLE.match(state)
    }


def _word(reason: str) -> str:
    return reason.split(",")[0].strip("() ")
