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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.preflight.inventory.gpus import Nvml, load_nvml
from hpc_train.preflight.inventory.sysfs import Reader, read_counters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Sample", "run", "sample"]

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


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One reading."""

    monotonic_s: float  # when, for rates
    # Counters since boot by name, for the next sample's rates
    totals: dict[str, int] = field(default_factory=dict)
    # What is written: `time`, `cpu_percent` (100 is all CPUs), `memory_used_mib`,
    # `memory_total_mib`, `load`, `disk_free_mib`, `disk_read_mib_s`, `disk_write_mib_s`,
    # `interfaces` (name -> rx_mib_s, tx_mib_s, errors), `links` (HCA:port -> rx_mib_s, tx_mib_s,
    # errors), `gpus` (index, use_percent, memory_mib, power_w, temperature_c, sm_mhz, throttle)
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
    totals = {
        **_cpu_totals(reader),
        **_interface_totals(reader),
        **_link_totals(reader),
        **_disk_totals(reader),
    }
    rates = _Rates(previous, now, totals)
    line: dict[str, Any] = {"time": round(clock(), 3), **_memory(reader), **_load(reader)}
    if (busy := rates.cpu_percent()) is not None:
        line["cpu_percent"] = busy
    line |= rates.group("disk", one=True)
    if disk is not None:
        stat = os.statvfs(disk)
        line["disk_free_mib"] = stat.f_bavail * stat.f_frsize // _MIB
    for name, key in (("interfaces", "net"), ("links", "link")):
        if group := rates.group(key):
            line[name] = group
    if nvml is not None:
        line["gpus"] = _gpus(nvml)
    return Sample(monotonic_s=now, totals=totals, line=line)


class _Rates:
    """Differences to the previous sample; a counter that was reset has no rate."""

    def __init__(self, previous: Sample | None, now: float, totals: dict[str, int]) -> None:
        before = previous.totals if previous else {}
        self._seconds = now - previous.monotonic_s if previous else 0.0
        self._change = {
            name: value - before[name]
            for name, value in totals.items()
            if name in before and value >= before[name]
        }

    def cpu_percent(self) -> float | None:
        total = self._change.get("cpu/total", 0)
        if total <= 0:
            return None
        return round(100 * self._change.get("cpu/busy", 0) / total, 1)

    def group(self, kind: str, *, one: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._seconds <= 0:
            return found
        for key, change in self._change.items():
            group, _, rest = key.partition("/")
            if group != kind:
                continue
            name, _, what = rest.rpartition("/")
            value = change if what == "errors" else round(change / _MIB / self._seconds, 3)
            field_name = what if what == "errors" else f"{what}_mib_s"
            if one:
                found[f"{kind}_{field_name}"] = value
            else:
                found.setdefault(name, {})[field_name] = value
        return found


def _cpu_totals(reader: Reader) -> dict[str, int]:
    first = (reader.text("/proc/stat", required=False) or "").partition("\n")[0].split()
    if len(first) < 6:
        return {}
    # user nice system idle iowait irq softirq steal; guest times are already inside user's.
    ticks = [int(item) for item in first[1:9]]
    return {"cpu/total": sum(ticks), "cpu/busy": sum(ticks) - ticks[3] - ticks[4]}


def _interface_totals(reader: Reader) -> dict[str, int]:
    totals = {}
    for name in reader.names("/sys/class/net"):
        if _SKIPPED_INTERFACES.match(name):
            continue
        base = f"/sys/class/net/{name}/statistics"
        for what, files in (
            ("rx", ("rx_bytes",)),
            ("tx", ("tx_bytes",)),
            ("errors", ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped")),
        ):
            values = [reader.number(f"{base}/{file}", required=False) for file in files]
            known = [value for value in values if value is not None]
            if known:
                totals[f"net/{name}/{what}"] = sum(known)
    return totals


def _link_totals(reader: Reader) -> dict[str, int]:
    totals: dict[str, int] = {}
    for key, count in read_counters(reader).items():
        name = f"link/{key.partition('/')[0]}/errors"
        totals[name] = totals.get(name, 0) + count
    for hca in reader.names("/sys/class/infiniband"):
        for port in reader.names(f"/sys/class/infiniband/{hca}/ports"):
            base = f"/sys/class/infiniband/{hca}/ports/{port}/counters"
            for what, file in (("rx", "port_rcv_data"), ("tx", "port_xmit_data")):
                value = reader.number(f"{base}/{file}", required=False)
                if value is not None:
                    # Counted in units of four bytes (sysfs-class-infiniband).
                    totals[f"link/{hca}:{port}/{what}"] = value * 4
    return totals


def _disk_totals(reader: Reader) -> dict[str, int]:
    read = written = 0
    lines = (reader.text("/proc/diskstats", required=False) or "").splitlines()
    for line in lines:
        fields = line.split()
        # Whole disks alone: a partition is inside its disk (/sys/block lists no partitions).
        is_disk = len(fields) > 9 and reader.exists(f"/sys/block/{fields[2]}")
        if is_disk and not _SKIPPED_DISKS.match(fields[2]):
            read += int(fields[5]) * 512
            written += int(fields[9]) * 512
    return {"disk//read": read, "disk//write": written} if lines else {}


def _memory(reader: Reader) -> dict[str, int]:
    text = reader.text("/proc/meminfo", required=False) or ""
    total = re.search(r"^MemTotal:\s+(\d+)", text, re.MULTILINE)
    free = re.search(r"^MemAvailable:\s+(\d+)", text, re.MULTILINE)
    if total is None or free is None:
        return {}
    kib = int(total.group(1)), int(free.group(1))
    return {"memory_used_mib": (kib[0] - kib[1]) // 1024, "memory_total_mib": kib[0] // 1024}


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
) -> None:
    """Append a line to `path` every `interval_s` seconds until `stop` is set.

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
        stop.wait(interval_s)


def _append(path: Path, text: str) -> None:
    # One write of one line: a reader meets at worst a torn last one.
    with path.open("a") as file:
        file.write(text + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM, or until the process that started this one has gone."""
    parser = argparse.ArgumentParser(prog="python -m hpc_train.preflight.monitor")
    parser.add_argument("--path", type=Path, required=True, help="the JSON lines go here")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between lines")
    arguments = parser.parse_args(argv)
    if arguments.interval <= 0:
        parser.error("--interval: write a positive number of seconds")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    _end_with_parent(stop)
    run(arguments.path, arguments.interval, stop, nvml=load_nvml()[0])
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
