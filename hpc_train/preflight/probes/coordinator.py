"""The first node's second job: gather all nodes, have them tested in pairs, give the verdict."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hpc_train.codec import decode, encode
from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.checks.pairs import MAX_ROUNDS, Measured, PairResult, plan_round
from hpc_train.preflight.choose.choose_socket import SocketChoice, choose_socket
from hpc_train.preflight.inventory.inventory import NodeInventory
from hpc_train.preflight.options import PreflightOptions
from hpc_train.preflight.probe_results import ProbeResults, assemble, inventory_of, lost_node
from hpc_train.preflight.probes.control_server import ControlServer
from hpc_train.preflight.probes.pairtest import PairPlan
from hpc_train.preflight.verdict import Skipped, Verdict

_FINISH_S = 1.5
_GOODBYE_S = 0.5


class Coordinator:
    """Runs the test of all nodes; `run()` always ends, and always with a verdict.

    Args:
        options: What was asked for.
        token: The run's.
        listener: Where the probes come to.
        clock: Seconds since the epoch.
        started: time.monotonic() at the probe's start.
    """

    def __init__(
        self,
        options: PreflightOptions,
        token: bytes,
        listener: socket.socket,
        clock: Callable[[], float],
        started: float,
    ) -> None:
        self._options = options
        self._started = started
        self._server = ControlServer(listener, token, options.nodes, options.silence_s, clock)
        self._results: list[PairResult] = []
        self._skipped: list[Skipped] = []

    def run(self, fallback: NodeInventory) -> Verdict:
        """Return the verdict; `fallback` is this node's inventory, where even its probe is lost."""
        server, options = self._server, self._options
        try:
            server.pump(lambda: not self._absent(), self._started + options.rendezvous_s)
            absent = self._absent()
            here = [node for node in options.nodes if node in server.connections]
            inventories = [server.connections[node].inventory for node in here] or [fallback]
            if len(options.nodes) > 1:
                socket = choose_socket(inventories, options.profile)
                self._rounds(socket or SocketChoice(names={}, addresses={}, reason=""))
            self._finish()
            return assemble(inventories, self._together(absent), options)
        finally:
            server.close()

    def _absent(self) -> list[str]:
        known = {*self._server.connections, *self._server.lost}
        return [node for node in self._options.nodes if node not in known]

    def _rounds(self, chosen: SocketChoice) -> None:
        options, alive = self._options, self._server.alive
        for number in range(1, MAX_ROUNDS + 1):
            pairs = plan_round(alive(), self._judged(), options.thresholds, options.seed)
            if not pairs:
                return
            if time.monotonic() + options.pair_s > self._started + options.timeout_s:
                why = f"no time left of {options.timeout_s:g} s"
                self._skipped.append(Skipped(f"round {number} of the pairs", why))
                return
            self._round(number, pairs, chosen)

    def _judged(self) -> list[PairResult]:
        """Return the results; a test whose partner was lost says nothing about the other."""
        gone = self._server.lost.keys()
        return [
            replace(item, is_aborted=bool(item.error is not None and {item.a, item.b} & gone))
            for item in self._results
        ]

    def _round(self, number: int, pairs: list[tuple[str, str]], chosen: SocketChoice) -> None:
        server = self._server
        waiting: dict[str, PairResult] = {}
        for a, b in pairs:
            plan, result = self._plan(a, b, chosen)
            waiting[plan.id] = replace(result, round=number)
            server.send(a, {"type": "pair", "id": plan.id, "plan": encode(plan)})

        def is_settled() -> bool:
            return all(
                name in server.connections[pair.a].results or {pair.a, pair.b} & server.lost.keys()
                for name, pair in waiting.items()
            )

        server.pump(is_settled, time.monotonic() + self._options.pair_s + 1.0)
        for name, pair in waiting.items():
            answer = server.connections[pair.a].results.get(name)
            self._results.append(_with_answer(pair, answer))

    def _plan(self, a: str, b: str, chosen: SocketChoice) -> tuple[PairPlan, PairResult]:
        options = self._options
        addresses = {} if options.is_local else chosen.addresses
        here, there = self._server.connections[a], self._server.connections[b]
        ends = (here.inventory, there.inventory)
        # What both interfaces promise, the way between has to carry.
        frame_bytes = _least("mtu", chosen, *ends)
        speed_mbps = _least("speed_mbps", chosen, *ends)
        plan = PairPlan(
            id=os.urandom(8).hex(),
            address=there.address or addresses.get(b, there.peer),
            port=there.data_port,
            source=here.address or addresses.get(a, ""),
            frame_bytes=frame_bytes,
            seconds=options.bandwidth_s,
            max_bytes=options.bandwidth_mib << 20,
            deadline_s=options.pair_s,
        )
        advertised = speed_mbps / 1000 or None
        return plan, PairResult(a=a, b=b, frame_bytes=frame_bytes, advertised_gbps=advertised)

    def _finish(self) -> None:
        server = self._server
        members = [server.connections[node] for node in server.alive()]
        self._tell_all("finish")
        counted = time.monotonic() + _FINISH_S
        server.pump(lambda: all(m.counters is not None for m in members if m.is_open), counted)
        self._tell_all("bye")
        # A moment for the goodbyes to leave, so that nobody takes the end for a loss.
        left = time.monotonic() + _GOODBYE_S
        server.pump(lambda: not any(m.outbox for m in members if m.is_open), left)

    def _tell_all(self, kind: str) -> None:
        for node in self._server.alive():
            self._server.send(node, {"type": kind})

    def _together(self, absent: list[str]) -> ProbeResults:
        members = self._server.connections.items()
        strangers = self._server.strangers.most_common()
        lost = [*map(self._never_came, absent), *self._server.lost.values()]
        return ProbeResults(
            lost=tuple(self._or_ourselves(lost)),
            pairs=tuple(self._judged()),
            clocks={node: member.clock for node, member in members if member.clock is not None},
            counters={node: member.counters for node, member in members if member.counters},
            strangers=tuple((*key, count) for key, count in strangers),
            skipped=tuple(self._skipped),
            seconds=time.monotonic() - self._started,
        )

    def _never_came(self, node: str) -> Finding:
        waited = f"within {self._options.rendezvous_s:g} s"
        seen = inventory_of(Path(self._options.folder), node)
        if seen is None:
            return lost_node(node, "rendezvous", f"not a word {waited}")
        down = [i.name for i in seen.interfaces if i.is_between_nodes and i.state == "down"]
        why = f" ({', '.join(down)} down there)" if down else ""
        reason = f"its inventory is there{why}, and it did not reach the first node {waited}"
        return lost_node(node, "rendezvous", reason)

    def _or_ourselves(self, lost: list[Finding]) -> list[Finding]:
        """Blame the first node where all the others are cut off from it and only from it.

        With two nodes that cannot be told; with three or more, one fault here is likelier than the
        same fault everywhere else at once.
        """
        first, *others = self._options.nodes
        names = {item.node for item in lost}
        cut = [
            item for item in lost if item.evidence.startswith(("not a word for", "its inventory"))
        ]
        if len(others) < 2 or first in names or len(cut) < len(others):
            return lost
        reason = f"all {len(others)} other nodes are cut off from this one at once"
        return [lost_node(first, "alive", reason, "look at its interface first")]


def _least(field: str, chosen: SocketChoice, *ends: NodeInventory) -> int:
    """Return the least of a number of the chosen interfaces, 0 where one does not tell it."""
    found = [end.interface(chosen.names.get(end.node, "")) for end in ends]
    return min((getattr(item, field) or 0) if item else 0 for item in found)


def _with_answer(pair: PairResult, answer: dict[str, object] | None) -> PairResult:
    if answer is None:
        return replace(pair, error="no result in time")
    try:
        return replace(pair, **vars(decode(Measured, answer)))
    except ValueError as error:
        return replace(pair, error=f"its result is garbage: {error}")
