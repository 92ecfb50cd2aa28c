"""A real Slurm on one machine, for tests and for trying things by hand (see README.md)."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.cluster.shell import ClusterError
from tests.cluster.spec import ClusterSpec

__all__ = ["Cluster", "ClusterError", "ClusterSpec"]
