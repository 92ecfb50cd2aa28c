"""One cluster of three nodes: what a job sees on it, and every fault that can be made there."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Cluster, faults, interfaces, sysfs

pytestmark = pytest.mark.slurm


# --- what a healthy cluster shows


def test_three_idle_nodes_with_twelve_gpus_and_accounting(slurm_cluster: Cluster) -> None:
    assert slurm_cluster.node_states() == {"node1": "idle", "node2": "idle", "node3": "idle"}
    gpus = slurm_cluster.command(["sinfo", "-N", "-h", "-p", "train", "-o", "%G"]).stdout
    assert gpus.split() == ["gpu:4"] * 3
    assert "testbed" in slurm_cluster.command(["sacctmgr", "-nP", "show", "cluster"]).stdout


def test_a_job_on_three_nodes_sees_three_hosts_and_four_gpus_each(slurm_cluster: Cluster) -> None:
    script = "#!/bin/sh\nsrun sh -c 'echo $(hostname) $CUDA_VISIBLE_DEVICES'\n"
    job = slurm_cluster.sbatch(["--nodes=3", "--gres=gpu:4"], script)
    slurm_cluster.wait(job, "COMPLETED")
    seen = sorted(slurm_cluster.output(job).splitlines())
    assert seen == [f"node{i} 0,1,2,3" for i in (1, 2, 3)]


def test_sacct_knows_a_job_that_ended(slurm_cluster: Cluster) -> None:
    job = slurm_cluster.sbatch([], "#!/bin/sh\nexit 3\n")
    slurm_cluster.wait(job, "FAILED")
    sacct = ["sacct", "-X", "-n", "-P", "-j", job, "-o", "State,ExitCode"]
    deadline_s = time.monotonic() + 60
    while "FAILED|3:0" not in (told := slurm_cluster.command(sacct).stdout):
        assert time.monotonic() < deadline_s, told
        time.sleep(0.2)


def test_each_node_resolves_every_name_without_asking_outside(slurm_cluster: Cluster) -> None:
    code = "import socket; print(socket.getfqdn(), socket.gethostbyname('node3'))"
    told = slurm_cluster.node_exec("node1", ["python3", "-c", code], timeout_s=60).stdout
    assert told.split() == ["node1", slurm_cluster.address("node3")]


_ALL_REDUCE = """
import os, socket, torch, torch.distributed as dist
dist.init_process_group("gloo", rank=int(os.environ["SLURM_PROCID"]), world_size=6)
total = torch.ones(1000)
dist.all_reduce(total)
print(socket.gethostname(), int(total[0]), flush=True)
dist.destroy_process_group()
"""


def test_gloo_adds_up_over_three_nodes_of_two_ranks(slurm_cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "all_reduce.py"
    program.write_text(_ALL_REDUCE)
    script = (
        "#!/bin/sh\n"
        "export MASTER_ADDR=$(hostname) MASTER_PORT=29500 GLOO_SOCKET_IFNAME=eth0\n"
        f"srun --nodes=3 --ntasks=6 --ntasks-per-node=2 {sys.executable} {program}\n"
    )
    job = slurm_cluster.sbatch(["--nodes=3", "--ntasks-per-node=2"], script)
    slurm_cluster.wait(job, "COMPLETED")
    said = slurm_cluster.output(job).splitlines()
    seen = sorted(line for line in said if not line.startswith("[W"))  # torch's warnings
    assert seen == [f"node{i} 6" for i in (1, 1, 2, 2, 3, 3)]


# --- preemption


def test_preemption_signals_the_steps_and_the_job_runs_again(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """Each task writes on its node: srun, which Slurm ends as well, may hand on no more by then.

    The signal goes to a task's children as well. A bash whose last child it ended first comes to
    the end of its words and leaves without its trap: so it waits in a loop, which has no end.
    """
    script = (
        "#!/bin/bash\n"
        f"srun --nodes=3 --ntasks=3 --output={tmp_path}/%t.log --open-mode=append bash -c '"
        'trap "echo $(hostname) term; exit 0" TERM; echo up; while :; do sleep 0.1; done\'\n'
        "scontrol requeue $SLURM_JOB_ID; sleep 30\n"
    )
    job = slurm_cluster.sbatch(["--nodes=3", "--exclusive", "--open-mode=append"], script)
    _wait_for_words(tmp_path, "up", 3)
    urgent = slurm_cluster.preempt()
    slurm_cluster.wait(urgent, "RUNNING")
    slurm_cluster.cancel(urgent)
    slurm_cluster.wait(job, "RUNNING", 120)
    assert slurm_cluster.job(job)["Restarts"] == "1"
    assert _written(tmp_path).count("term") == 3


def _written(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("*.log"))


def _wait_for_words(folder: Path, word: str, count: int) -> None:
    deadline_s = time.monotonic() + 120
    while _written(folder).count(word) < count:
        assert time.monotonic() < deadline_s, _written(folder)
        time.sleep(0.1)


def test_a_job_that_stays_is_requeued_by_slurm_when_its_grace_ends(slurm_cluster: Cluster) -> None:
    faults.change_partition(slurm_cluster, GraceTime=2)
    job = slurm_cluster.sbatch(["--nodes=1", "--nodelist=node2"], "#!/bin/sh\nexec sleep 120\n")
    slurm_cluster.wait(job, "RUNNING")
    urgent = slurm_cluster.preempt(["node2"])
    slurm_cluster.wait(urgent, "RUNNING", 120)
    assert slurm_cluster.state(job) == "PENDING"


# --- faults


def test_a_killed_node_is_down_and_its_job_runs_again(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(nodes="node[1-2]", accounting=False, slurmd_timeout_s=5)
    options = ["--nodes=1", "--nodelist=node1", "--requeue"]
    job = cluster.sbatch(options, "#!/bin/sh\nsrun sleep 120\n")
    cluster.wait(job, "RUNNING")
    faults.kill_node(cluster, "node1")
    assert cluster.pids("node1") == []
    cluster.wait_nodes("down", ["node1"], timeout_s=120)
    faults.revive_node(cluster, "node1")
    cluster.wait(job, "RUNNING", 120)
    assert cluster.job(job)["Restarts"] == "1"


@pytest.mark.parametrize("end", ["node", "switch"])
def test_a_cut_cable_silences_a_node_until_it_is_restored(slurm_cluster: Cluster, end: str) -> None:
    faults.cut_cable(slurm_cluster, "node2", end=end)  # type: ignore[arg-type]
    ping = [sys.executable, "-c", _DIAL.format(address=slurm_cluster.address("node2"))]
    assert slurm_cluster.node_exec("node1", ping, check=False).returncode == 1
    faults.restore_cable(slurm_cluster, "node2")
    assert slurm_cluster.node_exec("node1", ping, check=False).returncode == 0


_DIAL = """
import socket, sys
try:
    socket.create_connection(("{address}", 6818), timeout=3).close()
