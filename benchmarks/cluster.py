"""The real Slurm that tests/cluster raises on this machine, for the benchmarks that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import BenchError, user_environment
from tests.cluster import Cluster, ClusterSpec
from tests.cluster.faults import change_partition
from tests.cluster.requirements import missing

__all__ = ["client_environment", "closed", "raised"]


@contextmanager
def raised() -> Iterator[Cluster]:
    """Three nodes of four made GPUs each, for a while.

    Raises:
        BenchError: this machine cannot raise it; with what it lacks.
    """
    lacking = missing()
    if lacking:
        raise BenchError(f"no real Slurm here: {lacking}")
    with Cluster(ClusterSpec()) as cluster:
        yield cluster


def closed(cluster: Cluster) -> None:
    """Let jobs wait and none start, so that nothing but the submission is measured."""
    change_partition(cluster, State="DOWN")


def client_environment(cluster: Cluster, home: Path) -> dict[str, str]:
    """The environment of a user of that cluster, with folders of their own under `home`."""
    kept = user_environment().items()
    outside = {key: value for key, value in kept if not key.startswith("SLURM")}
    return {**outside, **cluster.env(), "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
