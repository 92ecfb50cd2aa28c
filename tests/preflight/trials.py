"""Seeded faults on a random node: who was named, falsely or rightly, and after how long."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .made_sysfs import MadeNode, bond_hca, docker0, ib_node, roce_node
from .probes import FAST_CLOCK, LOSSY_LINK, SLOW_LINK, SMALL_FRAMES, Probes

Change = Callable[[MadeNode], MadeNode]

LOCAL: dict[str, Change] = {
    "port down": lambda n: n.port("mlx5_1", state="DOWN", phys="Polling"),
    "port INIT": lambda n: n.port("mlx5_0", state="INIT"),
    "half rate": lambda n: n.port("mlx5_0", rate=200),
    "no HCAs": lambda n: n.without_hcas(),
    "IPoIB down": lambda n: n.interface("ib0", state="down", address=None),
    "low memlock": lambda n: replace(n, memlock="65536"),
    "no libibverbs": lambda n: replace(n, library=False),
    "small MTU": lambda n: n.interface("ib0", mtu=2044),
}
RUNNING = {
    "slow link": SLOW_LINK,
    "lossy link": LOSSY_LINK,
    "small frames only": SMALL_FRAMES,
    "clock off by an hour": FAST_CLOCK,
}
SIGNALS = {"hangs": signal.SIGSTOP, "dies": signal.SIGKILL}
# Nobody is to be named for these.
HEALTHY: dict[str, Callable[[int], MadeNode]] = {
    "healthy": ib_node,
    "healthy, with a bond and docker0": lambda i: ib_node(i).plus(*bond_hca(i), docker0()),
    "one has an extra bond": lambda i: ib_node(i).plus(*bond_hca(i)) if i == 2 else ib_node(i),
    "RoCE, GIDs at different indices": lambda i: roce_node(i, v2_index=3 + 2 * (i % 2)),
}
FAULTS = [*LOCAL, *RUNNING, *SIGNALS]


@dataclass(frozen=True)
class Outcome:
    fault: str
    nodes: int
    bad: str | None
    named: frozenset[str]
    seconds: float
    summary: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return self.named == (frozenset([self.bad]) if self.bad else frozenset())


def trial(fault: str, seed: int, folder: Path) -> Outcome:
    """One run of N probes with one fault on one of them, both by the seed."""
    rng = random.Random(f"{fault}/{seed}")
    count = rng.choice([3, 3, 4])
    make = HEALTHY.get(fault, ib_node)
    made = [make(number) for number in range(1, count + 1)]
    # The first node's own end leaves no verdict to read: that case has a test of its own.
    bad = rng.randrange(1 if fault in SIGNALS else 0, count)
    if fault in LOCAL:
        made[bad] = LOCAL[fault](made[bad])
    how = {bad: RUNNING[fault]} if fault in RUNNING else {}
    with Probes(folder, made, how, seed=seed, silence_s=10.0) as probes:
        if fault in SIGNALS:
            probes.wait_for(f"look-node{bad + 1}.json")
            probes.signal(f"node{bad + 1}", SIGNALS[fault])
        verdict, seconds = probes.verdict()
    named = {*verdict.bad_nodes, *verdict.degraded_nodes}
    return Outcome(
        fault=fault,
        nodes=count,
        bad=None if fault in HEALTHY else f"node{bad + 1}",
        named=frozenset(named),
        seconds=seconds,
        summary=verdict.summary,
    )


def table(outcomes: list[Outcome]) -> list[str]:
    """Rows of a Markdown table: fault, trials, recall, false alarms, time to name."""
    rows = [
        "| fault | trials | named | wrongly named | s to name (median, worst) |",
        "|---|---|---|---|---|",
    ]
    for fault in dict.fromkeys(item.fault for item in outcomes):
        mine = [item for item in outcomes if item.fault == fault]
        found = sum(item.bad in item.named for item in mine)
        wrong = sum(bool(item.named - {item.bad}) for item in mine)
        times = sorted(item.seconds for item in mine)
        named = f"{found}" if mine[0].bad else "-"
        rows.append(
            f"| {fault} | {len(mine)} | {named} | {wrong} |"
            f" {times[len(times) // 2]:.1f}, {times[-1]:.1f} |"
        )
    return rows
