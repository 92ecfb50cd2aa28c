"""The newest sample of a node for the node exporter's textfile collector.

The format: prometheus.io/docs/instrumenting/exposition_formats; the collector reads `*.prom` of its
folder and wants files that appear whole (github.com/prometheus/node_exporter, Textfile Collector).
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.runs.atomic import write_text

_MIB = 1024 * 1024
_ABANDONED_S = 3600.0  # a monitor that was killed leaves its file to the next one on the node
# Where in a sample, which label its parts have: word of the sample -> name, factor, meaning.
_OF_NODE = {
    "time": ("sample_time_seconds", 1.0, "When the sample was taken, since the epoch"),
    "cpu_percent": ("cpu_ratio", 0.01, "CPUs in use, of all"),
    "memory_used_mib": ("memory_used_bytes", _MIB, "Memory in use"),
    "memory_total_mib": ("memory_bytes", _MIB, "Memory of the node"),
    "load": ("load1", 1.0, "Load average over a minute"),
    "disk_free_mib": ("run_disk_free_bytes", _MIB, "Free where the run directory is"),
    "disk_read_mib_s": ("disk_read_bytes_per_second", _MIB, "Read from local disks"),
    "disk_write_mib_s": ("disk_written_bytes_per_second", _MIB, "Written to local disks"),
}
_OF_GPU = {
    "use_percent": ("gpu_use_ratio", 0.01, "Time in which the GPU did anything"),
    "memory_mib": ("gpu_memory_used_bytes", _MIB, "Memory of the GPU in use"),
    "memory_total_mib": ("gpu_memory_bytes", _MIB, "Memory of the GPU"),
    "power_w": ("gpu_power_watts", 1.0, "Power of the GPU"),
    "temperature_c": ("gpu_temperature_celsius", 1.0, "Temperature of the GPU"),
    "sm_mhz": ("gpu_clock_hertz", 1e6, "Clock of the GPU's processors"),
}
_OF_PORT = {
    "rx_mib_s": ("network_receive_bytes_per_second", _MIB, "Received by an interface or HCA"),
    "tx_mib_s": ("network_transmit_bytes_per_second", _MIB, "Sent by an interface or HCA"),
}
_Row = tuple[str, str, str]  # name, meaning, sample


def exposition(line: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """A sample as text: each metric once with its meaning, then all of its values.

    Args:
        line: As the monitor writes it.
        labels: Of every value.
    """
    rows = [*_rows(_OF_NODE, line, labels)]
    for gpu in line.get("gpus", ()):
        rows += _rows(_OF_GPU, gpu, {**labels, "gpu": str(gpu.get("index", ""))})
    for port, rates in {**line.get("interfaces", {}), **line.get("links", {})}.items():
        rows += _rows(_OF_PORT, rates, {**labels, "port": port})
    text = ""
    for name, meaning in dict.fromkeys((name, meaning) for name, meaning, _ in rows):
        text += f"# HELP {name} {meaning}.\n# TYPE {name} gauge\n"
        text += "".join(sample for other, _, sample in rows if other == name)
    return text


def _rows(
    metrics: Mapping[str, tuple[str, float, str]],
    values: Mapping[str, Any],
    labels: Mapping[str, str],
) -> Iterator[_Row]:
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    for word, (short, factor, meaning) in metrics.items():
        if isinstance(value := values.get(word), (int, float)):
            name = f"hpc_train_{short}"
            yield name, meaning, f"{name}{{{told}}} {value * factor:.15g}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@dataclass
class PrometheusFile:
    """The file of one run on this node; trouble with it is told once and does no harm."""

    path: Path
    labels: Mapping[str, str]
    told: bool = False

    @classmethod
    def of_run(cls, folder: Path, run: str, name: str) -> PrometheusFile:
        """The file in the collector's folder; files of this user that nobody writes are removed."""
        with contextlib.suppress(OSError):
            for left in folder.glob("hpc-train-*.prom"):
                stat = left.stat()
                if stat.st_uid == os.getuid() and time.time() - stat.st_mtime > _ABANDONED_S:
                    left.unlink()
        return cls(folder / f"hpc-train-{run}.prom", {"name": name, "run": run})

    def write(self, line: Mapping[str, Any]) -> None:
        """Replace the file by this sample."""
        try:
            write_text(self.path, exposition(line, self.labels), durable=False)
        except OSError as error:
            if not self.told:
                print(f"hpc-train monitor: preflight.prometheus_dir: {error}", file=sys.stderr)  # noqa: T201
            self.told = True

    def remove(self) -> None:
        """Take it away: the run has left this node, and old numbers are not its state."""
        with contextlib.suppress(OSError):
            self.path.unlink()