except OSError as error:
    sys.exit(1)
"""


def test_a_slow_cable_is_slow_and_a_lossy_one_loses(slurm_cluster: Cluster) -> None:
    faults.slow_cable(slurm_cluster, "node3", 1)
    seconds_slow = _seconds_to_send(slurm_cluster, "node3", "node1")
    faults.repair_cable(slurm_cluster, "node3")
    assert seconds_slow > 4 > _seconds_to_send(slurm_cluster, "node3", "node1")
    faults.lossy_cable(slurm_cluster, "node3", 100)
    ping = [sys.executable, "-c", _DIAL.format(address=slurm_cluster.address("node3"))]
    assert slurm_cluster.node_exec("node1", ping, check=False).returncode == 1


_RECEIVE = """
import socket
with socket.create_server(("", 29600)) as server:
    print("ready", flush=True)
    peer, _ = server.accept()
    while peer.recv(65536):
        pass
"""

_SEND = """
import socket, time
start_s = time.monotonic()
with socket.create_connection(("{address}", 29600)) as peer:
    peer.sendall(bytes(1_000_000))
    peer.shutdown(socket.SHUT_WR)
    peer.recv(1)
print(time.monotonic() - start_s)
"""


def _seconds_to_send(cluster: Cluster, source: str, target: str) -> float:
    receive = [*cluster.node_argv(target), sys.executable, "-c", _RECEIVE]
    with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        send = [sys.executable, "-c", _SEND.format(address=cluster.address(target))]
        return float(cluster.node_exec(source, send).stdout)


def test_a_full_disk_is_full_on_the_host_and_on_every_node(slurm_cluster: Cluster) -> None:
    disk = faults.small_disk(slurm_cluster, "full", 1)
    fill = ["dd", "if=/dev/zero", f"of={disk}/filled", "bs=1M", "count=2"]
    told = slurm_cluster.node_exec("node1", fill, check=False)
    assert "No space left on device" in told.stderr
    size = slurm_cluster.node_exec("node3", ["stat", "-c", "%s", f"{disk}/filled"]).stdout
    assert int(size) == (disk / "filled").stat().st_size == 1 << 20


def test_a_paused_process_hangs_until_it_goes_on(slurm_cluster: Cluster) -> None:
    job = slurm_cluster.sbatch(["--nodelist=node1"], "#!/bin/sh\nsrun sleep 30\n")
    slurm_cluster.wait(job, "RUNNING")
    deadline_s = time.monotonic() + 60
    while not faults.find(slurm_cluster, "node1", r"^\S*sleep 30"):
        assert time.monotonic() < deadline_s
    pids = faults.pause(slurm_cluster, "node1", r"^\S*sleep 30")
    assert re.search(r"^State:\tT", Path(f"/proc/{pids[0]}/status").read_text(), re.MULTILINE)
    faults.unpause(pids)
    slurm_cluster.wait(job, "COMPLETED")


def test_a_job_outlives_the_controller(slurm_cluster: Cluster) -> None:
    job = slurm_cluster.sbatch([], "#!/bin/sh\nsleep 30\n")
    slurm_cluster.wait(job, "RUNNING")
    faults.stop_controller(slurm_cluster, signal.SIGTERM)
    assert "DOWN" in slurm_cluster.command(["scontrol", "ping"], check=False).stdout
    slurm_cluster.start_controller()
    slurm_cluster.wait(job, "COMPLETED")


def test_a_drained_node_takes_no_job_until_it_is_resumed(slurm_cluster: Cluster) -> None:
    faults.drain(slurm_cluster, "node1", "bad cable")
    assert slurm_cluster.node_states()["node1"] == "drained"
    faults.resume(slurm_cluster, "node1")
    slurm_cluster.wait_nodes("idle", ["node1"], timeout_s=60)


def test_a_name_can_resolve_to_something_else_on_one_node(slurm_cluster: Cluster) -> None:
    faults.resolve(slurm_cluster, "node2", {"node1": "127.0.0.1"})
    ask = ["getent", "ahostsv4", "node1"]
    assert slurm_cluster.node_exec("node2", ask).stdout.startswith("127.0.0.1 ")
    assert slurm_cluster.node_exec("node3", ask).stdout.startswith("10.77.")


def test_a_node_can_have_little_locked_and_shared_memory(slurm_cluster: Cluster) -> None:
    faults.limit_memlock(slurm_cluster, "node1", 64)
    faults.small_shm(slurm_cluster, "node1", 16)
    script = "#!/bin/bash\nsrun bash -c 'ulimit -l; df --output=size /dev/shm | tail -1'\n"
    job = slurm_cluster.sbatch(["--nodelist=node1"], script)
    slurm_cluster.wait(job, "COMPLETED")
    assert slurm_cluster.output(job).split() == ["64", str(16 * 1024)]


# --- InfiniBand and interfaces


def test_ibstat_reads_the_adapters_of_its_node_as_they_change(slurm_cluster: Cluster) -> None:
    for number, node in enumerate(slurm_cluster.nodes, start=1):
        sysfs.set_hcas(slurm_cluster, node, sysfs.healthy(number))
    ports = _ports(slurm_cluster, "node2")
    assert ports == [("mlx5_0", "Active", "400", "32"), ("mlx5_1", "Active", "400", "33")]
    sysfs.set_port(slurm_cluster, "node2", "mlx5_1", state="1: DOWN", phys_state="2: Polling")
    assert _ports(slurm_cluster, "node2")[1] == ("mlx5_1", "Down", "400", "33")
    assert _ports(slurm_cluster, "node3")[1][1] == "Active"
    sysfs.set_hcas(slurm_cluster, "node2", ())
    assert _ports(slurm_cluster, "node2") == []
    assert not Path("/dev/infiniband/uverbs0").exists()


def _ports(cluster: Cluster, node: str) -> list[tuple[str, str, str, str]]:
    told = cluster.node_exec(node, ["ibstat"]).stdout
    wanted = r"CA '(\w+)'.*?State: (\w+).*?Rate: (\d+).*?Base lid: (\d+)"
    return re.findall(wanted, told, re.DOTALL)


def test_interfaces_can_be_added_before_and_after_eth0(slurm_cluster: Cluster) -> None:
    docker = {"address": "172.17.0.1/16", "kind": "bridge", "index": 5}
    interfaces.add_interface(slurm_cluster, "node1", "docker0", **docker)  # type: ignore[arg-type]
    for number in (1, 2):
        interfaces.add_interface(
            slurm_cluster,
            f"node{number}",
            "ib0",
            f"10.78.0.{number}/24",
            files=interfaces.IPOIB,
        )
    net = "/sys/class/net"
    files = [f"{net}/docker0/ifindex", f"{net}/eth0/ifindex", f"{net}/ib0/type"]
    told = slurm_cluster.node_exec("node1", ["cat", *files, f"{net}/docker0/operstate"]).stdout
    assert told.split() == ["5", "10", "32", "up"]
    assert _seconds_to_send_over(slurm_cluster, "10.78.0.2")


def _seconds_to_send_over(cluster: Cluster, address: str) -> bool:
    dial = [sys.executable, "-c", _DIAL.format(address=address)]
    return cluster.node_exec("node1", dial).returncode == 0
