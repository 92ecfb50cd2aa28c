"""The config, key by key. Plain dataclasses with defaults; OmegaConf types them in `load`.

Beside these keys a file may hold `defaults` (or `base`), other files it builds on, and
`cluster_profile`, the name of a site profile in configs/clusters.

A key's comment says its unit and what it becomes. The plan keeps the sections `checkpoint`,
`requeue`, `watchdog`, `preflight` and `notify` as they are, so that a default has one home: here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Optional

from hpc_train.config.sections import Section

REQUIRED: Any = "???"  # OmegaConf's mark of a key that has to be given

# OmegaConf reads these annotations at run time.


@dataclass
class SlurmConfig(Section):
    """The shape and what sbatch takes; a key that is not here goes into `extra`."""

    nodes: int = 1  # nodes of the training
    gpus_per_node: int = 1  # on an accelerator: cpu this is the number of ranks a node
    spares: int = 0  # nodes asked for beyond `nodes`, to replace one that the preflight refuses
    gpu_type: Optional[str] = None  # a100 -> --gres=gpu:a100:4
    cpus_per_gpu: Optional[int] = None  # CPUs a rank
    mem: Optional[str] = None  # a node, with unit: 64G
    mem_per_gpu: Optional[str] = None  # the same for each GPU
    mem_per_cpu: Optional[str] = None  # the same for each CPU; one of the three
    time: Optional[str] = None  # of one job, quoted: "1-02:30:00", "2:30:00", "30" (minutes)
    account: Optional[str] = None  # who pays
    partition: Optional[str] = None  # several by commas; the default one of the site if null
    qos: Optional[str] = None  # quality of service
    constraint: Optional[str] = None  # features that each node has: a100&ib
    nodelist: Optional[str] = None  # nodes that have to be in it: node[1-3]
    exclude: Optional[str] = None  # nodes that stay out of it
    reservation: Optional[str] = None  # name of a reservation
    licenses: Optional[str] = None  # name:count
    dependency: Optional[str] = None  # afterok:12345
    begin: Optional[str] = None  # not before: now+1hour, tomorrow, 16:00, YYYY-MM-DDT16:00
    comment: Optional[str] = None  # for the accounting
    mail_user: Optional[str] = None  # address for mails of Slurm
    mail_type: Optional[str] = None  # which mails; END,FAIL where there is an address
    # true: no other job on the nodes; user: no other user's; mcs, topo: as sbatch(1) has them
    exclusive: Literal[True, False, "user", "mcs", "topo"] = False
    signal_lead_s: int = 120  # seconds before the time limit; at least one step and one save
    extra: dict[str, Any] = field(default_factory=dict)  # any other sbatch option: {nice: 100}


@dataclass
class EnvConfig(Section):
    """What has to be true of the shell before Python starts, on every node."""

    modules: list[str] = field(default_factory=list)  # module load ...
    conda: Optional[str] = None  # name or prefix of an environment
    venv: Optional[str] = None  # folder with bin/activate
    variables: dict[str, str] = field(default_factory=dict)  # exported with these values
    # names of variables whose values come from the shell that submits
    passthrough: list[str] = field(default_factory=list)
    setup: list[str] = field(
        default_factory=list
    )  # shell lines, or `|` and the lines below; ${...} is the shell's


@dataclass
class ScriptConfig(Section):
    """A training script of the user's, run as it is; it builds model, data and Trainer itself."""

    path: Optional[str] = None  # from the folder that the command is typed in; null = no script
    args: list[str] = field(default_factory=list)  # its own; they never pass a shell
    accelerator: Literal["auto", "cpu"] = "auto"  # cpu: gpus_per_node is the number of ranks a node
    # srun: a task a GPU; torchrun: a task a node; none: a process a node, which starts its ranks
    launcher: Literal["srun", "torchrun", "none"] = "srun"
    # how a script without a Trainer is told to save and leave, on all ranks at the same step
    on_stop: Literal["SIGTERM", "SIGUSR1", "KeyboardInterrupt", "exit"] = "SIGTERM"
    stop_grace_s: float = 60.0  # seconds that it has for it
    # {when: "out/ckpt.pt", args: [--resume]}: added from the second attempt on, when it is there
    resume: dict[str, Any] = field(default_factory=dict)
    may_take_no_steps: bool = False  # true = ending well without one optimizer step is a success
    # what its learning rates become when the global batch grows with the ranks: docs/scripts.md
    scale_lr: Literal["none", "linear", "sqrt"] = "none"
    lr_ranks: int = 1  # ranks that its learning rates were chosen for
    warmup_steps: int = 500  # optimizer steps to the scaled rates; 0 = at once


@dataclass
class ContainerConfig(Section):
    """The image that the ranks run in; hpc-train's supervisor and Slurm's commands stay outside."""

    # a .sif or a folder for apptainer, a .sqsh or REGISTRY#IMAGE for pyxis; null = no container
    image: Optional[str] = None
    runtime: Literal["apptainer", "singularity", "pyxis"] = "apptainer"  # what starts it
    # source, source:target or source:target:ro; the working folder and the runs are there anyway
    mounts: list[str] = field(default_factory=list)
    nv: bool = True  # apptainer's --nv, where the job has GPUs
    python: str = "python"  # in the image
    mount_hpc_train: bool = True  # the one that submits; false = the image has its own, the same
    options: list[str] = field(default_factory=list)  # others of apptainer exec, or of srun


