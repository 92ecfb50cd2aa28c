"""Nodes that were found bad, remembered per cluster for a while, for all runs of one user.

One JSON document a line in `~/.local/state/hpc-train/nodes/CLUSTER.jsonl`; the home of a user is
shared by the nodes of a cluster at nearly every site. Lists are kept by cluster, since a name that
is no node of a cluster makes sbatch and scontrol refuse the whole list.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.codec import decode, encode
from hpc_train.runs.state import state_dir


@dataclass(frozen=True)
class BadNode:
    """One verdict on a node; `until` and `time` are in seconds since the epoch."""

    node: str
    reason: str
    run: str
    time: float
    until: float


def remember(environ: Mapping[str, str], cluster: str, nodes: Sequence[BadNode]) -> str:
    """Add verdicts.

    Returns:
        What went wrong, empty if nothing did: a home that is full costs the memory, not the run.
    """
    path = _file(environ, cluster)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(encode(node)) + "\n" for node in nodes)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def read_bad_nodes(environ: Mapping[str, str], cluster: str, now: float) -> list[BadNode]:
    """The nodes that are held to be bad now, the newest verdict of each, by name."""
    newest = {node.node: node for node in _read(_file(environ, cluster))}
    return sorted((n for n in newest.values() if n.until > now), key=lambda n: n.node)


def forget(environ: Mapping[str, str], cluster: str, names: Iterable[str], now: float) -> None:
    """Hold `names` to be good again.

    Raises:
        OSError: when the memory cannot be written.
    """
    known = {node.node: node for node in read_bad_nodes(environ, cluster, now)}
    cleared = [dataclasses.replace(known[name], until=now) for name in names if name in known]
    trouble = remember(environ, cluster, cleared)
    if trouble:
        raise OSError(trouble)


def clusters(environ: Mapping[str, str]) -> list[str]:
    """The clusters of which something is remembered."""
    folder = _file(environ, "x").parent
    return sorted(path.stem for path in folder.glob("*.jsonl")) if folder.is_dir() else []


def _file(environ: Mapping[str, str], cluster: str) -> Path:
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in cluster) or "cluster"
    return state_dir(environ) / "nodes" / f"{safe}.jsonl"


def _read(path: Path) -> list[BadNode]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [node for node in map(_parse, lines) if node is not None]


def _parse(line: str) -> BadNode | None:
    try:
        return decode(BadNode, json.loads(line))
    except ValueError:
        return None  # a torn line
