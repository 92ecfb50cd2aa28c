"""The text of the cluster's configuration files: pure."""

from __future__ import annotations

import dataclasses

from tests.cluster.layout import Layout
from tests.cluster.spec import ClusterSpec

__all__ = ["cgroup_conf", "gres_conf", "hosts", "slurm_conf", "slurmdbd_conf"]


def slurm_conf(spec: ClusterSpec, layout: Layout) -> str:
    """slurm.conf; every line that is not Slurm's default is there for one machine or for speed."""
    return "\n".join([*_daemons(spec, layout), *_behaviour(spec), *_nodes(spec, layout)]) + "\n"


def _daemons(spec: ClusterSpec, layout: Layout) -> list[str]:
    shared = dataclasses.replace(layout, index=spec.sibling_of or layout.index)
    accounting = (
        [
            "AccountingStorageType=accounting_storage/slurmdbd",
            f"AccountingStorageHost={shared.accounting_address}",
            f"AccountingStoragePort={shared.accounting_port}",
            # With munge the "password" is the socket (slurm.conf's manual page).
            f"AccountingStoragePass={shared.munge_socket}",
            "AccountingStorageTRES=gres/gpu",
        ]
        if spec.accounting
        else ["AccountingStorageType=accounting_storage/none"]
    )
    return [
        f"ClusterName={spec.cluster_name}",
        f"SlurmctldHost={layout.controller}({layout.controller_address})",
        f"SlurmctldPort={layout.controller_port}",
        "SlurmdPort=6818",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={shared.munge_socket},cred_expire={spec.cred_expire_s}",
        f"StateSaveLocation={layout.spool}/slurmctld",
        f"SlurmdSpoolDir={layout.spool}/%n",
        f"SlurmctldPidFile={layout.root}/slurmctld.pid",
        f"SlurmdPidFile={layout.root}/slurmd.%n.pid",
        f"SlurmctldLogFile={layout.logs}/slurmctld.log",
        f"SlurmdLogFile={layout.logs}/slurmd.%n.log",
        "SlurmctldDebug=info",
        "SlurmdDebug=info",
        "MailProg=/bin/true",
        "ReturnToService=2",
        *accounting,
    ]


def _behaviour(spec: ClusterSpec) -> list[str]:
    user_signal = ["SlurmctldParameters=preempt_send_user_signal"] if spec.send_user_signal else []
    return [
        # Nodes share the machine's CPUs and claim more than there are.
        "SlurmdParameters=config_overrides",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=task=5",
        # As on clusters with InfiniBand: the node's own limit counts, not the login node's.
        "PropagateResourceLimitsExcept=MEMLOCK",
        f"SelectType=select/{spec.select_type}",
        f"SelectTypeParameters={'CR_Memory' if spec.select_type == 'linear' else 'CR_Core_Memory'}",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0",
        "PreemptType=preempt/partition_prio",
        f"PreemptMode={spec.preempt_mode}",
        *user_signal,
        f"JobRequeue={int(spec.job_requeue)}",
        # A ping that nobody answers takes this long, twice, before a node can count as down.
        f"MessageTimeout={min(10, max(2, spec.slurmd_timeout_s // 2))}",
        f"KillWait={spec.kill_wait_s}",
        f"SlurmdTimeout={spec.slurmd_timeout_s}",
        "SlurmctldTimeout=30",
        "InactiveLimit=0",
        *(["GresTypes=gpu"] if spec.gpus_per_node else []),
        *(["JobSubmitPlugins=lua"] if spec.submit_lua else []),
        *spec.more,
    ]


def _nodes(spec: ClusterSpec, layout: Layout) -> list[str]:
    kind = f"{spec.gpu_type}:" if spec.gpu_type else ""
    gres = f" Gres=gpu:{kind}{spec.gpus_per_node}" if spec.gpus_per_node else ""
    # Written out: Slurm's own reader refuses brackets with a text after the last one.
    names = ",".join(spec.names)
    nodes = [
        f"NodeName={name} NodeHostname={spec.host_prefix}{name} NodeAddr={layout.address(number)}"
        for number, name in enumerate(spec.names, start=1)
    ]
    train = (
        f"PartitionName=train Nodes={names} Default=YES PriorityTier=1"
        f" PreemptMode={spec.preempt_mode} GraceTime={spec.grace_s}"
        f" MaxTime={_minutes(spec.train_max_time_min)} State=UP"
    )
    urgent = f"PartitionName=urgent Nodes={names} PriorityTier=10 PreemptMode=OFF State=UP"
    partitions = [train, urgent]
    if spec.short_max_time_min is not None:
        partitions.append(
            f"PartitionName=short Nodes={names} PriorityTier=1 PreemptMode=OFF"
            f" MaxTime={_minutes(spec.short_max_time_min)} State=UP"
        )
    size = f"CPUs={spec.cpus_per_node} RealMemory={spec.memory_mib}{gres}"
    return [
        f"NodeName=DEFAULT {size} State=UNKNOWN",
        *nodes,
        f"PartitionName=DEFAULT DefMemPerCPU={spec.memory_mib // spec.cpus_per_node}",
        *partitions,
    ]


def _minutes(limit_min: int | None) -> str:
    return "UNLIMITED" if limit_min is None else str(limit_min)


def gres_conf(spec: ClusterSpec, layout: Layout) -> str:
    """gres.conf: the same made devices serve every node."""
    if not spec.gpus_per_node:
        return ""
    kind = f" Type={spec.gpu_type}" if spec.gpu_type else ""
    last = spec.gpus_per_node - 1
    numbers = f"[0-{last}]" if last else "0"
    return f"NodeName={','.join(spec.names)} Name=gpu{kind} File={layout.devices}/nvidia{numbers}\n"


def cgroup_conf(version: tuple[int, ...]) -> str:
    """cgroup.conf: nothing is constrained; CgroupAutomount would touch the host.

    Slurm 24.11 knows no CgroupAutomount, and a slurmd without a cgroup tree of its own needs
    CgroupPlugin=disabled (cgroup.conf's manual page of each).
    """
    first = "CgroupPlugin=disabled" if version >= (24,) else "CgroupAutomount=no"
    return f"{first}\nConstrainCores=no\nConstrainRAMSpace=no\nConstrainDevices=no\n"


def slurmdbd_conf(layout: Layout) -> str:
    """slurmdbd.conf; Slurm wants the file readable by its user alone.

    The socket of MariaDB cannot be given here: the client library reads MYSQL_UNIX_PORT.
    """
    lines = [
        "AuthType=auth/munge",
        f"AuthInfo=socket={layout.munge_socket}",
        f"DbdHost={layout.controller}",
        f"DbdAddr={layout.accounting_address}",
        f"DbdPort={layout.accounting_port}",
        "SlurmUser=root",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        "StorageUser=root",
        "StorageLoc=slurm_acct_db",
        f"LogFile={layout.logs}/slurmdbd.log",
        f"PidFile={layout.root}/slurmdbd.pid",
        "DebugLevel=info",
    ]
    return "\n".join(lines) + "\n"


def hosts(spec: ClusterSpec, layout: Layout) -> str:
    """/etc/hosts of every node: all nodes and the controller by their address on eth0."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    for number, name in enumerate(spec.names, start=1):
        names = [f"{spec.host_prefix}{name}", *([name] if spec.host_prefix else [])]
        lines.append(" ".join([layout.address(number), *names]))
    lines.append(f"{layout.controller_address} {layout.controller}")
    return "\n".join(lines) + "\n"