@dataclass
class SnapshotConfig(Section):
    """Whether the job runs from a copy of the code, which no later edit changes."""

    mode: Literal["none", "git"] = "none"  # git = what git tracks; `snapshot: git` is short for it
    untracked: bool = False  # files that git neither tracks nor ignores as well
    link: list[str] = field(default_factory=list)  # folders shared with the project: [data]
    max_mb: int = 500  # of the copy; more is refused, with the largest files


@dataclass
class CheckpointConfig(Section):
    """When to save, what to keep."""

    every_n_steps: Optional[int] = None  # optimizer steps
    every_n_minutes: Optional[float] = 10.0  # minutes; null = by steps alone
    keep_last: int = 3  # newest checkpoints that stay
    keep_every_n_steps: Optional[int] = None  # these are kept for good
    asynchronous: bool = True  # training stalls only for the copy to host memory
    verify_on_load: bool = True  # compare every hash before it is used


@dataclass
class RequeueConfig(Section):
    """When to go on after an attempt ended early."""

    enabled: bool = True  # false = one attempt, whatever ends it
    max_attempts: Optional[int] = None  # over the whole run; null = no limit but progress
    budget: int = 3  # node failures, network failures and hangs without progress in between
    max_excluded_nodes: int = 4  # blamed nodes that are left out at once
    exclude_for_h: float = 24.0  # hours; a blamed node is forgotten after this


@dataclass
class WatchdogConfig(Section):
    """How long nothing may move. Null = learned from the step times, not below `floor_s`."""

    enabled: bool = True  # false = a hang is not noticed
    start_timeout_s: float = 900.0  # seconds until the first step
    step_timeout_s: Optional[float] = None  # seconds without a step; null = learned
    floor_s: float = 60.0  # seconds; no learned limit is below
    save_timeout_s: float = 900.0  # seconds without a move in a save
    validation_timeout_s: Optional[float] = None  # the same in a validation; null = learned
    heartbeat_s: float = 1.0  # seconds between two signs of life of a rank


@dataclass
class PreflightConfig(Section):
    """How carefully to look before training."""

    mode: Literal["off", "quick", "full"] = "quick"  # `preflight: off` is short for it
    budget_s: float = 20.0  # seconds for the pairs of nodes; more waits longer for nodes as well
    allow_degraded: bool = True  # train on a network that is slow but works
    strict: bool = False  # a check that could not run counts as failed
    thresholds: dict[str, float] = field(default_factory=dict)  # {min_gbps: 10}: docs/preflight.md
    network: dict[str, Any] = field(default_factory=dict)  # the site's: clusters/example.yaml
    memory_of_bad_nodes_h: float = 24.0  # hours for which other runs leave out a bad node
    monitor_interval_s: float = 5.0  # seconds; 0 = no node monitor
    # each node's folder for the node exporter's textfile collector; null = no file there
    prometheus_dir: Optional[str] = None


@dataclass
class NotifyConfig(Section):
    """Who is told how a run goes, by Apprise; an address may hold a secret, so it is not here."""

    # the name of a variable, or a file (~/.config/hpc-train/notify): one of Apprise's URLs a line
    urls_from: Optional[str] = None
    # what is told; preemptions: the third in a day, straggler: a node unlike the others
    events: list[str] = field(
        default_factory=lambda: ["start", "end", "failure", "preemptions", "straggler"]
    )
    timeout_s: float = 10.0  # seconds that sending may take, beside the run; then it is given up


@dataclass
class Config(Section):
    """One training, as the user wrote it."""

    name: str = REQUIRED  # of the run; its folder, and Slurm's job name
    global_batch_size: int = 0  # samples an optimizer step, over all ranks; a script has its own
    # {class_path, init_args} or {_target_, ...}: a LightningModule
    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)  # the same: a LightningDataModule
    script: ScriptConfig = field(default_factory=ScriptConfig)  # in place of model, data, trainer
    init_from: Optional[str] = None  # begin with the weights of a run or a checkpoint's path
    # layers, by name or pattern, that take no weights from there and begin fresh: [head, "*.bias"]
    init_leave_out: list[str] = field(default_factory=list)
    micro_batch_size: Optional[int] = None  # at most this many samples a rank at once
    seed: int = 0  # of parameters, order of samples and augmentation
    reproducible: bool = True  # deterministic algorithms, cuDNN benchmark off
    trainer: dict[str, Any] = field(default_factory=dict)  # Lightning's own Trainer arguments
    # csv, tensorboard, wandb, mlflow, or {class_path, init_args}
    loggers: list[Any] = field(default_factory=lambda: ["csv", "tensorboard"])
    slurm: SlurmConfig = field(default_factory=SlurmConfig)
    env: EnvConfig = field(default_factory=EnvConfig)
    container: ContainerConfig = field(default_factory=ContainerConfig)
    snapshot: SnapshotConfig = field(default_factory=SnapshotConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    requeue: RequeueConfig = field(default_factory=RequeueConfig)
    watchdog: WatchdogConfig = field(default_factory=WatchdogConfig)
    preflight: PreflightConfig = field(default_factory=PreflightConfig)
    notify: NotifyConfig = field(default_factory=NotifyConfig)
    # machines that ssh reaches, for `hpc-train launch`: [a, me@b, c:2222]
    hosts: list[str] = field(default_factory=list)
    runs_dir: str = "runs"  # folder of all runs, on the shared file system
    # {key: [values]} or {seed: range(3)}: one job array over all combinations (docs/sweeps.md)
    sweep: dict[str, Any] = field(default_factory=dict)
