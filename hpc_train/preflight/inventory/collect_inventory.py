"""The inventory of this node: no other node is asked, nothing is changed, only files are read.

The one exception is NVML, which is a library; without it the GPUs are unknown, not absent.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hpc_train.plan.gpus_given import gpus_on_node
from hpc_train.preflight.inventory.cgroup import cpu_quota, cpus_allowed, memory_max_bytes
from hpc_train.preflight.inventory.gpus import Nvml, load_nvml, read_gpus, with_nearest_hca
from hpc_train.preflight.inventory.interfaces import read_interfaces
from hpc_train.preflight.inventory.inventory import Clock, Limits, NodeInventory, Verbs
from hpc_train.preflight.inventory.sysfs import Reader, read_hcas

_LIBRARY = "libibverbs.so.1"
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/usr/local/lib",
)


def node_name(env: Mapping[str, str]) -> str:
    """Return the name the scheduler uses for this node, or the host name's first part."""
    return env.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]


def collect_inventory(
    root: Path,
    env: Mapping[str, str],
    clock: Callable[[], float] = time.time,
    *,
    nvml: Nvml | None = None,
    node: str | None = None,
) -> NodeInventory:
    """Return what this node has. Takes under 0.3 s and never raises for what it cannot read.

    Args:
        root: `/`, or the root of a made tree (then sysfs, proc and dev lie below it).
        env: Environment of the step, for what Slurm gave.
        clock: Seconds since the epoch.
        nvml: An initialised pynvml; None loads it where the root is `/`.
        node: Name to report; None takes the scheduler's.
    """
    started = time.monotonic()
    reader = Reader(root)
    hcas = read_hcas(reader)
    nvml_state = "ok"
    if nvml is None:
        nvml, nvml_state = load_nvml() if str(root) == "/" else (None, "absent")
    gpus = () if nvml is None else with_nearest_hca(read_gpus(nvml, env), hcas, reader)
    return NodeInventory(
        node=node or node_name(env),
        hostname=reader.text("/proc/sys/kernel/hostname", required=False) or socket.gethostname(),
        boot_id=reader.text("/proc/sys/kernel/random/boot_id", required=False),
        hcas=hcas,
        interfaces=read_interfaces(reader),
        verbs=_verbs(reader),
        limits=_limits(reader),
        clock=Clock(unix_s=clock()),
        gpus=gpus,
        gpus_expected=gpus_on_node(env),
        nvml=nvml_state,
        container=_container(reader, env),
        look_s=time.monotonic() - started,
        unreadable=tuple(reader.unreadable),
    )


def _verbs(reader: Reader) -> Verbs:
    """Return whether a process here can reach the HCAs, and the HCAs the GPUs' memory."""
    devices = tuple(n for n in reader.names("/dev/infiniband") if n.startswith("uverbs"))
    openable = all(_opens(reader, f"/dev/infiniband/{name}") for name in devices)
    return Verbs(
        devices=devices,
        openable=openable if devices else None,
        library=_library(reader),
        gpudirect=tuple(_gpudirect(reader)),
    )


def _opens(reader: Reader, path: str) -> bool:
    try:
        os.close(os.open(reader.path(path), os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        reader.note(path, os.strerror(error.errno or 0))
        return False
    return True


def _library(reader: Reader) -> bool:
    if str(reader.root) != "/":
        return any(reader.exists(f"{folder}/{_LIBRARY}") for folder in _LIBRARY_FOLDERS)
    import ctypes  # a tenth of the probe's start

    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def _gpudirect(reader: Reader) -> list[str]:
    found = []
    if reader.exists("/sys/module/nvidia_peermem/version"):
        found.append("nvidia_peermem")
    if reader.names("/sys/kernel/mm/memory_peers"):
        found.append("memory_peers")
    # The open kernel module exports DMA-BUF; it says so by its license string.
    if "Dual MIT/GPL" in (reader.text("/sys/module/nvidia/license", required=False) or ""):
        found.append("dmabuf")
    return found


def _limits(reader: Reader) -> Limits:
    """Return what this very process may use (inside a Slurm step this is what the ranks get)."""
    return Limits(
        memlock_bytes=_limit(reader.text("/proc/self/limits") or "", "Max locked memory"),
        shm_total_bytes=_shm_bytes(reader),
        cpus=cpus_allowed(reader),
        cpu_quota=cpu_quota(reader),
        memory_max_bytes=memory_max_bytes(reader),
    )


def _limit(text: str, name: str) -> int | None:
    match = re.search(rf"^{name}\s+(\S+)", text, re.MULTILINE)
    if match is None:
        return None
    return -1 if match.group(1) == "unlimited" else int(match.group(1))


def _shm_bytes(reader: Reader) -> int | None:
    try:
        stat = os.statvfs(reader.path("/dev/shm"))
    except OSError as error:
        reader.note("/dev/shm", os.strerror(error.errno or 0))
        return None
    return stat.f_blocks * stat.f_frsize


def _container(reader: Reader, env: Mapping[str, str]) -> str | None:
    if env.get("APPTAINER_CONTAINER") or env.get("SINGULARITY_CONTAINER"):
        return "apptainer"
    if env.get("ENROOT_ROOTFS") or reader.exists("/etc/enroot"):
        return "enroot"
    if reader.exists("/.dockerenv"):
        return "docker"
    return "podman" if reader.exists("/run/.containerenv") else None
