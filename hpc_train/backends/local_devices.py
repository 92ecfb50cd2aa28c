"""`--devices 0,2`: which GPUs of this machine the ranks get, by CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.backends.submit import detect_cluster
from hpc_train.errors import CheckError, UsageError
from hpc_train.plan.gpus_given import fewer_than_ranks
from hpc_train.plan.plan import Plan, Shape
from hpc_train.preflight.inventory.gpus import load_nvml, read_gpus
from hpc_train.preflight.inventory.inventory import Gpu
from hpc_train.slurm.own_job import check_own_job
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.gpus_here import gpus_here

VISIBLE = "CUDA_VISIBLE_DEVICES"


def check_place(plan: Plan, environ: Mapping[str, str]) -> None:
    """Refuse a training that could not begin where it is typed.

    Raises:
        CheckError: see `check_gpus_here`, `Allocation.from_env` and `check_own_job`.
    """
    if "SLURM_JOB_ID" not in environ:
        check_gpus_here(plan)
    elif not plan.hosts:  # over ssh no step is started
        Allocation.from_env(environ, plan.shape)
        check_own_job(environ, plan, is_rendered=False)


def check_gpus_here(
    plan: Plan, dev: Path = Path("/dev"), names: Sequence[str] | None = None
) -> None:
    """Refuse a training for GPUs that would start on this machine, which has none, or too few.

    Args:
        dev: Where NVIDIA's, WSL's and AMD's drivers have their files.
        names: Of the GPUs here, as of `gpus_here`, which is asked where they are not given.

    Raises:
        CheckError: the accelerator is not auto, which takes the CPUs then.
    """
    for_gpus = _line_for_gpus(plan)
    if for_gpus and not _has_gpu(dev):
        where, kind = for_gpus
        ranks = plan.shape.gpus_per_node
        raise CheckError(
            f"{where} asks for a {kind} on GPUs, and this machine has none",
            f"add script.accelerator=cpu to the command to train {ranks} rank{'s'[: ranks > 1]} on"
            " its CPUs, or submit where Slurm is",
        )
    wanted = plan.training.trainer.get("accelerator")
    if plan.insists_on_gpus and not _has_gpu(dev):
        said = f"is {wanted}" if wanted else "is not written, which means gpu"
        raise CheckError(
            f"this machine has no GPU, and trainer.accelerator {said}",
            "write trainer.accelerator=cpu to train on its CPUs, or submit where Slurm is",
        )
    if plan.insists_on_gpus or for_gpus:
        key = "script.accelerator" if plan.script else "trainer.accelerator"
        if few := _too_few(plan, names):
            raise CheckError(*fewer_than_ranks(*few, key))


def _too_few(plan: Plan, names: Sequence[str] | None = None) -> tuple[int, int] | None:
    """The ranks of one node and the GPUs here, where these are fewer; None where none is known.

    One node alone: each may be a machine of its own, on which this is typed.
    """
    ranks = plan.shape.gpus_per_node
    if plan.hosts or ranks < 2:
        return None
    count = len(gpus_here(os.environ) if names is None else names)
    return (ranks, count) if 0 < count < ranks else None


def notes_here(
    plan: Plan, environ: Mapping[str, str], dev: Path = Path("/dev"), *, is_followed: bool = False
) -> list[str]:
    """What to know of a training that is to start on this machine, or from it on hosts by ssh.

    Whether it can have GPUs, and what a script reads of Slurm's or MPI's that no rank has.

    Args:
        environ: Of this process, which the ranks inherit.
        is_followed: What the ranks say is shown; those of a config say it themselves.
    """
    on_devices = [] if plan.hosts else _notes_on_devices(plan, dev, is_followed=is_followed)
    return [*on_devices, *_notes_on_script(plan, environ), *_notes_on_spawns(plan, dev)]


def _notes_on_devices(plan: Plan, dev: Path, *, is_followed: bool) -> list[str]:
    gpus = plan.shape.gpus_per_node
    if not gpus or plan.insists_on_gpus:
        return []
    if _has_gpu(dev):
        few = _too_few(plan) if plan.script and not _line_for_gpus(plan) else None
        return [": ".join(fewer_than_ranks(*few, "script.accelerator"))] if few else []
    if plan.script is None:
        said = "this machine has no GPU: trains on its CPUs (trainer.accelerator: auto)"
        return [] if is_followed else [said]
    if gpus < 2 or _line_for_gpus(plan):  # one is the default, and says nothing of what it takes
        return []
    return [f"this machine has no GPU: the script's {gpus} ranks are on its CPUs"]


def _notes_on_script(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    if plan.script is None:
        return []
    from hpc_train.config.meant_words.launcher_variables import notes_on_variables
    from hpc_train.config.python_text.script_tree import script_tree

    path, ranks = plan.script.path, plan.shape.world_size
    tree = script_tree(Path(plan.workdir or ".") / path)
    known = {*environ, *plan.shell.variables}
    return [*notes_on_variables(path, tree, known, ranks=ranks)] if tree else []


def _notes_on_spawns(plan: Plan, dev: Path) -> list[str]:
    """Of a script that starts a rank for each GPU here; where it is for CPUs, its load has told."""
    gpus = plan.shape.gpus_per_node
    if plan.script is None or plan.script.launcher != "none" or not gpus or plan.hosts:
        return []
    from hpc_train.config.python_text.script_tree import script_tree
    from hpc_train.config.scripts.counted_gpus import notes_without_gpus

    tree = None if _has_gpu(dev) else script_tree(Path(plan.workdir or ".") / plan.script.path)
    why = "this machine has no GPU"
    return [*notes_without_gpus(plan.script.path, tree, ranks=gpus, why=why)] if tree else []


def _line_for_gpus(plan: Plan) -> tuple[str, str] | None:
    """`FILE:LINE` of a script's Trainer or Fabric, and which it is, where all are for GPUs."""
    if plan.script is None or not plan.shape.gpus_per_node:
        return None
    from hpc_train.config.scripts.script_file import line_for_gpus

    line, kind = line_for_gpus(Path(plan.workdir or ".") / plan.script.path) or (0, "")
    return (f"{plan.script.path}:{line}", kind) if line else None


