"""One look at this node: no other node is asked, nothing is changed, nothing but files is read.

The one exception is NVML, which is a library; without it the GPUs are unknown, not absent.
"""

from __future__ import annotations

import os
import re
import socket
import time
from typing import TYPE_CHECKING

from hpc_train.preflight.inventory.gpus import (
    Nvml,
    expected_gpus,
    load_nvml,
    read_gpus,
    with_nearest_hca,
)
from hpc_train.preflight.inventory.interfaces import read_interfaces
from hpc_train.preflight.inventory.inventory import Clock, Limits, NodeInventory, Verbs
from hpc_train.preflight.inventory.sysfs import Reader, read_hcas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["collect_inventory", "node_name", "read_limits", "read_verbs"]

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
        verbs=read_verbs(reader),
        limits=read_limits(reader),
        clock=Clock(unix_s=clock(), uptime_s=_uptime(reader)),
        gpus=gpus,
        gpus_expected=expected_gpus(env),
        nvml=nvml_state,
        container=_container(reader, env),
        look_s=time.monotonic() - started,
        unreadable=tuple(reader.unreadable),
    )


def _uptime(reader: Reader) -> float | None:
    text = reader.text("/proc/uptime", required=False)
    return float(text.split()[0]) if text else None


def read_verbs(reader: Reader) -> Verbs:
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
    import ctypes  # a tenth of the probe's start, for the nodes that have it as a question at all

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


def read_limits(reader: Reader) -> Limits:
    """Return what this very process may use (inside a Slurm step this is what the ranks get)."""
    limits = reader.text("/proc/self/limits") or ""
    shm_total, shm_free = _shm(reader)
    group = _cgroup(reader)
    return Limits(
        memlock_bytes=_limit(limits, "Max locked memory"),
        stack_bytes=_limit(limits, "Max stack size"),
        shm_total_bytes=shm_total,
        shm_free_bytes=shm_free,
        cpus=_cpus(reader),
        cpu_quota=_cpu_quota(reader, group),
        memory_max_bytes=_memory_max(reader, group),
    )


def _limit(text: str, name: str) -> int | None:
    match = re.search(rf"^{name}\s+(\S+)", text, re.MULTILINE)
    if match is None:
        return None
    return -1 if match.group(1) == "unlimited" else int(match.group(1))


def _shm(reader: Reader) -> tuple[int | None, int | None]:
    try:
        stat = os.statvfs(reader.path("/dev/shm"))
    except OSError as error:
        reader.note("/dev/shm", os.strerror(error.errno or 0))
        return None, None
    return stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize


def _cpus(reader: Reader) -> int | None:
    status = reader.text("/proc/self/status", required=False) or ""
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    if match is None:
        return None
    total = 0
    for part in match.group(1).split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def _cgroup(reader: Reader) -> str | None:
    """Return the folder of this process's cgroup (v2), or None."""
    for line in (reader.text("/proc/self/cgroup", required=False) or "").splitlines():
        if line.startswith("0::"):
            return "/sys/fs/cgroup" + line[3:].rstrip("/")
    return None


def _up(group: str | None) -> list[str]:
    """Return the group and its parents: the tightest limit on the way up is the one that counts."""
    folders = []
    while group and group != "/sys/fs":
        folders.append(group)
        group = group.rpartition("/")[0]
    return folders


def _cpu_quota(reader: Reader, group: str | None) -> float | None:
    quotas = []
    for folder in _up(group):
        quota, _, period = (reader.text(f"{folder}/cpu.max", required=False) or "").partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            quotas.append(int(quota) / int(period))
    return min(quotas) if quotas else None


def _memory_max(reader: Reader, group: str | None) -> int | None:
    found = []
    for folder in _up(group):
        text = reader.text(f"{folder}/memory.max", required=False) or ""
        if text.isdigit():
            found.append(int(text))
    match = re.search(
        r"^MemTotal:\s+(\d+) kB", reader.text("/proc/meminfo", required=False) or "", re.MULTILINE
    )
    if match:
        found.append(int(match.group(1)) * 1024)
    return min(found) if found else None


def _container(reader: Reader, env: Mapping[str, str]) -> str | None:
    if env.get("APPTAINER_CONTAINER") or env.get("SINGULARITY_CONTAINER"):
        return "apptainer"
    if env.get("ENROOT_ROOTFS") or reader.exists("/etc/enroot"):
        return "enroot"
    if reader.exists("/.dockerenv"):
        return "docker"
    if reader.exists("/run/.containerenv"):
        return "podman"
    return None
