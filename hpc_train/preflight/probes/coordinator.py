"""The first node's second job: gather all nodes, have them tested in pairs, give the verdict."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from hpc_train.codec import decode
from hpc_train.preflight.checks.pairs import MAX_ROUNDS, PairResult, plan_round
from hpc_train.preflight.choose.choose import choose
from hpc_train.preflight.inventory.interfaces import USABLE_KINDS
from hpc_train.preflight.inventory.inventory import NodeInventory
from hpc_train.preflight.probe_results import Lost, ProbeResults, assemble
from hpc_train.preflight.probes.control_server import ControlServer
from hpc_train.preflight.probes.pairtest import Measured
from hpc_train.preflight.verdict import Skipped, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hpc_train.preflight.options import PreflightOptions

__all__ = ["Coordinator"]

_FINISH_S = 1.5


class Coordinator:
    """Runs the meeting of all nodes; `run()` always ends, and always with a verdict.

    Args:
        options: What was asked for.
        token: The run's.
        listener: Where the probes come to.
        folder: To see which nodes have at least looked.
        clock: Seconds since the epoch.
        started: time.monotonic() at the probe's start.
    """

    def __init__(
        self,
        options: PreflightOptions,
        token: bytes,
        listener: socket.socket,
        folder: Path,
        clock: Callable[[], float],
        started: float,
    ) -> None:
        self._options = options
        self._folder = folder
        self._started = started
        self._server = ControlServer(listener, token, options.nodes, options.silence_s, clock)
        self._results: list[PairResult] = []
        self._skipped: list[Skipped] = []

    def run(self, fallback: NodeInventory) -> Verdict:
        """Return the verdict.

        Args:
            fallback: This node's own inventory, should not even its own probe come.
        """
        server, options = self._server, self._options
        try:
            server.pump(self._has_everybody, self._started + options.rendezvous_s)
            absent = [
                n for n in options.nodes if n not in server.connections and n not in server.lost
            ]
            inventories = [
                connection.inventory
                for node in options.nodes
                if (connection := server.connections.get(node)) is not None
                and connection.inventory is not None
            ] or [fallback]
            self._rounds(inventories)
            self._finish()
            return assemble(inventories, self._trial(absent), options)
        finally:
            server.close()

    def _has_everybody(self) -> bool:
        here = {*self._server.connections, *self._server.lost}
        return all(node in here for node in self._options.nodes)

    def _rounds(self, inventories: list[NodeInventory]) -> None:
        options, server = self._options, self._server
        if len(options.nodes) < 2:
            return
        choice = choose(inventories, options.user_env, options.profile)
        plans = _Plans(options, choice.addresses, choice.interfaces)
        for number in range(1, MAX_ROUNDS + 1):
            alive = server.alive()
            pairs = plan_round(alive, self._judged(), options.thresholds, options.seed)
            if not pairs:
                return
            if time.monotonic() + options.pair_s > self._started + options.timeout_s:
                why = f"no time left of {options.timeout_s:g} s"
                self._skipped.append(Skipped(f"round {number} of the pairs", why))
                return
            self._round(number, pairs, plans)

    def _judged(self) -> list[PairResult]:
        """Return the results; a test whose partner was lost says nothing about the other."""
        gone = self._server.lost
        return [
            result
            if result.error is None or not {result.a, result.b} & gone.keys()
            else replace(result, is_aborted=True)
            for result in self._results
        ]

    def _round(self, number: int, pairs: list[tuple[str, str]], plans: _Plans) -> None:
        server = self._server
        waiting: dict[str, tuple[str, str]] = {}
        for a, b in pairs:
            name = os.urandom(8).hex()
            waiting[name] = (a, b)
            address = server.connections[b].address or plans.addresses.get(
                b, server.connections[b].peer
            )
            plan = {
                "id": name,
                "address": address,
                "port": server.connections[b].data_port,
                "source": server.connections[a].address or plans.addresses.get(a, ""),
                "frame_bytes": plans.frame(
                    server.connections[a].inventory, server.connections[b].inventory
                ),
                "seconds": self._options.bandwidth_s,
                "max_bytes": self._options.bandwidth_mib << 20,
                "deadline_s": self._options.pair_s,
            }
            server.send(a, {"type": "pair", "id": name, "plan": plan})

        def is_settled() -> bool:
            return all(
                name in server.connections[a].results or {a, b} & server.lost.keys()
                for name, (a, b) in waiting.items()
            )

        server.pump(is_settled, time.monotonic() + self._options.pair_s + 1.0)
        for name, (a, b) in waiting.items():
            speed = plans.speed(server.connections[a].inventory, server.connections[b].inventory)
            frame = plans.frame(server.connections[a].inventory, server.connections[b].inventory)
            base = PairResult(a=a, b=b, round=number, advertised_gbps=speed, frame_bytes=frame)
            self._results.append(_with_answer(base, server.connections[a].results.get(name)))

    def _finish(self) -> None:
        server = self._server
        for node in server.alive():
            server.send(node, {"type": "finish"})
        server.pump(
            lambda: all(server.connections[node].counters is not None for node in server.alive()),
            time.monotonic() + _FINISH_S,
        )
        for node in server.alive():
            server.send(node, {"type": "bye"})
        # A moment for the goodbyes to leave, so that nobody takes the end for a loss.
        server.pump(
            lambda: all(not server.connections[n].outbox for n in server.alive()),
            time.monotonic() + 0.5,
        )

    def _trial(self, absent: list[str]) -> ProbeResults:
        server = self._server
        lost = [*self._absent(absent), *server.lost.values()]
        return ProbeResults(
            lost=tuple(self._or_ourselves(lost)),
            pairs=tuple(self._judged()),
            clocks={
                node: connection.clock
                for node, connection in server.connections.items()
                if connection.clock is not None
            },
            counters={node: m.counters for node, m in server.connections.items() if m.counters},
            strangers=tuple((*key, count) for key, count in server.strangers.most_common()),
            skipped=tuple(self._skipped),
            seconds=time.monotonic() - self._started,
        )

    def _absent(self, names: list[str]) -> list[Lost]:
        waited = f"within {self._options.rendezvous_s:g} s"
        found = []
        for name in names:
            seen = _look_of(self._folder, name)
            what = "not a word" if seen is None else f"it looked{_network_of(seen)}, and then did"
            reason = f"{what} not reach the first node {waited}" if seen else f"{what} {waited}"
            found.append(Lost(node=name, check="rendezvous", reason=reason))
        return found

    def _or_ourselves(self, lost: list[Lost]) -> list[Lost]:
        """Blame the first node where all the others are cut off from it and only from it.

        With two nodes that cannot be told; with three or more, one fault here is likelier than the
        same fault everywhere else at once.
        """
        first, *others = self._options.nodes
        names = {item.node for item in lost}
        cut = [item for item in lost if item.reason.startswith(("not a word for", "it looked"))]
        if len(others) < 2 or first in names or len(cut) < len(others):
            return lost
        reason = f"all {len(others)} other nodes are cut off from this one at once"
        return [Lost(node=first, check="alive", reason=reason, fix="look at its interface first")]


class _Plans:
    """What a test of two nodes needs to know of their interfaces."""

    def __init__(
        self, options: PreflightOptions, addresses: dict[str, str], interfaces: dict[str, str]
    ) -> None:
        self.addresses = {} if options.is_local else addresses
        self._interfaces = interfaces

    def _both(self, a: NodeInventory | None, b: NodeInventory | None, field: str) -> list[int]:
        values = []
        for node in (a, b):
            name = self._interfaces.get(node.node, "") if node else ""
            interface = node.interface(name) if node else None
            value = getattr(interface, field) if interface else None
            if value:
                values.append(int(value))
        return values if len(values) == 2 else []

    def frame(self, a: NodeInventory | None, b: NodeInventory | None) -> int:
        """Return the smaller MTU: what both interfaces promise, the way between has to carry."""
        return min(self._both(a, b, "mtu"), default=0)

    def speed(self, a: NodeInventory | None, b: NodeInventory | None) -> float | None:
        """Return the slower advertised speed in Gbit/s."""
        speeds = self._both(a, b, "speed_mbps")
        return min(speeds) / 1000 if speeds else None


def _with_answer(base: PairResult, answer: dict[str, object] | None) -> PairResult:
    if answer is None:
        return replace(base, error="no result in time")
    try:
        seen = decode(Measured, answer)
    except ValueError as error:
        return replace(base, error=f"its result is garbage: {error}")
    return replace(
        base,
        latency_us=seen.latency_us,
        gbps_ab=seen.gbps_ab,
        gbps_ba=seen.gbps_ba,
        retransmit_share=seen.retransmit_share,
        retransmits=seen.retransmits,
        lost_share=seen.lost_share,
        lost=seen.lost,
        frame_ok=seen.frame_ok,
        error=seen.error,
    )


def _look_of(folder: Path, node: str) -> NodeInventory | None:
    try:
        return NodeInventory.from_json(json.loads((folder / f"look-{node}.json").read_text()))
    except (OSError, ValueError):
        return None


def _network_of(seen: NodeInventory) -> str:
    """Return what its own look says about why it cannot come."""
    down = [i.name for i in seen.interfaces if i.kind in USABLE_KINDS and i.state == "down"]
    return f" ({', '.join(down)} down there)" if down else ""
