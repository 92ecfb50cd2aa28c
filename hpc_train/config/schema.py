"""The config, key by key. Plain dataclasses with defaults; OmegaConf types them in `load`.

Beside these keys a file may hold `defaults` (or `base`), other files it builds on, and
`cluster_profile`, the name of a site profile in configs/clusters.

A key's comment says its unit and what it becomes. The plan keeps the sections `checkpoint`,
`requeue`, `watchdog` and `preflight` as they are, so that a default has one home: this file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Optional

__all__ = [
    "CheckpointConfig",
    "Config",
    "EnvConfig",
    "PreflightConfig",
    "RequeueConfig",
    "SlurmConfig",
    "WatchdogConfig",
]

REQUIRED: Any = "???"  # OmegaConf's mark of a key that has to be given

# OmegaConf reads these annotations at run time.


@dataclass
class SlurmConfig:
    """The shape and what sbatch takes; a key that is not here goes into `extra`."""

    nodes: int = 1
    gpus_per_node: int = 1  # on an accelerator: cpu this is the number of ranks a node
    spares: int = 0  # nodes asked for beyond `nodes`, to replace one that the preflight refuses
    gpu_type: Optional[str] = None  # a100 -> --gres=gpu:a100:4
    cpus_per_gpu: Optional[int] = None  # CPUs a rank
    mem: Optional[str] = None  # a node, with unit: 64G
    mem_per_gpu: Optional[str] = None
    mem_per_cpu: Optional[str] = None
    time: Optional[str] = None  # quoted: "1-02:30:00", "2:30:00", "30" (minutes)
    account: Optional[str] = None
    partition: Optional[str] = None
    qos: Optional[str] = None
    constraint: Optional[str] = None
    nodelist: Optional[str] = None
    exclude: Optional[str] = None
    reservation: Optional[str] = None
    licenses: Optional[str] = None
    dependency: Optional[str] = None
    begin: Optional[str] = None
    comment: Optional[str] = None
    mail_user: Optional[str] = None
    mail_type: Optional[str] = None
    exclusive: bool = False
    signal_lead_s: int = 120  # before the time limit; at least one step and one save
    extra: dict[str, Any] = field(default_factory=dict)  # any other sbatch option: {nice: 100}


@dataclass
class EnvConfig:
    """What has to be true of the shell before Python starts, on every node."""

    modules: list[str] = field(default_factory=list)  # module load ...
    conda: Optional[str] = None  # name or prefix of an environment
    venv: Optional[str] = None  # folder with bin/activate
    variables: dict[str, str] = field(default_factory=dict)  # exported with these values
    passthrough: list[str] = field(
        default_factory=list
    )  # names whose values come from the submitter
    setup: list[str] = field(default_factory=list)  # shell lines; ${...} in them is the shell's


@dataclass
class CheckpointConfig:
    """When to save, what to keep."""

    every_n_steps: Optional[int] = None  # optimizer steps
    every_n_minutes: Optional[float] = 10.0
    keep_last: int = 3
    keep_every_n_steps: Optional[int] = None  # these are kept for good
    asynchronous: bool = True  # training stalls only for the copy to host memory
    verify_on_load: bool = True


@dataclass
class RequeueConfig:
    """When to go on after an attempt ended early."""

    enabled: bool = True
    max_attempts: Optional[int] = None  # over the whole run; null = no limit but progress
    budget: int = 3  # node failures, network failures and hangs without progress in between
    max_excluded_nodes: int = 4
    exclude_for_h: float = 24.0  # a blamed node is forgotten after this


@dataclass
class WatchdogConfig:
    """How long nothing may move. Null = learned from the step times, not below `floor_s`."""

    enabled: bool = True
    start_timeout_s: float = 900.0
    step_timeout_s: Optional[float] = None
    floor_s: float = 60.0
    save_timeout_s: float = 900.0
    validation_timeout_s: Optional[float] = None
    heartbeat_s: float = 1.0


@dataclass
class PreflightConfig:
    """How carefully to look before training."""

    mode: Literal["off", "quick", "full"] = "quick"
    budget_s: float = 20.0
    allow_degraded: bool = True  # train on a network that is slow but works
    strict: bool = False  # a check that could not run counts as failed
    thresholds: dict[str, float] = field(default_factory=dict)  # network.findings.Thresholds
    network: dict[str, Any] = field(default_factory=dict)  # the site: network.profile.SiteProfile
    memory_of_bad_nodes_h: float = 24.0
    monitor_interval_s: float = 5.0  # 0 = no node monitor


@dataclass
class Config:
    """One training, as the user wrote it."""

    name: str = REQUIRED
    global_batch_size: int = REQUIRED  # samples an optimizer step, over all ranks
    model: dict[str, Any] = (
        REQUIRED  # {class_path, init_args} or {_target_, ...}: a LightningModule
    )
    data: dict[str, Any] = REQUIRED  # the same: a LightningDataModule
    micro_batch_size: Optional[int] = None  # at most this many samples a rank at once
    seed: int = 0
    reproducible: bool = True  # deterministic algorithms, cuDNN benchmark off
    trainer: dict[str, Any] = field(default_factory=dict)  # Lightning's own Trainer arguments
    loggers: list[Any] = field(default_factory=lambda: ["csv", "tensorboard"])
    slurm: SlurmConfig = field(default_factory=SlurmConfig)
    env: EnvConfig = field(default_factory=EnvConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    requeue: RequeueConfig = field(default_factory=RequeueConfig)
    watchdog: WatchdogConfig = field(default_factory=WatchdogConfig)
    preflight: PreflightConfig = field(default_factory=PreflightConfig)
    runs_dir: str = "runs"
