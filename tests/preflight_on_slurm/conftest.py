from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.preflight_on_slurm.lab import Lab


@pytest.fixture(scope="session")
def outfitted(
    make_cluster: Callable[..., Cluster], tmp_path_factory: pytest.TempPathFactory
) -> Lab:
    """A cluster of these tests alone, whose nodes have a healthy InfiniBand."""
    cluster = make_cluster(nodes="node[1-4]", cluster_name="preflight")
    lab = Lab(cluster, tmp_path_factory.mktemp("preflight"))
    lab.outfit()
    return lab


@pytest.fixture
def lab(outfitted: Lab, tmp_path: Path) -> Lab:
    """The same, with a folder of the test's own."""
    return Lab(outfitted.cluster, tmp_path)
