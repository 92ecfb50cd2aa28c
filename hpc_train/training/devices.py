"""Which device a rank trains on, and what the machine lets it use: CPUs, memory, precision.

The choices are pure over facts; `see_devices` and `see_host` collect the facts of this process.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.config.scripts.script_trainers import of_accelerator
from hpc_train.config.trainer_args import ACCELERATORS, NOT_ON_A_CPU, full_precision
from hpc_train.errors import CheckError, ConfigError
from hpc_train.plan.gpus_given import fewer_than_ranks
from hpc_train.plan.world import World
from hpc_train.preflight.inventory.cgroup import cpu_quota, memory_available_bytes
from hpc_train.preflight.inventory.sysfs import Reader

OF_A_CONFIG, OF_A_SCRIPT = "trainer.accelerator", "script.accelerator"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_WHO_SETS = "unset it where it was set: env.setup, the shell or its start-up file"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MAX_WORKERS = 8  # beyond that, one rank's loader is rarely what a step waits for
_PINNED_MIN_MIB = 2048  # free host memory a rank; pinned pages cannot be swapped or reclaimed


@dataclass(frozen=True, kw_only=True)
class DevicesSeen:
    """What torch and the node show of GPUs to this process.

    Attributes:
        capabilities: CUDA compute capability of each visible GPU, by index.
        uuids: The same for their UUIDs, as NVML writes them without the `GPU-`.
        cuda_build: CUDA version torch was built for; None for a CPU build.
        device_files: Whether /dev/nvidia0 and so on are there.
        driver: Version text of the kernel driver; empty where none is loaded.
        visible: CUDA_VISIBLE_DEVICES; None where it is not set.
    """

    torch_version: str
    cuda_build: str | None
    capabilities: tuple[tuple[int, int], ...] = ()
    uuids: tuple[str, ...] = ()
    device_files: bool = False
    driver: str = ""
    visible: str | None = None


@dataclass(frozen=True, kw_only=True)
class Device:
    """Where one rank trains.

    Attributes:
        kind: cuda or cpu.
        index: Of the GPU among those this process sees; None on the CPU.
        own_only: The process sees one GPU, its own (--gpus-per-task, --gpu-bind).
        note: What rank 0 has to say aloud about the choice; empty for nothing.
    """

    kind: str
    index: int | None = None
    own_only: bool = False
    uuid: str = ""
    capability: tuple[int, int] | None = None
    note: str = ""

    @property
    def backend(self) -> str:
        """The process group's backend for this device."""
        return "nccl" if self.kind == "cuda" else "gloo"


@dataclass(frozen=True)
class Shared:
    """What the ranks of one machine have together."""

    gpus: int
    ranks: int


@dataclass(frozen=True, kw_only=True)
class HostSeen:
    """What the node gives this process; affinity and quotas count, not what is built in."""

    affinity_cpus: int
    quota_cpus: float | None  # of the control group; None without a limit
    available_mib: int


@dataclass(frozen=True, kw_only=True)
class LoaderSettings:
    """Arguments of torch's DataLoader where the user's DataModule leaves them at their defaults."""

    num_workers: int
    pin_memory: bool
    persistent_workers: bool


def choose_device(
    wanted: str,
    *,
    given: bool,
    seen: DevicesSeen,
    local_rank: int,
    ranks_per_node: int,
    key: str = OF_A_CONFIG,
    shared: Shared | None = None,
) -> Device:
    """Decide where a rank trains.

    Args:
        wanted: The config's `trainer.accelerator`, or what a script asks for: gpu, cuda, cpu, auto.
        given: Whether GPUs were given to the job, see `gpus_were_given`.
        key: The key that has it train on CPUs, `OF_A_CONFIG` or `OF_A_SCRIPT`.
        shared: Of a machine that the launcher has looked at; there `auto` takes the CPU where
            GPUs are fewer than ranks, as no two ranks can share one (NCCL, "Duplicate GPU").

    Raises:
        CheckError: GPUs are wanted and cannot be had, or there are fewer than ranks. Never a
            silent training on the CPU.
        ConfigError: an accelerator that hpc-train does not start.
    """
    if wanted not in ACCELERATORS:
        said = "trainer.accelerator:" if key == OF_A_CONFIG else "the script's accelerator"
        write = "write gpu, cpu or auto" if key == OF_A_CONFIG else of_accelerator(wanted)
        raise ConfigError(f"{said} {wanted!r} is not supported", write)
    if wanted == "cpu":
        return Device(kind="cpu")
    if not seen.capabilities:
        if wanted != "auto":
            asks = "config asks for" if key == OF_A_CONFIG else "script is to train on"
            raise CheckError(f"the {asks} GPUs and torch sees none", _why_no_gpu(seen, key))
        return Device(kind="cpu", note=_why_on_cpu(seen, key, given=given))
    if shared and shared.gpus < shared.ranks:
        what, fix = fewer_than_ranks(shared.ranks, shared.gpus, key)
        if wanted != "auto":
            raise CheckError(what, fix)
        fit = fix.partition(";")[0]
        return Device(kind="cpu", note=f"{what}: trains on the CPU (accelerator: auto); {fit}")
    return _gpu_of_rank(seen, local_rank, ranks_per_node)


