"""What a test cluster looks like: one frozen value, hashable, so that equal ones are shared."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from ClusterShell.NodeSet import NodeSet

__all__ = ["ClusterSpec"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """The choices of one cluster; the defaults are the cluster that most tests share.

    Args:
        nodes: Hostlist in Slurm's notation, for example ``rack[1-2]n[01-02]``.
        cpus_per_node: CPUs that each node claims (the machine may have fewer).
        gpus_per_node: Made GPUs a node; 0 leaves the generic resource out.
        gpu_type: Type name of the GPUs (``a100``), empty for none.
        memory_mib: Memory that each node claims.
        grace_s: GraceTime of the preemptible partition ``train``.
        preempt_mode: What Slurm does to a preempted job once the grace is over.
        send_user_signal: Whether ``--signal`` is also sent at preemption (SlurmctldParameters here,
            PreemptParameters in later Slurms).
        accounting: With slurmdbd and MariaDB; without it ``sacct`` fails, as at some sites.
        train_max_time_min: MaxTime of ``train``; None is UNLIMITED.
        short_max_time_min: MaxTime of ``short``; None leaves that partition out.
        job_requeue: JobRequeue, the site's default for ``--requeue``.
        cred_expire_s: Life of a credential; a requeued job waits this long plus one second.
        kill_wait_s: Seconds from SIGTERM to SIGKILL when a job ends.
        slurmd_timeout_s: Silence after which a node counts as down (Slurm's default is 300).
        cluster_name: ClusterName.
        select_type: SelectType without ``select/``; with ``linear`` jobs get whole nodes.
        more: Further lines of slurm.conf, as a site may have them.
        submit_lua: job_submit.lua, with which a site changes or refuses jobs; empty for none.
        host_prefix: What a node's host name has before its name in Slurm.
        sibling_of: Number of another cluster whose munged and slurmdbd serve this one, too.
    """

    nodes: str = "node[1-3]"
    cpus_per_node: int = 8
    gpus_per_node: int = 4
    gpu_type: str = ""
    memory_mib: int = 16000
    grace_s: int = 30
    preempt_mode: Literal["REQUEUE", "CANCEL"] = "REQUEUE"
    send_user_signal: bool = False
    accounting: bool = True
    train_max_time_min: int | None = None
    short_max_time_min: int | None = 5
    job_requeue: bool = True
    cred_expire_s: int = 5
    kill_wait_s: int = 30
    slurmd_timeout_s: int = 300
    cluster_name: str = "testbed"
    select_type: Literal["cons_tres", "linear"] = "cons_tres"
    more: tuple[str, ...] = ()
    submit_lua: str = ""
    host_prefix: str = ""
    sibling_of: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Host names of the nodes in the order of their addresses."""
        return tuple(NodeSet(self.nodes))

    def to_dict(self) -> dict[str, Any]:
        """All choices, ready for JSON."""
        return dataclasses.asdict(self)
