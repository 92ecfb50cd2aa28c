"""Fixtures that all tests share: the real Slurm of ``tests/cluster``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.cluster import Cluster, ClusterSpec
from tests.cluster.requirements import missing

_REQUIRE = "HPC_TRAIN_REQUIRE_SLURM"
_SOAK = "HPC_TRAIN_SOAK"
_raised = pytest.StashKey[dict[ClusterSpec, Cluster]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_raised] = {}


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # First what libraries keep to themselves: an upgrade that breaks it is told in seconds.
    items.sort(key=lambda item: not item.path.name.startswith("test_private_"))
    for item in items:
        if "make_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slurm)
    if os.environ.get(_SOAK) != "1":
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason=f"many trials: set {_SOAK}=1"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("slurm") and (lacking := missing()):
        reason = f"no real Slurm here: {lacking}"
        if os.environ.get(_REQUIRE) == "1":
            pytest.fail(f"{reason} ({_REQUIRE}=1)", pytrace=False)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def make_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """A function that gives the cluster of a spec, raised at first use and kept for the session.

    Call it with a :class:`ClusterSpec`, or with its fields: ``make_cluster(grace_s=5)``.
    """
    raised = request.config.stash[_raised]

    def make(spec: ClusterSpec | None = None, **fields: object) -> Cluster:
        wanted = spec or ClusterSpec(**fields)  # type: ignore[arg-type]
        if wanted not in raised:
            cluster = Cluster(wanted)
            cluster.up()
            raised[wanted] = cluster
        return raised[wanted]

    yield make
    while raised:
        raised.popitem()[1].down()


@pytest.fixture(scope="session")
def slurm_cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    """The cluster with the default spec, shared by the whole session."""
    return make_cluster()


@pytest.fixture(autouse=True)
def _clean_clusters(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a Slurm test: no jobs, and every node idle, so that no test meets what another left."""
    yield
    if request.node.get_closest_marker("slurm"):
        for cluster in request.config.stash[_raised].values():
            cluster.reset()
