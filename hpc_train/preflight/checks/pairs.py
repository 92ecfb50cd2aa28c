"""Who is tested with whom, and who is to blame: pure, and four rounds at most whatever N is.

Round 1 pairs all nodes at random, disjoint. Then every suspect is tested against proven-good nodes,
as Google's cluster health scanner does it. A node is named only when every test of it failed, at
least one of them against a node that is proven good; one pair that failed between two otherwise
good nodes names the pair; and where nothing passed nobody is named.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hpc_train.preflight.checks.findings import (
    ALL_NODES,
    Finding,
    Level,
    Thresholds,
    severity,
    worst,
)
from hpc_train.preflight.checks.middle import median_high, median_low

# One pairing of all, two of suspects against proven-good nodes, and one more for those who are
# merely slow or lossy, which a busy moment also makes them.
MAX_ROUNDS = 4
_HARD_ROUNDS = 3
_SOFT = {"bandwidth", "latency", "loss"}
# Below this many nodes every pair is tested, because of two slow results none stands out.
_ALL_PAIRS = 4
# Fewer are chance.
_SEVERAL = 5
# Of the time: below it the CPUs decide how fast a transfer is. Measured beside 20 busy processes on
# two cores: 0.86 and more over links of 0.1 and 1 Gbit/s, whose sides wait for the link; 0.3 and
# less where a healthy link was slow.
_BUSY_BELOW = 0.5


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the test of two nodes measured. None means: not measured."""

    latency_us: float | None = None  # median round trip of a small message
    # Bandwidth from the node that dialled, a, to the one that listened, b
    gbps_ab: float | None = None
    gbps_ba: float | None = None  # bandwidth from b to a
    # Share of that time in which neither side waited for a CPU: a slow link leaves them idle one
    # way, while the other way is as fast as the CPUs let it be.
    ready_share_ab: float | None = None
    ready_share_ba: float | None = None
    retransmit_share: float | None = None  # share of TCP segments sent again, the worse direction
    retransmits: int = 0  # their number
    lost_share: float | None = None  # share of small datagrams that did not come back
    lost: int = 0  # their number
    frame_ok: bool | None = None  # whether the full frame crossed both ways
    error: str | None = None  # why the test did not finish


@dataclass(frozen=True, kw_only=True)
class PairResult(Measured):
    """The result of one pair; an `error` is a failure unless `is_aborted`."""

    a: str  # the node that dialled
    b: str  # the node that listened
    round: int = 1  # from 1
    frame_bytes: int | None = None  # size of the full frame that was tried
    advertised_gbps: float | None = None  # the slower of the two interfaces, by its driver
    # The partner died or the coordinator gave up: says nothing about this pair
    is_aborted: bool = False

    @property
    def gbps(self) -> float | None:
        """The slower direction."""
        known = [value for value in (self.gbps_ab, self.gbps_ba) if value is not None]
        return min(known) if known else None

    @property
    def ready_share(self) -> float | None:
        """Share of the time in which neither side waited for a CPU, in the slower direction."""
        return self.ready_share_ab if self.gbps == self.gbps_ab else self.ready_share_ba

    @property
    def carried_gbps(self) -> float | None:
        """What the link carried for certain, the CPUs' waits counted as the link's.

        `gbps` leaves the waits out, as if no two of them fell together: beside busy CPUs it is two
        to three times what the link carries when nothing else runs.
        """
        gbps, ready = self.gbps, self.ready_share
        return gbps if gbps is None or ready is None else gbps * ready

    def partner(self, node: str) -> str:
        """Return the other node."""
        return self.b if node == self.a else self.a


_Faults = list[tuple[str, Level, str]]  # check, level, evidence


def judge(result: PairResult, results: list[PairResult], thresholds: Thresholds) -> _Faults:
    """Return (check, level, evidence) for everything wrong with one result, [] where it is healthy.

    Bandwidth and latency are held against the median of the other results, not against a constant:
    bandwidth at its best against what the others carried for certain, so that other work on some
    nodes makes no other node look slow.
    """
    if result.error is not None:
        # What was counted before it tells why: on a lossy link TCP may not end in time.
        return [*_frame(result), *_loss(result, thresholds), ("pair", "fail", result.error)]
    others = _of_other_pairs(result, results)
    return [
        *_frame(result),
        *_loss(result, thresholds),
        *_bandwidth(result, others, thresholds),
        *_latency(result, others, thresholds),
    ]


def _of_other_pairs(result: PairResult, results: list[PairResult]) -> list[PairResult]:
    """Return the best result of each other pair: one that was tried again does not count twice."""
    best: dict[frozenset[str], PairResult] = {}
    for other in results:
        pair = frozenset((other.a, other.b))
        if other.error is None and pair != {result.a, result.b}:
            known = best.get(pair)
            if known is None or (other.carried_gbps or 0.0) > (known.carried_gbps or 0.0):
                best[pair] = other
    return list(best.values())


