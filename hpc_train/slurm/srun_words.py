"""Which nodes srun could not start a step on, in its own words. Pure.

The words are those of Slurm's src/api/step_launch.c (`_launch_tasks`, `_node_fail_handler`,
`_check_io_timeout`, `step_launch_notify_io_failure`), the same from 22.05 to 25.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from hpc_train.plan.hostlist import expand

_LAUNCH = re.compile(r"Task launch for \S+ failed on node (\S+): (.+)")
_FAILED = re.compile(r"error: Node failure on (\S+)")
_BY_INDEX = re.compile(
    r"(?:Cannot communicate with|can not test connection to|io error with slurmstepd on"
    r"|io error and missing step on|step missing and io error on) node (\d+)"
)
# Of src/api/allocate.c and src/srun/libsrun/launch.c, as srun tries again and once it has its step.
_WAITS = re.compile(
    r"(?:[Ss]tep creation (?:temporarily|still) disabled, retrying \((?P<why>[^)]*)\)"
    r"|Step created for )"
)
# slurm_strerror of SLURM_COMMUNICATIONS_* and SLURM_PROTOCOL_SOCKET_*, and errno's own.
_UNREACHABLE = re.compile(
    r"[Cc]onnect|[Cc]ommunication|[Ss]ocket|Message (?:send|receive)|timed out|Zero Bytes|No route"
    r"|unreachable|find an address"
)


_OVER_LIMIT = re.compile(
    r"slurmstepd\S*: error: [\w=. ]{1,60} exceeded memory limit \((\d+) > (\d+)\), being killed"
)
_RAISES = "slurm.mem, mem_per_gpu or mem_per_cpu gives it more"
_OOM_EVENT = re.compile(r"slurmstepd\S*: error: Detected \d+ oom[-_]kill event")


def launch_failures(text: str, nodes: Sequence[str]) -> dict[str, str]:
    """The nodes that a step was not started on, with srun's words; none where it names most.

    A node that cannot be reached delays those behind it in Slurm's tree of messages, whose
    credentials may expire in that time (AuthInfo=cred_expire): a lost connection is the cause, and
    other words count only without one. More than half of the nodes is no node's own fault.

    Args:
        text: srun's standard error.
        nodes: Of the step.
    """
    said = {node: words.strip() for node, words in _LAUNCH.findall(text) if node in nodes}
    unreachable = {node: words for node, words in said.items() if _UNREACHABLE.search(words)}
    named = unreachable or said
    return {} if len(nodes) > 1 and 2 * len(named) > len(nodes) else named


def waits_for(text: str) -> str:
    """Why srun has not got its step yet, for a person; empty where it does not wait.

    Args:
        text: srun's standard error.
    """
    said = [found["why"] or "" for found in _WAITS.finditer(text)]
    if not said or not said[-1]:
        return ""
    return f"srun waits ({said[-1]}): `squeue --steps` shows which step of the job holds the nodes"


def nodes_that_failed(text: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """The nodes that srun says it has lost after the start of a step, in the order of `nodes`."""
    lost = set(nodes_taken(text, nodes))
    by_index = [int(number) for number in _BY_INDEX.findall(text)]
    lost |= {nodes[number] for number in by_index if number < len(nodes)}
    return tuple(node for node in nodes if node in lost)


def nodes_taken(text: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """The nodes that Slurm itself has taken from the step, in the order of `nodes`.

    Where these are all of its nodes, srun ends with 0 before any rank has ended (seen on 22.05).
    """
    lost = set(chain.from_iterable(map(_names, _FAILED.findall(text))))
    return tuple(node for node in nodes if node in lost)


def loses_a_node(line: str) -> bool:
    """Whether srun says here that it has lost a node: it ends the other ranks then."""
    return bool(_FAILED.search(line) or _BY_INDEX.search(line))


def gave_up_waiting(text: str) -> bool:
    """Whether srun has ended before its tasks had, after KillWait; it ends with 0 then.

    Source: src/api/step_launch.c, `slurm_step_launch_wait_finish`.
    """
    return "Timed out waiting for job step to complete" in text


def memory_limit(lines: Iterable[str]) -> str:
    """That slurmstepd has killed a step for memory, and what it had; empty where it says no such.

    It says so in the tasks' own error streams, and srun only that they were killed. Source:
    OverMemoryKill of JobAcctGatherParams (slurm.conf(5)); src/interfaces/jobacct_gather.c and
    src/plugins/task/cgroup (`oom-kill event(s)`, 22.05; `oom_kill event`, later).
    """
    for line in lines:
        if found := _OVER_LIMIT.search(line):
            had, limit = (round(int(value) / 2**20) for value in found.groups())
            return f"its job had {had} MiB of memory on that node, of {limit} MiB; {_RAISES}"
        if _OOM_EVENT.search(line):
            return f"its job used up its memory on that node; {_RAISES}"
    return ""


def _names(hostlist: str) -> list[str]:
    try:
        return expand(hostlist)
    except ValueError:
        return []
