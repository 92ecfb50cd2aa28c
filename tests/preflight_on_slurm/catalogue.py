"""Faults of one node, each with what a preflight has to say of it; and what is no fault at all."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import faults, sysfs
from tests.cluster.interfaces import IPOIB, add_interface
from tests.cluster.nodes import entering
from tests.cluster.shell import run
from tests.preflight.made_sysfs import roce_node
from tests.preflight_on_slurm.lab import GPUS, PROBE, Lab, Running, Said, hooked, until

__all__ = ["FAULTS", "HEALTHY", "Fault", "Outcome", "trial"]

Before = Callable[[Lab, str], None]
During = Callable[[Lab, Running, str], None]
Environment = Callable[[Lab, str], dict[str, str]]

BOTH_HCAS = "=mlx5_0:1,mlx5_1:1"
ONE_HCA = "=mlx5_0:1"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that can be wrong.

    Attributes:
        before: Done to the node before the preflight starts.
        during: Done while it runs.
        environment: Of the command.
        words: Options of the command.
        checks: One of these names the node.
        part: What it says is bad; empty where that does not matter.
        verdict: The answer.
        choice: Variables that it has to choose; None where one must not be set.
        within_s: Time to name, from the command's start, where a trial is timed.
        spares_first: It is no fault on the first node, which nobody needs to find by its name.
    """

    before: Before | None = None
    during: During | None = None
    environment: Environment | None = None
    words: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    part: str = ""
    verdict: str = "no-go"
    choice: tuple[tuple[str, str | None], ...] = ()
    within_s: float = 10.0
    spares_first: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One trial.

    Attributes:
        fault: Its name.
        bad: The node, empty where there was no fault.
        said: What the command said.
        is_timed: Whether it had this machine for itself, so that its seconds count.
    """

    fault: str
    bad: str
    said: Said
    is_timed: bool

    @property
    def wanted(self) -> set[str]:
        return {self.bad} if self.bad else set()

    @property
    def is_found(self) -> bool:
        return self.bad in self.said.named

    @property
    def is_false_alarm(self) -> bool:
        return bool(self.said.named - self.wanted)

    def complaints(self) -> list[str]:
        """What is not as the catalogue has it."""
        fault, said = {**FAULTS, **HEALTHY}[self.fault], self.said
        wrong = []
        if said.named != self.wanted:
            wrong.append(f"named {sorted(said.named)}, not {sorted(self.wanted)}")
        if said.verdict != fault.verdict:
            wrong.append(f"said {said.verdict}, not {fault.verdict}")
        found = [item for check in fault.checks for item in said.findings(self.bad, check)]
        if fault.checks and not any(fault.part in item["part"] for item in found):
            wrong.append(f"no finding of {fault.checks} about {fault.part!r}")
        for name, value in fault.choice:
            if said.environment.get(name) != value:
                wrong.append(f"{name} is {said.environment.get(name)}, not {value}")
        if self.is_timed and said.seconds > fault.within_s:
            wrong.append(f"took {said.seconds:.1f} s, not {fault.within_s:g} s")
        return wrong


def trial(lab: Lab, name: str, seed: int, *, nodes: int = 3) -> Outcome:
    """One preflight over `nodes` nodes with one fault, on a node drawn by the seed."""
    fault = FAULTS.get(name) or HEALTHY[name]
    candidates = list(lab.cluster.nodes)[fault.spares_first : nodes]
    drawn = random.Random(f"{name}/{seed}").choice(candidates)
    if fault.before:
        fault.before(lab, drawn)
    env = fault.environment(lab, drawn) if fault.environment else {}
    with lab.start(*fault.words, nodes=nodes, env=env) as running:
        if fault.during:
            fault.during(lab, running, drawn)
        said = running.said()
    bad = drawn if name in FAULTS else ""
    return Outcome(fault=name, bad=bad, said=said, is_timed=not lab.options)


# --- things to do to a node


def _dead_port(state: str, phys_state: str, *hcas: str) -> Before:
    def change(lab: Lab, node: str) -> None:
        for hca in hcas:
            lab.port(node, hca, state=state, phys_state=phys_state, lid="0x0", sm_lid="0x0")

    return change


def _no_hcas(lab: Lab, node: str) -> None:
    lab.without_hcas(node)


def _bond(lab: Lab, node: str) -> None:
    number = lab.cluster.nodes[node].number
    port = sysfs.Port(link_layer="Ethernet", rate="100 Gb/sec (4X EDR)", lid="0x0", sm_lid="0x0")
    bond = sysfs.Hca(name="mlx5_bond_0", ports=(port,), pci="pci0000:80/0000:81:00.0")
    lab.other_hcas(node, (*sysfs.healthy(number), bond))


def _roce(lab: Lab, node: str) -> None:
    """RoCE on every node, with the v2 GID elsewhere on the drawn one."""
    for name, made in lab.cluster.nodes.items():
        lab.without_hcas(name)
        tree = lab.folder / f"roce-{lab.count}-{name}"
        roce_node(made.number, v2_index=5 if name == node else 3).write(tree)
        sysfs.use_tree(lab.cluster, name, tree, keep=True)


def _ipoib(lab: Lab) -> None:
    for name, made in lab.cluster.nodes.items():
        add_interface(lab.cluster, name, "ib0", f"10.78.0.{made.number}/24", files=IPOIB)


def _ipoib_everywhere(lab: Lab, node: str) -> None:
    _ipoib(lab)


def _ipoib_down(lab: Lab, node: str) -> None:
    _ipoib(lab)
    inside = entering(lab.cluster.nodes[node].anchor_pid, mounts=False)
    run([*inside, "ip", "link", "set", "ib0", "down"])


def _loopback_name(lab: Lab, node: str) -> None:
    """The master's name is 127.0.0.1 there, and nothing else."""
    first = _first(lab)
    faults.resolve(lab.cluster, node, {first: "127.0.0.1"})
    hosts = lab.cluster.layout.node_dir(node) / "etc/hosts"
    lines = hosts.read_text().splitlines(keepends=True)
    others = [line for line in lines[1:] if first not in line.split()]
    hosts.write_text("".join([lines[0], *others]))