def _has_gpu(dev: Path) -> bool:
    return any(next(dev.glob(name), None) for name in ("nvidia[0-9]*", "dxg", "kfd"))


def read_devices(text: str) -> tuple[int, ...]:
    """The numbers in `0,2`.

    Raises:
        UsageError: something else stands there, or a number twice.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        on_cpu = "leave --devices out, and write trainer.accelerator=cpu"
        hint = on_cpu if text.strip().lower() == "cpu" else "write --devices 0,2"
        raise UsageError(f"--devices {text!r} is no list of numbers", hint)
    numbers = tuple(map(int, parts))
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"--devices {text} names a GPU twice", "a rank has a GPU of its own")
    return numbers


def flags_for_devices(text: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags with the shape that follows from the GPUs in `text`, where none was typed."""
    devices = read_devices(text)
    nodes = flags.get("nodes") or 1
    given = flags.get("gpus")
    if len(devices) != nodes * (given or len(devices) // nodes):
        raise UsageError(
            f"--devices names {len(devices)} GPUs for {nodes} x {given or '?'} ranks",
            "leave --gpus and --nodes out, or name as many GPUs",
        )
    return {**flags, "nodes": nodes, "gpus": len(devices) // nodes}


def use_devices(
    text: str, shape: Shape, environ: MutableMapping[str, str], cluster: str | None
) -> None:
    """Have every rank that is started from here see these GPUs alone.

    Args:
        cluster: `slurm` or `local`; None finds it by itself.

    Raises:
        UsageError: the run is Slurm's, whose jobs are given their GPUs.
        CheckError: a GPU is not here, or the training is for CPUs.
    """
    devices = read_devices(text)
    if (cluster or detect_cluster()) == "slurm":
        raise UsageError(
            "--devices chooses GPUs of this machine; on Slurm each job is given its own, which it"
            " counts from 0",
            f"write --gpus {len(devices)}, or --cluster local",
        )
    if not shape.gpus_per_node:
        raise CheckError(
            "--devices chooses GPUs, and trainer.accelerator is cpu, which uses none",
            "leave --devices out",
        )
    nvml, state = load_nvml()
    gpus = () if nvml is None else read_gpus(nvml, environ)
    if not gpus:
        why = "no GPU is visible here" if state == "ok" else f"no GPU is found here (NVML: {state})"
        on_cpu = "to train on the CPU leave --devices out and write trainer.accelerator=cpu"
        raise CheckError(f"--devices: {why}", f"{on_cpu}; hpc-train doctor says what is here")
    environ[VISIBLE] = check_devices(devices, gpus, environ.get(VISIBLE))


def check_devices(devices: Sequence[int], gpus: Sequence[Gpu], visible: str | None) -> str:
    """What CUDA_VISIBLE_DEVICES has to be. Pure.

    Args:
        devices: Numbers as nvidia-smi shows them, or places in `visible`, as torch counts them.
        gpus: Those that this process may use.
        visible: CUDA_VISIBLE_DEVICES of the shell, if it is set.

    Raises:
        CheckError: a number is none of these.
    """
    entries = [entry.strip() for entry in (visible or "").split(",") if entry.strip()]
    # By UUID, since CUDA counts by speed unless CUDA_DEVICE_ORDER says otherwise (CUDA C++
    # Programming Guide, "CUDA Environment Variables").
    names = dict(enumerate(entries)) or {gpu.index: gpu.uuid or str(gpu.index) for gpu in gpus}
    missing = [str(number) for number in devices if number not in names]
    if missing:
        what = f"{VISIBLE}={visible}" if entries else "this machine"
        known = ", ".join(map(str, names))
        raise CheckError(f"--devices: {what} has no GPU {', '.join(missing)}", f"it has {known}")
    return ",".join(names[number] for number in devices)
