"""What all tests share: the real Slurm of ``tests/cluster``, and which tests run when."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.cluster import Cluster, ClusterSpec
from tests.cluster.requirements import missing

_REQUIRE = "HPC_TRAIN_REQUIRE_SLURM"
_SOAK = "HPC_TRAIN_SOAK"
# Where torch is imported or ranks are started: left out by --quick, as is all that needs Slurm.
# A test of another folder that starts torch is marked `torch`, one that takes long `slow`.
_WITH_TORCH = ("training", "examples", "faults", "e2e", "ssh")
# No example has a time limit: several tests share this machine.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
_raised = pytest.StashKey[dict[ClusterSpec, Cluster]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="without Slurm, torch and the slow ones")
    parser.addoption("--gpu", action="store_true", help="tests/gpu as well; see docs/gpu.md")
    parser.addoption("--gpu-rehearsal", action="store_true", help="tests/gpu on the CPU")
    parser.addoption("--gpu-report", metavar="FILE", help="where the table of tests/gpu goes")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_raised] = {}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell without job control starts what ends with `&`; ranks and commands inherit it,
        # and some tests press Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path == Path(__file__).with_name("gpu"):
        return None if config.getoption("gpu") or config.getoption("gpu_rehearsal") else True
    folders = [Path(__file__).with_name(name) for name in _WITH_TORCH]
    return True if config.getoption("quick") and collection_path in folders else None


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.getoption("quick") and "torch" in sys.modules:
        # Among several workers this is told as an internal error; tests/test_house.py asks without.
        raise pytest.UsageError("a module of the quick tests imports torch: see _WITH_TORCH")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.side_by_side import SideBySide

    config.option.loadscopereorder = False  # the order is ours
    return SideBySide(config, log)


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # First what libraries keep to themselves: an upgrade that breaks it is told in seconds.
    items.sort(key=lambda item: not item.path.name.startswith("test_private_"))
    for item in items:
        if "make_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slurm)
    if os.environ.get(_SOAK) != "1":
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason=f"many trials: set {_SOAK}=1"))
    if config.getoption("quick"):
        kinds = ("slurm", "torch", "slow")
        left_out = [item for item in items if any(map(item.get_closest_marker, kinds))]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    if hasattr(config, "workerinput"):  # one of several workers
        from tests.side_by_side import in_order

        items.sort(key=lambda item: in_order(item.nodeid))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("slurm") and (lacking := missing()):
        reason = f"no real Slurm here: {lacking}"
        if os.environ.get(_REQUIRE) == "1":
            pytest.fail(f"{reason} ({_REQUIRE}=1)", pytrace=False)
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Below a failure: its runs' histories, and what the daemons of its clusters said last."""
    report = yield
    if report.failed and (folder := getattr(item, "funcargs", {}).get("tmp_path")):
        for events in sorted(folder.rglob("events.jsonl")):
            last = events.read_text(errors="replace").splitlines()[-20:]
            report.sections.append((str(events), "\n".join(last)))
    if report.failed and item.get_closest_marker("slurm"):
        for cluster in item.config.stash[_raised].values():
            if cluster.touched:
                report.sections.append((str(cluster.layout.logs), cluster.log_tails()))
    return report


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
def _environment_as_it_was() -> Iterator[None]:
    """No test meets a variable that another has left: it would fail by the order alone."""
    before = dict(os.environ)
    yield
    now = dict(os.environ)
    changed = sorted(
        name
        for name in before.keys() | now.keys()
        if name != "PYTEST_CURRENT_TEST" and before.get(name) != now.get(name)
    )
    for name in changed:
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]
    assert not changed, f"the test leaves other values of {', '.join(changed)}"


@pytest.fixture(autouse=True)
def _clean_clusters(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a Slurm test: no jobs, and every node idle, so that no test meets what another left."""
    yield
    if request.node.get_closest_marker("slurm"):
        for cluster in request.config.stash[_raised].values():
            cluster.reset()