def _docker0(lab: Lab, node: str) -> None:
    add_interface(lab.cluster, node, "docker0", "172.17.0.1/16", kind="bridge", index=5)


def _received_mib(lab: Lab, node: str) -> float:
    """What eth0 of a node has received."""
    text = Path(f"/proc/{lab.cluster.nodes[node].anchor_pid}/net/dev").read_text()
    (line,) = [line for line in text.splitlines() if line.strip().startswith("eth0:")]
    return int(line.partition(":")[2].split()[0]) / 2**20


def _cut_after_meeting(lab: Lab, running: Running, node: str) -> None:
    before = _received_mib(lab, node)
    running.probes()
    # Nothing but the pairs moves so much.
    until(lambda: _received_mib(lab, node) > before + 20, "the pairs to begin")
    faults.cut_cable(lab.cluster, node, end="switch")


def _hang(lab: Lab, running: Running, node: str) -> None:
    running.wait_for(f"look-{node}.json")
    faults.pause(lab.cluster, node, PROBE)


def _die(lab: Lab, running: Running, node: str) -> None:
    running.wait_for(f"look-{node}.json")
    for pid in faults.find(lab.cluster, node, PROBE):
        os.kill(pid, signal.SIGKILL)


def _first(lab: Lab) -> str:
    return next(iter(lab.cluster.nodes))