def _gpu_of_rank(seen: DevicesSeen, local_rank: int, ranks_per_node: int) -> Device:
    count = len(seen.capabilities)
    own_only = count == 1 and ranks_per_node > 1
    if not own_only and count < ranks_per_node:
        raise CheckError(
            f"{ranks_per_node} ranks a node, and this process sees {count} GPUs",
            f"ask for {ranks_per_node} GPUs a node, or set slurm.gpus_per_node: {count}; "
            "CUDA_VISIBLE_DEVICES may be set too narrow in env.variables or a shell profile",
        )
    index = 0 if own_only else local_rank
    note = ""
    if count > ranks_per_node:
        note = f"WARNING: {count} GPUs visible, {ranks_per_node} used: the others stay idle"
    return Device(
        kind="cuda",
        index=index,
        own_only=own_only,
        uuid=seen.uuids[index] if seen.uuids else "",
        capability=seen.capabilities[index],
        note=note,
    )


def _why_on_cpu(seen: DevicesSeen, key: str, *, given: bool) -> str:
    """What to say where `auto` takes the CPU: loud where GPUs were given."""
    if given:
        what = "WARNING: GPUs were given and torch sees none, training on the CPU"
        return f"{what} (accelerator: auto): {_why_no_gpu(seen, key)}"
    if seen.device_files:
        return f"torch sees no GPU: trains on the CPU (accelerator: auto): {_why_no_gpu(seen, key)}"
    return "the node shows no GPU: trains on the CPU (accelerator: auto); gpu would refuse that"


def _why_no_gpu(seen: DevicesSeen, key: str) -> str:
    """The likely cause, by what the node shows, and the fix."""
    if seen.cuda_build is None:
        return (
            f"torch {seen.torch_version} is a build without CUDA: install one with it "
            f"(pytorch.org/get-started), or write {key}: cpu"
        )
    if not seen.device_files:
        return (
            "no /dev/nvidia*: the node has no GPU or no driver, the job has no GPU (its cgroup "
            "hides them), or the container was started without --nv (Apptainer) or --gpus (Docker)"
        )
    if not seen.driver:
        return "the NVIDIA kernel driver is not loaded: tell the administrators, exclude the node"
    if seen.visible == "":
        return f"{_VISIBLE} is empty, which hides all GPUs: {_WHO_SETS}"
    driver = (
        f"torch is built for CUDA {seen.cuda_build} and the driver is {seen.driver}: it may be "
        "too old for it (nvidia-smi there tells the CUDA it serves)"
    )
    if seen.visible is None:
        return driver
    named = f"{_VISIBLE} is {seen.visible}: is that a GPU of this job (nvidia-smi -L lists them)?"
    return f"{named} {_WHO_SETS}. Else {driver}"


def check_precision(
    precision: str | int | None, device: Device, *, of_script: bool = False
) -> None:
    """Refuse a precision that the device does badly or not at all.

    bf16 needs compute capability 8.0 (below, it is emulated: slower than fp32), FP8 8.9
    (docs.nvidia.com/cuda/cuda-c-programming-guide, compute capabilities); fp16 has no autocast on
    CPUs that is worth having, and Lightning silently makes it bf16.

    Args:
        of_script: A script's Trainer or Fabric asks for it, and no config.

    Raises:
        CheckError: with what to write instead.
    """
    name = full_precision(precision)
    key = "the script's precision" if of_script else "trainer.precision:"
    form = 'write precision="{}"' if of_script else "write precision: {}"
    if name.startswith("transformer-engine"):
        _check_transformer_engine(device, key, form.format("bf16-mixed"))
    elif device.kind == "cpu" and name in NOT_ON_A_CPU:
        told = '"32-true"' if of_script else "32-true"
        said = f"{key} {name} does not work on a CPU"
        raise CheckError(said, f"{form.format('bf16-mixed')} or {told}")
    elif device.capability and name.startswith("bf16") and device.capability < (8, 0):
        major, minor = device.capability
        other = form.format(name.removeprefix("bf").replace("true", "mixed"))
        raise CheckError(
            f"{key} {name} needs compute capability 8.0, this GPU has {major}.{minor}",
            f"{other}, or ask for newer GPUs (slurm.gpu_type, slurm.constraint)",
        )


