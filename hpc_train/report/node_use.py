"""What the nodes did while they trained, from the monitor's files; who differs from the others.

A week of 64 nodes is gigabytes. So a file is not read through: lines are taken at even distances,
and what is said of a node is said of these.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat

SAMPLES = 300  # lines of a node; a file with fewer is read whole
LINE_BYTES = 16_384  # no line is longer: eight GPUs and eight HCAs are 2,000
LATELY_BYTES = 256 * 1024  # of a file's end: ten minutes of a node with eight GPUs
LEAST_LINES = 5  # of a node, before it is held against others while it trains
NEW_S = 60.0  # of a monitor that runs; it writes every few seconds
LEAST_NODES = 3  # of two nobody can tell which is the odd one
DEVIATIONS = 4.0  # from the median, in standard deviations by the median absolute deviation
LEAST_DIFFERENCE = 0.15  # of the median: less is no news, however alike the others are


@dataclass(frozen=True)
class Measure:
    """A column of the nodes' table: its title, and the value of one line of the monitor's file."""

    title: str
    unit: str
    how: str  # mean or peak


MEASURES = {
    "gpu_percent": Measure("GPU", "%", "mean"),
    "gpu_memory_gib": Measure("GPU memory", "GiB", "peak"),
    "power_w": Measure("power", "W", "mean"),
    "temperature_c": Measure("GPU temp", "°C", "peak"),
    "throttled_percent": Measure("slowed", "%", "mean"),
    "cpu_percent": Measure("CPU", "%", "mean"),
    "memory_gib": Measure("memory", "GiB", "peak"),
    "network_mib_s": Measure("network", "MiB/s", "mean"),
    "disk_mib_s": Measure("disk", "MiB/s", "mean"),
}


@dataclass(frozen=True, kw_only=True)
class NodeUse:
    """One node over the run.

    Attributes:
        samples: Lines that were looked at.
        values: By the name of a measure; one that the node does not tell is absent.
        outliers: Measures in which it differs from the other nodes.
        cpus: It has; None where the monitor did not tell.
        memory_gib: It has.
        gpu_memory_gib: One of its GPUs has.
    """

    node: str
    samples: int
    values: dict[str, float]
    outliers: tuple[str, ...] = ()
    cpus: int | None = None
    memory_gib: float | None = None
    gpu_memory_gib: float | None = None


def read_nodes(run: RunDir) -> list[NodeUse]:
    """Every node that the monitor has written of, in the order of their names."""
    try:
        files = sorted(run.monitor.glob("*.jsonl"))
    except OSError:
        return []
    found = [_node(path.stem, list(_sampled(path))) for path in files]
    return _with_outliers([node for node in found if node is not None])


def odd_nodes(run: RunDir, window_s: float) -> dict[str, str]:
    """Nodes whose GPUs work otherwise than those of the others, lately, and in what.

    Args:
        window_s: What counts of a node, back from its own newest line: clocks are not compared.

    Returns:
        node -> "GPU 41 % (the others 97 %)"; where nobody has GPUs, of the CPUs.
    """
    files = {}
    for path in sorted(run.monitor.glob("*.jsonl")):
        with contextlib.suppress(OSError):
            files[path] = path.stat().st_mtime
    # Those of an earlier attempt's nodes are not written any more.
    oldest = max(files.values(), default=0.0) - window_s
    lately = {path.stem: _lately(path, window_s) for path in files if files[path] >= oldest}
    known = [_node(name, lines) for name, lines in lately.items() if len(lines) >= LEAST_LINES]
    nodes = _with_outliers([node for node in known if node is not None])
    has_gpus = any("gpu_percent" in node.values for node in nodes)
    told = ("gpu_percent", "power_w", "throttled_percent") if has_gpus else ("cpu_percent",)
    found = {}
    for node in nodes:
        words = [_against_others(name, node, nodes) for name in told if name in node.outliers]
        if words:
            found[node.node] = "; ".join(words)
    return found


def late_nodes(beats: Sequence[Heartbeat]) -> dict[str, str]:
    """Nodes for whose ranks the others wait in each step, and how long. Pure.

    Args:
        beats: Of all ranks; nothing is said while one of them does not train.

    Returns:
        node -> "0.8 s of each step before the others can go on (the others need 0.2 s)"
    """
    nodes: dict[str, float] = {}
    for beat in beats:
        if beat.phase != "train" or beat.own_s is None:
            return {}
        nodes[beat.node] = max(nodes.get(beat.node, 0.0), beat.own_s)
    if len(nodes) < 2:
        return {}
    least_s = LEAST_DIFFERENCE * statistics.median(beat.step_time_s or 0.0 for beat in beats)
    found = {}
    for node, own_s in nodes.items():
        others = [other_s for other, other_s in nodes.items() if other != node]
        usual_s = statistics.median(others)
        if own_s - usual_s > least_s:
            found[node] = (
                f"{own_s:.2g} s of each step before the others can go on"
                f" (the others need {usual_s:.2g} s)"
            )
    return found


def _against_others(name: str, odd: NodeUse, nodes: Sequence[NodeUse]) -> str:
    measure = MEASURES[name]
    others = [node.values[name] for node in nodes if node is not odd and name in node.values]
    middle = statistics.median(others)
    unit = measure.unit
    return f"{measure.title} {odd.values[name]:.0f} {unit} (the others {middle:.0f} {unit})"


def _lately(path: Path, window_s: float) -> list[dict[str, Any]]:
    """The lines of the last seconds before the newest one."""
    lines = _newest(path, LATELY_BYTES)
    times = [_number(line.get("time")) or 0.0 for line in lines]
    newest = max(times, default=0.0)
    return [line for line, at in zip(lines, times, strict=True) if newest - at <= window_s]


def _newest(path: Path, length: int) -> list[dict[str, Any]]:
    """The lines in the last bytes of a file."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - length))
            return list(_documents(stream))
    except OSError:
        return []


