"""What a node does while it trains: one JSON line every few seconds, for under 0.5 % of one CPU.

Rates are over the time since the sample before; the first line has none. What a node does not have,
or a driver does not tell, is left out of the line.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpc_train.preflight.inventory.cgroup import meminfo_bytes
from hpc_train.preflight.inventory.gpus import Nvml, load_nvml
from hpc_train.preflight.inventory.sysfs import Reader, read_counters
from hpc_train.preflight.prometheus_text import PrometheusFile
from hpc_train.runs.layout import RunDir

_MIB = 1024 * 1024
_SKIPPED_INTERFACES = re.compile(r"lo$|veth|docker|br-|virbr|cali|ifb|dummy")
_SKIPPED_DISKS = re.compile(r"loop|ram|zram|dm-|sr")
# nvml.h, nvmlClocksEventReason*: what keeps the clocks down. Idle and user settings are no trouble.
_THROTTLE = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
}
# In /sys/class/net/I/statistics.
_STATISTICS = {
    "rx": ("rx_bytes",),
    "tx": ("tx_bytes",),
    "errors": ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped"),
}
# Counters since boot, by (what kind of part, its name, what is counted).
Totals = dict[tuple[str, str, str], int]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One reading."""

    monotonic_s: float  # when, for rates
    totals: Totals = field(default_factory=dict)  # for the next sample's rates
    # What is written: `time`, `cpu_percent` (100 is all CPUs), `memory_used_mib`,
    # `memory_total_mib`, `cpus`, `load`, `disk_free_mib`, `disk_read_mib_s`, `disk_write_mib_s`,
    # `interfaces` (name -> rx_mib_s, tx_mib_s, errors), `links` (HCA:port -> rx_mib_s, tx_mib_s,
    # errors), `gpus` (index, use_percent, memory_mib, memory_total_mib, power_w, temperature_c,
    # sm_mhz, throttle)
    line: dict[str, Any] = field(default_factory=dict)


def sample(
    root: Path,
    previous: Sample | None,
    clock: Callable[[], float] = time.time,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    nvml: Nvml | None = None,
    disk: Path | None = None,
) -> Sample:
    """Return one reading of this node.

    Args:
        root: `/`, or the root of a made tree.
        previous: The reading before, for rates.
        clock: Seconds since the epoch.
        monotonic: Seconds that only go forward.
        nvml: An initialised pynvml; without it there are no GPUs in the line.
        disk: A folder whose file system's free space is told.
    """
    reader = Reader(root)
    now = monotonic()
    totals = {**_cpu(reader), **_interfaces(reader), **_links(reader), **_disks(reader)}
    line: dict[str, Any] = {"time": round(clock(), 3), **_memory(reader), **_cpus(reader)}
    line |= _load(reader)
    if previous is not None and now > previous.monotonic_s:
        line |= _rates(previous, now, totals)
    if disk is not None:
        stat = os.statvfs(disk)
        line["disk_free_mib"] = stat.f_bavail * stat.f_frsize // _MIB
    if nvml is not None:
        line["gpus"] = _gpus(nvml)
    return Sample(monotonic_s=now, totals=totals, line=line)


def _rates(previous: Sample, now: float, totals: Totals) -> dict[str, Any]:
    """Differences to the previous sample; a counter that was reset has no rate."""
    found: dict[str, Any] = {}
    change: Totals = {}
    for key, value in totals.items():
        before = previous.totals.get(key)
        if before is None or value < before:
            continue
        group, name, what = key
        change[key] = value - before
        rate = round((value - before) / _MIB / (now - previous.monotonic_s), 3)
        if group == "disk":
            found[f"disk_{what}_mib_s"] = rate
        elif group != "cpu":
            told = {what: value - before} if what == "errors" else {f"{what}_mib_s": rate}
            found.setdefault(group, {}).setdefault(name, {}).update(told)
    total = change.get(("cpu", "", "total"), 0)
    if total > 0:
        found["cpu_percent"] = round(100 * change.get(("cpu", "", "busy"), 0) / total, 1)
    return found


def _cpu(reader: Reader) -> Totals:
    first = (reader.text("/proc/stat", required=False) or "").partition("\n")[0].split()
    if len(first) < 6:
        return {}
    # user nice system idle iowait irq softirq steal; guest times are already inside user's.
    ticks = [int(item) for item in first[1:9]]
    busy = sum(ticks) - ticks[3] - ticks[4]
    return {("cpu", "", "total"): sum(ticks), ("cpu", "", "busy"): busy}


def _interfaces(reader: Reader) -> Totals:
    totals = {}
    for name in reader.names("/sys/class/net"):
        if _SKIPPED_INTERFACES.match(name):
            continue
        for what, files in _STATISTICS.items():
            paths = [f"/sys/class/net/{name}/statistics/{file}" for file in files]
            values = [reader.number(path, required=False) for path in paths]
            known = [value for value in values if value is not None]
            if known:
                totals["interfaces", name, what] = sum(known)
    return totals