def _frame(result: PairResult) -> _Faults:
    if result.frame_ok is not False:
        return []
    text = f"a frame of {result.frame_bytes} bytes does not cross, small ones do"
    return [("frame", "fail", text)]


def _loss(result: PairResult, limits: Thresholds) -> _Faults:
    said: _Faults = []
    for share, count, what in (
        (result.retransmit_share, result.retransmits, "segments were sent again"),
        (result.lost_share, result.lost, "datagrams did not come back"),
    ):
        if share is not None and count >= _SEVERAL and share >= limits.loss_warn:
            level: Level = "fail" if share >= limits.loss_fail else "warn"
            said.append(("loss", level, f"{share:.1%} of the {what} ({count})"))
    return said


def _bandwidth(result: PairResult, others: list[PairResult], limits: Thresholds) -> _Faults:
    said = _slow(result, others, limits)
    if result.ready_share is None or result.ready_share >= _BUSY_BELOW:
        return said
    busy = f"measured while other work took the CPUs for {1 - result.ready_share:.0%} of the time"
    return [("bandwidth", "unknown", f"{evidence}, {busy}") for _, _, evidence in said]


def _slow(result: PairResult, others: list[PairResult], limits: Thresholds) -> _Faults:
    gbps = result.gbps
    if gbps is None:
        return []
    rest = [other.carried_gbps for other in others if other.carried_gbps is not None]
    floor = limits.min_gbps
    if result.advertised_gbps is not None:
        floor = max(floor, limits.speed_share * min(result.advertised_gbps, 25.0))
    if gbps < floor:
        return [("bandwidth", "fail", f"{gbps:.3g} Gbit/s, the floor is {floor:.3g}")]
    if not rest:
        return []
    share = gbps / median_high(rest)
    if share >= limits.slow_warn:
        return []
    text = f"{gbps:.3g} Gbit/s, {share:.0%} of the others' median {median_high(rest):.3g}"
    return [("bandwidth", "fail" if share < limits.slow_fail else "warn", text)]


def _latency(result: PairResult, others: list[PairResult], limits: Thresholds) -> _Faults:
    rest = [other.latency_us for other in others if other.latency_us is not None]
    if result.latency_us is None or not rest or result.latency_us < limits.latency_floor_us:
        return []
    ratio = result.latency_us / median_low(rest)
    if ratio < limits.latency_warn:
        return []
    text = f"{result.latency_us:.0f} us a round trip, {ratio:.0f} times the median"
    return [("latency", "warn", text)]


def plan_round(
    nodes: list[str], results: list[PairResult], thresholds: Thresholds, seed: int
) -> list[tuple[str, str]]:
    """Return the disjoint pairs of the next round, [] when there is nothing left to find out."""
    done = max((result.round for result in results), default=0)
    if len(nodes) < 2 or done >= MAX_ROUNDS:
        return []
    if not results:
        return _matching(nodes, random.Random(seed))
    used = {frozenset((result.a, result.b)) for result in results}
    if len(nodes) <= _ALL_PAIRS:
        untried = _untried(nodes, used) or _again(nodes, results, thresholds)
        return untried or _once_more(nodes, results, thresholds)
    good = _good(nodes, results, thresholds)
    suspects = [node for node in nodes if node not in good]
    if done >= _HARD_ROUNDS:
        return _once_more(nodes, results, thresholds)
    return _against_good(suspects, sorted(good), used, random.Random(f"{seed}/{done}"))


def _matching(nodes: list[str], rng: random.Random) -> list[tuple[str, str]]:
    order = list(nodes)
    rng.shuffle(order)
    return list(zip(order[0::2], order[1::2], strict=False))


def _untried(nodes: list[str], used: set[frozenset[str]]) -> list[tuple[str, str]]:
    """Return as many disjoint pairs as possible of those not yet tried."""
    pairs: list[tuple[str, str]] = []
    busy: set[str] = set()
    for i, a in enumerate(nodes):
        for b in nodes[i + 1 :]:
            if frozenset((a, b)) not in used and not busy & {a, b}:
                pairs.append((a, b))
                busy |= {a, b}
    return pairs


def _again(
    nodes: list[str], results: list[PairResult], thresholds: Thresholds
) -> list[tuple[str, str]]:
    """Two nodes have one pair: a failure is tried once more before it is believed."""
    if len(nodes) == 2 and len(results) == 1 and judge(results[0], results, thresholds):
        return [(nodes[1], nodes[0])]
    return []


