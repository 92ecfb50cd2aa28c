"""What a node's monitor saw last, in words: evidence where something ran out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpc_train.diagnose.rules import Evidence
from hpc_train.runs.layout import RunDir

_TAIL_BYTES = 65_536
_GIB = 1024
# The causes for which it tells something.
ABOUT = frozenset(
    {"host_oom", "host_memory", "torch_oom", "disk_full", "killed_rank", "worker_shm"}
)


def last_sample(run: RunDir, name: str, node: str) -> Evidence | None:
    """The last whole line of the node's monitor, where it helps to believe the cause `name`."""
    path = run.monitor / f"{node}.jsonl"
    if name not in ABOUT or not node or Path(node).name != node:
        return None
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = stream.read().decode("utf-8", "replace").split("\n")
            stream.seek(0)
            newlines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    except OSError:
        return None
    for back, line in enumerate(reversed(lines)):
        try:
            told = ", ".join(_words(json.loads(line)))
        except (ValueError, TypeError, AttributeError, KeyError):
            continue  # torn, or of another version
        if told:
            text = f"{node} at its last sample: {told}"
            return Evidence(file=str(path), line=newlines + 1 - back, text=text)
    return None


def _words(sample: dict[str, Any]) -> Iterator[str]:
    if "memory_used_mib" in sample and "memory_total_mib" in sample:
        used, total = (sample[f"memory_{name}_mib"] / _GIB for name in ("used", "total"))
        yield f"{used:.0f} of {total:.0f} GiB of memory in use"
    if "disk_free_mib" in sample:
        yield f"{sample['disk_free_mib'] / _GIB:.1f} GiB of disk free"
    for gpu in sample.get("gpus", []):
        used, total = gpu["memory_mib"] / _GIB, gpu["memory_total_mib"] / _GIB
        yield f"GPU {gpu['index']} {used:.0f} of {total:.0f} GiB"
