"""What the control groups (version 2) and the kernel let a process have: cgroups(7), proc(5)."""

from __future__ import annotations

import re

from hpc_train.preflight.inventory.sysfs import Reader


def _groups(reader: Reader) -> list[str]:
    """Return this process's group and its parents: the tightest limit of all is what counts."""
    folders = []
    for line in (reader.text("/proc/self/cgroup", required=False) or "").splitlines():
        if line.startswith("0::"):
            folder = "/sys/fs/cgroup" + line[3:].rstrip("/")
            while folder != "/sys/fs":
                folders.append(folder)
                folder = folder.rpartition("/")[0]
    return folders


def cpu_quota(reader: Reader) -> float | None:
    """Return the CPUs' worth of time that the groups grant, None without a limit."""
    quotas = []
    for folder in _groups(reader):
        quota, _, period = (reader.text(f"{folder}/cpu.max", required=False) or "").partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def cpus_allowed(reader: Reader) -> int | None:
    """Return the number of CPUs that this process may run on (its affinity)."""
    status = reader.text("/proc/self/status", required=False) or ""
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    if match is None:
        return None
    ends = [part.partition("-") for part in match.group(1).split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def memory_max_bytes(reader: Reader) -> int | None:
    """Return the tightest limit of the groups, or the machine's memory if that is less."""
    limits = [_bytes(reader, f"{folder}/memory.max") for folder in _groups(reader)]
    return min(
        (n for n in (*limits, meminfo_bytes(reader, "MemTotal")) if n is not None), default=None
    )


def memory_available_bytes(reader: Reader) -> int | None:
    """Return what is free now: of the machine, and of every group that has a limit."""
    free = [meminfo_bytes(reader, "MemAvailable")]
    for folder in _groups(reader):
        limit = _bytes(reader, f"{folder}/memory.max")
        used = _bytes(reader, f"{folder}/memory.current") or 0
        free += [limit - used] if limit is not None else []
    return min((n for n in free if n is not None), default=None)


def _bytes(reader: Reader, path: str) -> int | None:
    text = reader.text(path, required=False) or ""
    return int(text) if text.isdigit() else None  # `max` is no limit


def meminfo_bytes(reader: Reader, name: str) -> int | None:
    """Return a line of /proc/meminfo, such as `MemTotal`."""
    text = reader.text("/proc/meminfo", required=False) or ""
    match = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None