def _once_more(
    nodes: list[str], results: list[PairResult], thresholds: Thresholds
) -> list[tuple[str, str]]:
    """Return pairs for nodes that were only ever slow or lossy, each with a proven-good one."""
    good = _good(nodes, results, thresholds)
    free = sorted(good)
    pairs = []
    for node in nodes:
        mine = [result for result in results if node in (result.a, result.b)]
        checks = {item[0] for r in mine for item in judge(r, results, thresholds)}
        tests = sum(1 for result in mine if not result.is_aborted)
        if node in good or not free or not checks <= _SOFT or tests > _HARD_ROUNDS:
            continue
        pairs.append((node, free.pop()))
    return pairs


def _good(nodes: list[str], results: list[PairResult], thresholds: Thresholds) -> set[str]:
    """Return the nodes with at least one healthy test."""
    good: set[str] = set()
    for result in results:
        if not result.is_aborted and not judge(result, results, thresholds):
            good |= {result.a, result.b}
    return good & set(nodes)


def _against_good(
    suspects: list[str], good: list[str], used: set[frozenset[str]], rng: random.Random
) -> list[tuple[str, str]]:
    free = list(good)
    rng.shuffle(free)
    pairs: list[tuple[str, str]] = []
    rest: list[str] = []
    for suspect in suspects:
        partner = next((node for node in free if frozenset((suspect, node)) not in used), None)
        if partner is None:
            rest.append(suspect)
            continue
        free.remove(partner)
        pairs.append((suspect, partner))
    # More suspects than good nodes: pair them anew among themselves, so that a healthy one shows.
    return pairs + _untried(rest, used)


def conclude(nodes: list[str], results: list[PairResult], thresholds: Thresholds) -> list[Finding]:
    """Return who is to blame, after the last round.

    A warning in every test of a node makes it slow; a failure in every test makes it bad.
    """
    tried = [result for result in results if not result.is_aborted]
    if not tried:
        return []
    said = {id(result): judge(result, tried, thresholds) for result in tried}
    good = _good(nodes, tried, thresholds)
    if not good:
        return [_nothing_to_tell(nodes, tried, said)]
    findings: list[Finding] = []
    for node in nodes:
        mine = [result for result in tried if node in (result.a, result.b)]
        if node in good or not mine:
            continue
        findings.append(_blame(node, mine, said, good))
    blamed = {finding.node for finding in findings if finding.level in ("warn", "fail")}
    return findings + _between_good(tried, said, blamed)


def _blame(
    node: str,
    mine: list[PairResult],
    said: dict[int, _Faults],
    good: set[str],
) -> Finding:
    proven = [result for result in mine if result.partner(node) in good]
    partners = ", ".join(result.partner(node) for result in mine)
    if not proven:
        text = f"failed with {partners}, none of which is proven good"
        return Finding(node, "network", "pair", "unknown", text, "run hpc-train preflight again")
    worst_result = max(proven, key=lambda result: _severity(said[id(result)]))
    check, level, evidence = max(said[id(worst_result)], key=lambda item: _severity([item]))
    how = "went so" if level == "unknown" else "failed"
    text = f"{evidence}; {len(mine)} of {len(mine)} tests {how} (with {partners}),"
    text += f" {len(proven)} of them against proven-good nodes"
    fix = _BUSY if level == "unknown" else _FIX[check]
    return Finding(node, "network", check, level, text, fix)


_BUSY = "top on that node: what else runs there? Then run hpc-train preflight again"

_FIX = {
    "pair": "ping it from another node; firewall, cable, switch port",
    "frame": "give every interface and switch port on the way the same MTU",
    "loss": "ethtool -S: errors and drops; replace the cable or transceiver",
    "bandwidth": "ethtool: speed and duplex; tc qdisc; another job on the same link",
    "latency": "another job on the same link; power saving of NIC or CPU",
}


def _severity(said: _Faults) -> int:
    return severity(worst(level for _, level, _ in said))


def _between_good(
    tried: list[PairResult], said: dict[int, _Faults], blamed: set[str]
) -> list[Finding]:
    """A pair that failed although each of the two is fine with others: the way between them."""
    findings = []
    for result in tried:
        if said[id(result)] and not {result.a, result.b} & blamed:
            check, _, evidence = said[id(result)][0]
            text = f"{evidence}; each of them passed with another node:"
            text += " the way between them, or a load"
            part = f"{result.a} <-> {result.b}"
            findings.append(Finding(ALL_NODES, part, check, "note", text))
    return findings


def _nothing_to_tell(
    nodes: list[str], tried: list[PairResult], said: dict[int, _Faults]
) -> Finding:
    check, _, evidence = said[id(tried[0])][0]
    level = worst(item[1] for result in tried for item in said[id(result)])
    part, why = "network", f"all {len(tried)} pairs failed, so that no node is proven good"
    if len(nodes) == 2:
        part, why = " <-> ".join(nodes), "with two nodes a fault cannot be told from its partner"
    text = f"{evidence}; nothing can be told apart: {why}"
    fix = "look at what all of them share: switch, firewall, the chosen interface"
    return Finding(ALL_NODES, part, check, level, text, fix)