FAULTS: dict[str, Fault] = {
    "one of two ports down": Fault(
        before=_dead_port("1: DOWN", "2: Polling", "mlx5_1"), words=GPUS,
        checks=("port_state",), part="mlx5_1:1", verdict="go-degraded",
        choice=(("NCCL_IB_HCA", ONE_HCA), ("NCCL_IB_DISABLE", None)),
    ),
    "ports INIT": Fault(
        before=_dead_port("2: INIT", "5: LinkUp", "mlx5_0", "mlx5_1"), words=GPUS,
        checks=("port_state",), part="mlx5_", choice=(("NCCL_IB_DISABLE", "1"),),
    ),
    "half rate": Fault(
        before=lambda lab, node: lab.port(node, "mlx5_0", rate="200 Gb/sec (4X HDR)"), words=GPUS,
        checks=("rate",), part="mlx5_0:1", verdict="go-degraded",
        choice=(("NCCL_IB_HCA", BOTH_HCAS),),
    ),
    "no HCAs": Fault(
        before=_no_hcas, words=GPUS, checks=("hca_set",), part="mlx5_0:1",
        choice=(("NCCL_IB_DISABLE", "1"), ("NCCL_IB_HCA", None)),
    ),
    "IPoIB down": Fault(
        before=_ipoib_down, words=GPUS, checks=("interface",), part="ib0", verdict="go-degraded",
        choice=(("NCCL_SOCKET_IFNAME", "eth0"), ("GLOO_SOCKET_IFNAME", "eth0")),
    ),
    "eth0 at 10 Mbit/s": Fault(
        before=lambda lab, node: faults.slow_cable(lab.cluster, node, 10), checks=("bandwidth",),
        within_s=20,
    ),
    "5 % loss": Fault(
        before=lambda lab, node: faults.lossy_cable(lab.cluster, node, 5), checks=("loss",),
        within_s=20,
    ),
    "cable cut after the meeting": Fault(
        during=_cut_after_meeting, words=("--full",), checks=("alive",), within_s=20
    ),
    "the master's name is 127.0.0.1": Fault(
        before=_loopback_name, checks=("master_name",), spares_first=True
    ),
    "the master's name is 127.0.0.1 too": Fault(
        before=lambda lab, node: faults.resolve(lab.cluster, node, {_first(lab): "127.0.0.1"}),
        checks=("master_name",), spares_first=True, verdict="go-degraded",
    ),
    "64 KiB memlock": Fault(
        before=lambda lab, node: faults.limit_memlock(lab.cluster, node, 64), words=GPUS,
        checks=("memlock",), part="RLIMIT_MEMLOCK",
    ),
    "16 MiB /dev/shm": Fault(
        before=lambda lab, node: faults.small_shm(lab.cluster, node, 16), checks=("shm",),
        part="/dev/shm", verdict="go-degraded",
    ),
    "clock off by an hour": Fault(
        environment=lambda lab, node: hooked(node, "clock"), checks=("clock",),
        verdict="go-degraded",
    ),
    "the probe hangs": Fault(during=_hang, checks=("alive", "rendezvous"), within_s=15),
    "the probe dies": Fault(during=_die, checks=("alive", "rendezvous"), within_s=12),
}  # fmt: skip

HEALTHY: dict[str, Fault] = {
    "healthy": Fault(
        words=GPUS, verdict="go",
        choice=(
            ("NCCL_IB_HCA", BOTH_HCAS), ("NCCL_SOCKET_IFNAME", "eth0"), ("NCCL_IB_DISABLE", None),
            ("NCCL_IB_GID_INDEX", None), ("GLOO_SOCKET_IFNAME", "eth0"),
        ),
    ),
    "healthy, on gloo": Fault(verdict="go", choice=(("GLOO_SOCKET_IFNAME", "eth0"),)),
    "one has an extra bond": Fault(
        before=_bond, words=GPUS, verdict="go", choice=(("NCCL_IB_HCA", BOTH_HCAS),)
    ),
    "RoCE, GIDs at different indices": Fault(
        before=_roce, words=GPUS, verdict="go",
        choice=(("NCCL_IB_HCA", BOTH_HCAS), ("NCCL_IB_GID_INDEX", None)),
    ),
    "IPoIB up": Fault(
        before=_ipoib_everywhere, words=GPUS, verdict="go",
        choice=(("NCCL_SOCKET_IFNAME", "ib0"), ("GLOO_SOCKET_IFNAME", "ib0")),
    ),
    "docker0 has the lower index": Fault(
        before=_docker0, words=GPUS, verdict="go", choice=(("NCCL_SOCKET_IFNAME", "eth0"),)
    ),
}  # fmt: skip
