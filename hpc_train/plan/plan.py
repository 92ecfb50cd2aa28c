"""The plan: what will happen, as pure data, and its JSON form in `plan.json`."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from hpc_train.codec import decode
from hpc_train.config.schema import (
    CheckpointConfig,
    ContainerConfig,
    NotifyConfig,
    PreflightConfig,
    RequeueConfig,
    WatchdogConfig,
)
from hpc_train.errors import HpcTrainError

PLAN_SCHEMA_VERSION = 1
Verb = Literal["fit", "test", "validate", "predict", "bench"]


@dataclass(frozen=True)
class Shape:
    """How many ranks, and where. `gpus_per_node` is 0 where the ranks run on CPUs."""

    nodes: int
    ranks_per_node: int
    gpus_per_node: int
    spares: int = 0

    @property
    def world_size(self) -> int:
        """Ranks over all nodes."""
        return self.nodes * self.ranks_per_node

    @property
    def ranks(self) -> str:
        """How many, in words: `1 rank`, `12 ranks`."""
        return f"{self.world_size} rank{'s' * (self.world_size > 1)}"


@dataclass(frozen=True)
class Batch:
    """How the global batch is split: global = micro * accumulate * world_size, exactly."""

    global_batch_size: int
    micro_batch_size: int  # samples a rank takes at once
    accumulate: int  # micro batches a rank adds up before an optimizer step


@dataclass(frozen=True)
class ObjectSpec:
    """A class by name, and its keyword arguments."""

    class_path: str
    init_args: dict[str, Any]


@dataclass(frozen=True)
class Training:
    """What a rank needs to build the model, the data and the Trainer."""

    model: ObjectSpec
    data: ObjectSpec
    trainer: dict[str, Any]  # Lightning's own arguments, without those that follow from the shape
    loggers: list[Any]  # "csv", "tensorboard", or {class_path, init_args}
    seed: int
    reproducible: bool


@dataclass(frozen=True)
class ScriptPlan:
    """A script that makes model, data and Trainer itself, in place of `Training`."""

    path: str  # from `workdir`
    args: list[str]
    launcher: Literal["srun", "torchrun", "none"] = "srun"
    on_stop: Literal["SIGTERM", "SIGUSR1", "KeyboardInterrupt", "exit"] = "SIGTERM"
    stop_grace_s: float = 60.0
    resume_when: str = ""  # from `workdir`, a pattern
    resume_args: list[str] = dataclasses.field(default_factory=list)
    may_take_no_steps: bool = False
    scale_lr: str = "none"  # linear, sqrt
    lr_ranks: int = 1  # ranks that its learning rates were chosen for
    warmup_steps: int = 0  # optimizer steps to the scaled rates


@dataclass(frozen=True)
class SlurmPlan:
    """What goes to sbatch. `options` keeps the order; a value of None is a bare flag."""

    options: list[tuple[str, str | None]]  # ("nodes", "3"), ("exclusive", None)
    cpus_per_rank: int | None
    signal_lead_s: int


@dataclass(frozen=True)
class ShellPlan:
    """The shell around Python on every node."""

    setup: list[str]  # complete lines: module load, activate, the user's own
    variables: dict[str, str]  # exported; never a secret
    passthrough: list[str]  # names that sbatch --export hands on
    python: str  # absolute path, or "python" where `setup` activates an environment
    own_from: int | None = None  # of `setup`, the first line that is one of env.setup

    def own_line(self, item: int) -> str:
        """An item of env.setup as it was written; empty where nobody can tell which that is."""
        own = self.setup[self.own_from :] if self.own_from is not None else []
        return own[item] if item < len(own) else ""


@dataclass(frozen=True, kw_only=True)
class RenderedFrom:
    """What a rendered script keeps of its config's files.

    Attributes:
        file: The user's own; from the folder that it was rendered in, where it lies in that.
        typed: Keys whose values were typed over the files.
        digests: Of each file's text, by its name.
    """

    file: str
    typed: list[str]
    digests: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run, decided. Everything after submission reads this and not the config."""

    name: str
    workdir: str  # where the user's modules are found; "." in a rendered script = its submit folder
    runs_dir: str
    config_hash: str  # of what makes the result: model, data, trainer, seed, global batch
    shape: Shape
    batch: Batch  # of zeros where a script has its own
    training: Training  # for a script, the seed alone
    slurm: SlurmPlan
    shell: ShellPlan
    checkpoint: CheckpointConfig
    requeue: RequeueConfig
    watchdog: WatchdogConfig
    preflight: PreflightConfig
    script: ScriptPlan | None = None
    container: ContainerConfig | None = None  # of the ranks; None = they run as the supervisor does
    verb: Verb = "fit"  # of Lightning's Trainer; bench: a fit of a few steps that are measured
    weights: str = ""  # absolute: what the model begins with, nothing else of it; "" = fresh
    weights_left_out: list[str] = field(default_factory=list)  # names or patterns of layers
    hosts: list[str] = field(default_factory=list)  # reached by ssh, where there is no scheduler
    notify: NotifyConfig = field(default_factory=NotifyConfig)
    rendered_from: RenderedFrom | None = None  # of a script that was written to be submitted later
    reopened_step: int | None = None  # where the run was over, before it was made longer
    schema_version: int = PLAN_SCHEMA_VERSION

    @property
    def insists_on_gpus(self) -> bool:
        """Whether the ranks refuse to train on CPUs; a script itself decides that."""
        takes_cpus = self.script or self.training.trainer.get("accelerator") == "auto"
        return bool(self.shape.gpus_per_node) and not takes_cpus

    def placed(self, workdir: str, runs_dir: str) -> Plan:
        """The same plan with its folders settled, both absolute."""
        return dataclasses.replace(self, workdir=workdir, runs_dir=runs_dir)

    def to_json(self) -> str:
        """The document that is `plan.json`, stable in its order."""
        document = dataclasses.asdict(self)
        for name in ("script", "container", "rendered_from"):
            if document[name] is None:
                del document[name]
        for name in ("hosts", "weights_left_out"):
            if not document[name]:
                del document[name]
        if not self.notify.urls_from:
            del document["notify"]
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, name: str = "plan.json") -> Plan:
        """Read what `to_json` wrote; `name` is for messages.

        Raises:
            HpcTrainError: when the text is no plan, or one of a newer hpc-train.
        """
        try:
            document = json.loads(text)
            version = document["schema_version"]
            if version != PLAN_SCHEMA_VERSION:
                raise ValueError(
                    f"schema_version {version}, this hpc-train reads {PLAN_SCHEMA_VERSION}"
                )
            return decode(cls, document)
        except (ValueError, KeyError, TypeError) as error:
            raise HpcTrainError(
                f"{name} cannot be read: {error}",
                "it was written by another version of hpc-train, or is damaged: submit again",
            ) from error