def _check_transformer_engine(device: Device, key: str, other: str) -> None:
    if device.capability is None or device.capability < (8, 9):
        said = f"{key} transformer-engine (FP8) needs a GPU of compute capability 8.9"
        raise CheckError(said, other)
    if importlib.util.find_spec("transformer_engine") is None:
        said = f"{key} transformer-engine needs the package transformer_engine"
        raise CheckError(said, f"pip install transformer-engine[pytorch], or {other}")


def ranks_on_host(world: World) -> int:
    """Ranks that share this machine: those of its node, or all where nodes are simulated on it."""
    is_one_machine = world.launcher == "torchrun" and world.master_addr in _LOOPBACK
    return world.world_size if is_one_machine else world.ranks_per_node


def cpus_per_rank(environ: Mapping[str, str], host: HostSeen, ranks: int) -> int:
    """CPUs that one rank may keep busy, at least 1.

    Under srun the affinity is the task's own where Slurm binds tasks (TaskPlugin=task/affinity or
    task/cgroup) and the whole node's where it does not; SLURM_CPUS_PER_TASK tells in the second
    case, and only where --cpus-per-task was given (srun(1)).

    Args:
        ranks: That share this host, see `ranks_on_host`.
    """
    usable = min(float(host.affinity_cpus), host.quota_cpus or float("inf"))
    by_task = environ.get("SLURM_CPUS_PER_TASK", "")
    if by_task.isdigit():
        return max(1, int(min(int(by_task), usable)))
    on_node = environ.get("SLURM_CPUS_ON_NODE", "")
    if "SLURM_PROCID" in environ and on_node.isdigit():
        # Bound or not, a task's fair share is never more than this.
        return max(1, int(min(usable, int(on_node) / ranks)))
    return max(1, int(usable / ranks))


def _workers(cpus: int, device: Device) -> int:
    if device.kind == "cuda":
        return min(cpus - 1, _MAX_WORKERS)  # one CPU is the training process's own
    return min(cpus // 4, _MAX_WORKERS)  # on the CPU the workers take from the training itself


def threads_per_rank(cpus: int, device: Device) -> int:
    """Threads for torch's operators on the CPU: what the data workers leave."""
    return max(1, cpus - _workers(cpus, device))


def loader_settings(world: World, device: Device, cpus: int, host: HostSeen) -> LoaderSettings:
    """Settings for a DataLoader whose DataModule does not set them.

    Args:
        cpus: CPUs of this rank, see `cpus_per_rank`.
    """
    workers = _workers(cpus, device)
    free_mib = host.available_mib // ranks_on_host(world)
    return LoaderSettings(
        num_workers=workers,
        pin_memory=device.kind == "cuda" and free_mib >= _PINNED_MIN_MIB,
        persistent_workers=workers > 0,
    )


def see_devices(environ: Mapping[str, str], root: Path = Path("/")) -> DevicesSeen:
    """Look at GPUs as torch does in this process; imports torch, makes no CUDA context."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    properties = [torch.cuda.get_device_properties(index) for index in range(count)]
    driver = root / "proc/driver/nvidia/version"
    return DevicesSeen(
        torch_version=torch.__version__,
        cuda_build=torch.version.cuda,
        capabilities=tuple((item.major, item.minor) for item in properties),
        uuids=tuple(str(getattr(item, "uuid", "")) for item in properties),
        device_files=any((root / "dev").glob("nvidia[0-9]*")),
        driver=_driver_version(driver.read_text()) if driver.exists() else "",
        visible=environ.get(_VISIBLE),
    )


def _driver_version(text: str) -> str:
    """`NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug ...` -> 535.104.05."""
    words = text.splitlines()[0].split() if text.strip() else []
    return next((word for word in words if word.count(".") >= 1 and word[0].isdigit()), "unknown")


def see_host(root: Path = Path("/")) -> HostSeen:
    """Look at the CPUs and the memory that this process may use."""
    reader = Reader(root)
    return HostSeen(
        affinity_cpus=len(os.sched_getaffinity(0)),
        quota_cpus=cpu_quota(reader),
        available_mib=(memory_available_bytes(reader) or 0) // 2**20,
    )


def lightning_accelerator(device: Device, base: type) -> Any:
    """What Lightning is given as `accelerator`.

    Where this rank can see one GPU alone while its node has as many as ranks, it is an object:
    Lightning takes parallel_devices[local_rank] as the rank's device and the list's length as the
    ranks of a node (DDPStrategy.root_device, num_processes), so the list names it each time.

    Args:
        base: CUDAAccelerator of the package that the script uses.
    """
    if not device.own_only:
        return device.kind
    parse = {"parse_devices": staticmethod(lambda devices: [0] * int(devices))}
    return type("OwnGpu", (base,), parse)()