def _links(reader: Reader) -> Totals:
    totals: Totals = {}
    for name, count in read_counters(reader).items():
        key = ("links", name.partition("/")[0], "errors")
        totals[key] = totals.get(key, 0) + count
    for hca in reader.names("/sys/class/infiniband"):
        for port in reader.names(f"/sys/class/infiniband/{hca}/ports"):
            base = f"/sys/class/infiniband/{hca}/ports/{port}/counters"
            for what, file in (("rx", "port_rcv_data"), ("tx", "port_xmit_data")):
                value = reader.number(f"{base}/{file}", required=False)
                if value is not None:
                    # Counted in units of four bytes (sysfs-class-infiniband).
                    totals["links", f"{hca}:{port}", what] = value * 4
    return totals


def _disks(reader: Reader) -> Totals:
    read = written = 0
    lines = (reader.text("/proc/diskstats", required=False) or "").splitlines()
    for line in lines:
        fields = line.split()
        # Whole disks alone: a partition is inside its disk (/sys/block lists no partitions).
        is_disk = len(fields) > 9 and reader.exists(f"/sys/block/{fields[2]}")
        if is_disk and not _SKIPPED_DISKS.match(fields[2]):
            read += int(fields[5]) * 512
            written += int(fields[9]) * 512
    return {("disk", "", "read"): read, ("disk", "", "write"): written} if lines else {}


def _memory(reader: Reader) -> dict[str, int]:
    total, free = meminfo_bytes(reader, "MemTotal"), meminfo_bytes(reader, "MemAvailable")
    if total is None or free is None:
        return {}
    return {"memory_used_mib": (total - free) // _MIB, "memory_total_mib": total // _MIB}


def _cpus(reader: Reader) -> dict[str, int]:
    text = reader.text("/proc/stat", required=False) or ""
    count = len(re.findall(r"^cpu\d", text, re.MULTILINE))
    return {"cpus": count} if count else {}


def _load(reader: Reader) -> dict[str, float]:
    text = reader.text("/proc/loadavg", required=False)
    return {"load": float(text.split()[0])} if text else {}


def _gpus(nvml: Nvml) -> list[dict[str, Any]]:
    try:
        return [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError:
        return []  # the driver has gone: the next line tries again


def _gpu(nvml: Nvml, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    found: dict[str, Any] = {"index": index}
    for name, ask in _QUESTIONS.items():
        try:
            found[name] = ask(nvml, handle)
        except nvml.NVMLError:
            continue  # this card does not tell
    return found


_QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "use_percent": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
    "memory_mib": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used // _MIB,
    "memory_total_mib": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).total // _MIB,
    "power_w": lambda nvml, gpu: round(nvml.nvmlDeviceGetPowerUsage(gpu) / 1000),
    "temperature_c": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(
        gpu, nvml.NVML_TEMPERATURE_GPU
    ),
    "sm_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    "throttle": lambda nvml, gpu: [
        name
        for bit, name in _THROTTLE.items()
        if nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu) & bit
    ],
}


def run(
    path: Path,
    interval_s: float,
    stop: threading.Event,
    *,
    root: Path = Path("/"),
    nvml: Nvml | None = None,
    prometheus: PrometheusFile | None = None,
) -> None:
    """Append a line to `path` every `interval_s` seconds until `stop` is set.

    Args:
        prometheus: Where the newest sample stands as well, while this runs.

    A full disk or a file system that is away loses lines and never ends the loop: monitoring must
    not be what stops a training.
    """
    previous: Sample | None = None
    while not stop.is_set():
        try:
            previous = sample(root, previous, nvml=nvml, disk=path.parent)
            _append(path, json.dumps(previous.line, separators=(",", ":")))
        except OSError as error:
            print(f"hpc-train monitor: {error}", file=sys.stderr)  # noqa: T201
        if prometheus is not None and previous is not None:
            prometheus.write(previous.line)
        stop.wait(interval_s)
    if prometheus is not None:
        prometheus.remove()


def _append(path: Path, text: str) -> None:
    # One write of one line: at worst a reader gets a torn last one.
    with path.open("a") as file:
        file.write(text + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM, or until the process that started this one has gone."""
    parser = argparse.ArgumentParser(prog="python -m hpc_train.preflight.monitor")
    parser.add_argument("--path", type=Path, required=True, help="the JSON lines go here")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between lines")
    parser.add_argument("--prometheus", default="", help="folder of the textfile collector")
    arguments = parser.parse_args(argv)
    if arguments.interval <= 0:
        parser.error("--interval: write a positive number of seconds")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    _end_with_parent(stop)
    prometheus = None
    if arguments.prometheus:
        of = RunDir(arguments.path.absolute().parents[1])
        os.umask(0o022)  # the node exporter is another user
        prometheus = PrometheusFile.of_run(Path(arguments.prometheus), of.run_id, of.name)
    run(arguments.path, arguments.interval, stop, nvml=load_nvml()[0], prometheus=prometheus)
    return 0


def _end_with_parent(stop: threading.Event) -> None:
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent and not stop.wait(5.0):
            pass
        stop.set()

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