def _documents(lines: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    """What is whole of some lines; a torn one is passed over, and one with GPUs that are none."""
    for line in lines:
        with contextlib.suppress(ValueError):
            document = json.loads(line)
            if isinstance(document, dict) and all(
                isinstance(gpu, dict) for gpu in _list(document.get("gpus"))
            ):
                yield document


def gpus_now(run: RunDir, now: float) -> float | None:
    """How busy the GPUs of all its nodes are, in percent; None where no monitor told it just now.

    Args:
        now: Seconds since the epoch.
    """
    told = []
    for path in run.monitor.glob("*.jsonl"):
        last = _newest(path, 2 * LINE_BYTES)[-1:]
        told += [_values(line).get("gpu_percent") for line in last if _is_new(line, now)]
    return _mean([value for value in told if value is not None])


def _is_new(line: dict[str, Any], now: float) -> bool:
    return abs(now - (_number(line.get("time")) or 0.0)) < NEW_S


def _sampled(path: Path) -> Iterable[dict[str, Any]]:
    """Lines at even distances; a torn one is passed over."""
    try:
        stream = path.open("rb")
    except OSError:
        return
    with stream:
        size = os.fstat(stream.fileno()).st_size
        whole = size <= SAMPLES * 512
        places = [0] if whole else [size * n // SAMPLES for n in range(SAMPLES)]
        for place in places:
            stream.seek(place)
            if place:
                stream.readline(LINE_BYTES)
            yield from _documents(stream if whole else [stream.readline(LINE_BYTES)])


def _node(name: str, lines: Sequence[dict[str, Any]]) -> NodeUse | None:
    if not lines:
        return None
    told: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for line in lines:
        for measure, value in _values(line).items():
            told[measure].append(value)
    values = {
        measure: max(numbers) if MEASURES[measure].how == "peak" else statistics.fmean(numbers)
        for measure, numbers in told.items()
        if numbers
    }
    last = lines[-1]
    cards = _numbers(_list(last.get("gpus")), "memory_total_mib")
    total = _number(last.get("memory_total_mib"))
    cpus = _number(last.get("cpus"))
    return NodeUse(
        node=name,
        samples=len(lines),
        values={measure: round(value, 2) for measure, value in values.items()},
        cpus=int(cpus) if cpus else None,
        memory_gib=round(total / 1024, 1) if total else None,
        gpu_memory_gib=round(max(cards) / 1024, 1) if cards else None,
    )


def _values(line: dict[str, Any]) -> dict[str, float]:
    """The measures of one line; what it does not tell is absent."""
    gpus = _list(line.get("gpus"))
    ports = [*_dict(line.get("interfaces")).values(), *_dict(line.get("links")).values()]
    moved = [_numbers(ports, "rx_mib_s"), _numbers(ports, "tx_mib_s")]
    disk = [_number(line.get(name)) for name in ("disk_read_mib_s", "disk_write_mib_s")]
    memory = _numbers(gpus, "memory_mib")
    used = _number(line.get("memory_used_mib"))
    slowed = [
        100.0 * bool(set(map(str, _list(gpu.get("throttle")))) - {"sw_power_cap"}) for gpu in gpus
    ]
    found = {
        "gpu_percent": _mean(_numbers(gpus, "use_percent")),
        "gpu_memory_gib": max(memory) / 1024 if memory else None,
        "power_w": sum(_numbers(gpus, "power_w")) or None,
        "temperature_c": max(_numbers(gpus, "temperature_c"), default=None),
        "throttled_percent": _mean(slowed),
        "cpu_percent": _number(line.get("cpu_percent")),
        "memory_gib": used / 1024 if used is not None else None,
        "network_mib_s": sum(map(sum, moved)) if any(moved) else None,
        "disk_mib_s": sum(item or 0.0 for item in disk) if disk != [None, None] else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _with_outliers(nodes: list[NodeUse]) -> list[NodeUse]:
    odd: dict[str, list[str]] = {node.node: [] for node in nodes}
    for measure in MEASURES:
        told = {node.node: node.values[measure] for node in nodes if measure in node.values}
        if len(told) < LEAST_NODES:
            continue
        middle = statistics.median(told.values())
        spread = statistics.median(abs(value - middle) for value in told.values())
        least = max(DEVIATIONS * 1.4826 * spread, LEAST_DIFFERENCE * abs(middle), 1.0)
        for name, value in told.items():
            if abs(value - middle) > least:
                odd[name].append(measure)
    return [replace(node, outliers=tuple(odd[node.node])) for node in nodes]


def _number(value: object) -> float | None:
    told = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    return float(value) if told else None  # type: ignore[arg-type]


def _numbers(items: Iterable[object], name: str) -> list[float]:
    found = (_number(item.get(name)) for item in items if isinstance(item, dict))
    return [value for value in found if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
