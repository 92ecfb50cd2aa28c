"""Clusters that stand side by side, are taken down, and are left by an owner that crashed."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import Cluster, ClusterSpec, faults, registry
from tests.cluster.layout import Layout
from tests.cluster.processes import Processes, alive, seen_mounting, start_ticks
from tests.cluster.shell import wait_until

pytestmark = pytest.mark.slurm


_SMALL = ClusterSpec(nodes="rack[1-2]n01", accounting=False, gpus_per_node=0)


def _network_devices() -> set[str]:
    return {link.name for link in Path("/sys/class/net").iterdir()}


def _mounts_of(cluster_root: Path) -> list[str]:
    rows = Path("/proc/self/mountinfo").read_text().splitlines()
    return [row for row in rows if f"{cluster_root}/" in row]


# --- coming and going


@pytest.fixture
def small() -> Iterator[Cluster]:
    with Cluster(_SMALL) as cluster:
        yield cluster


def test_a_second_cluster_stands_beside_the_first(slurm_cluster: Cluster, small: Cluster) -> None:
    assert small.node_states() == {"rack1n01": "idle", "rack2n01": "idle"}
    assert set(slurm_cluster.node_states()) == {"node1", "node2", "node3"}
    job = small.sbatch(["--nodes=2"], "#!/bin/sh\nsrun hostname\n")
    small.wait(job, "COMPLETED")
    assert sorted(small.output(job).split()) == ["rack1n01", "rack2n01"]
    assert small.command(["sacct"], check=False).returncode != 0


def test_taking_a_cluster_down_leaves_nothing(slurm_cluster: Cluster) -> None:
    cluster = Cluster(_SMALL)
    cluster.up()
    layout, recorded = cluster.layout, cluster.processes.recorded()
    job = cluster.sbatch(["--nodes=2"], "#!/bin/sh\nsrun sleep 120\n")
    cluster.wait(job, "RUNNING")
    for node in cluster.nodes:  # none is in the making any more
        found = partial(faults.find, cluster, node, r"^\S*sleep 120")
        wait_until(found, f"the job's process on {node}", timeout_s=60)
    faults.small_disk(cluster, "disk", 1)
    # Namespaces end with the processes in them; their numbers are given to others at once.
    inside = [pid for node in cluster.nodes for pid in cluster.pids(node)]
    born = {pid: start_ticks(pid) for pid in inside}
    assert {*inside} >= {s.pid for s in recorded if s.name.startswith("slurmd-")}
    assert {*seen_mounting(layout.root)} >= {*inside}
    assert layout.host_interface in _network_devices()
    with registry.locked():  # another process may be given the number of the cluster as well
        cluster.down()
        assert layout.host_interface not in _network_devices()
        assert not _mounts_of(layout.root)
        assert not layout.root.exists()
        assert not seen_mounting(layout.root)
    assert not [s for s in recorded if alive(s)]
    assert not [pid for pid in inside if born[pid] and start_ticks(pid) == born[pid]]


def test_a_number_is_given_again_while_its_old_folder_is_still_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = registry.claim(_SMALL, "localhost", detached=False, base=tmp_path)
    really = shutil.rmtree
    claimed: list[Layout] = []

    def meanwhile(path: Path, **options: bool) -> None:
        really(path, **options)
        if not claimed:
            claimed.append(registry.claim(_SMALL, "localhost", detached=False, base=tmp_path))

    monkeypatch.setattr(shutil, "rmtree", meanwhile)
    # The cable of that number is a cluster's of another folder, which may well be in use.
    monkeypatch.setattr(registry, "_unplug", lambda interface: None)
    registry.remove(old)
    assert claimed[0].index == old.index
    assert claimed[0].state_file.exists()
    assert not [*tmp_path.glob("gone-*")]


def test_what_a_crashed_owner_left_is_cleaned_by_the_next_cluster() -> None:
    code = (
        "from tests.cluster import Cluster\n"
        "from tests.cluster.test_raising import _SMALL\n"
        "cluster = Cluster(_SMALL); cluster.up(); print(cluster.layout.index, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        index = int(owner.stdout.readline())
        (layout,) = [x for x in registry.existing() if x.index == index]
        left = Processes(layout.process_file, layout.logs).recorded()
        with registry.locked():
            owner.kill()
            owner.wait()
            assert layout.state_file.exists()
            assert all(map(alive, left))
            assert not registry.in_use(layout)
    with Cluster(_SMALL) as cluster:
        assert set(cluster.node_states().values()) == {"idle"}
        assert not any(map(alive, left))
        # The number is free again, or taken by somebody who lives.
        assert registry.read_state(layout.root).get("owner", {}).get("pid") != owner.pid


def test_a_process_that_was_given_the_number_of_an_ended_daemon_is_let_live(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "processes", tmp_path)
    daemon = processes.start("daemon", ["sleep", "600"])
    ended = dataclasses.replace(daemon, ticks=daemon.ticks - 1)
    (tmp_path / "processes").write_text(json.dumps(dataclasses.asdict(ended)) + "\n")
    processes.kill_everything()
    assert alive(daemon)
    (tmp_path / "processes").write_text(json.dumps(dataclasses.asdict(daemon)) + "\n")
    processes.kill_everything()
    assert not alive(daemon)


def test_a_spec_is_raised_once_a_session(
    make_cluster: Callable[..., Cluster], slurm_cluster: Cluster
) -> None:
    assert make_cluster(ClusterSpec()) is slurm_cluster


def test_by_hand_a_cluster_stays_until_it_is_taken_down() -> None:
    command = [sys.executable, "-m", "tests.cluster"]
    fields = ["nodes=solo1", "accounting=false", "gpus_per_node=1"]
    up = subprocess.run([*command, "up", *fields], capture_output=True, text=True, check=True)
    export, example = up.stdout.splitlines()
    index = Path(export.partition("=")[2]).parent.parent.name
    try:
        both = subprocess.run(
            ["bash", "-c", f"{export}; {example}"], capture_output=True, text=True, check=True
        )
        assert both.stdout == "solo1\n"
        for words, said in (([], "which of them?"), (["999"], "there is no cluster 999")):
            asked = subprocess.run([*command, "down", *words], capture_output=True, text=True)
            assert (asked.returncode, said in asked.stderr) == (2, True)
            assert f"cluster {index}: SLURM_CONF=" in asked.stdout, "it is still there"
    finally:
        down = subprocess.run([*command, "down", index], capture_output=True, text=True, check=True)
    assert down.stdout == f"cluster {index} is down\n"
