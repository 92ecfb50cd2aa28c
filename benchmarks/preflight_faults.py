"""How often the preflight is right: seeded faults on a random node of a real Slurm.

    python -m benchmarks.preflight_faults --trials 5

Each trial is `hpc-train preflight --nodes 3 --json` on the cluster of the tests, with one fault of
tests/preflight_on_slurm/catalogue.py on one node, both drawn by the seed, or with none. Prints a
Markdown table: named and wrongly named, and seconds from the command's start to its answer.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import Cluster, ClusterSpec
from tests.preflight_on_slurm.catalogue import FAULTS, HEALTHY, Outcome, trial
from tests.preflight_on_slurm.lab import Lab

__all__ = ["main", "table", "trials"]


def trials(lab: Lab, names: Sequence[str], seeds: Sequence[int], *, nodes: int) -> list[Outcome]:
    """One trial for each name and seed; the cluster is whole again after each."""
    outcomes = []
    for seed in seeds:
        for name in names:
            try:
                outcome = trial(lab, name, seed, nodes=nodes)
            finally:
                lab.cluster.reset()
            outcomes.append(outcome)
            said = f"{outcome.said.seconds:5.1f} s  {name}, seed {seed}: {outcome.bad or 'nobody'}"
            wrong = "; ".join(outcome.complaints())
            print(f"{said}{'  WRONG: ' if wrong else ''}{wrong}", file=sys.stderr, flush=True)
            if wrong:
                print(*outcome.said.document["summary"], sep="\n    ", file=sys.stderr, flush=True)
    return outcomes


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    times = sorted(outcome.said.seconds for outcome in outcomes)
    faulty = [outcome for outcome in outcomes if outcome.bad]
    found = f"{sum(outcome.is_found for outcome in faulty)}" if faulty else "-"
    false = sum(outcome.is_false_alarm for outcome in outcomes)
    return (
        f"| {name} | {len(outcomes)} | {found} | {false} |"
        f" {statistics.median(times):.1f} | {times[-1]:.1f} |"
    )


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Rows of Markdown: one for each fault, then all faults, then all that was healthy."""
    rows = [
        "| fault on one node | trials | named | wrongly named | s, median | s, worst |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        _row(name, [item for item in outcomes if item.fault == name])
        for name in dict.fromkeys(outcome.fault for outcome in outcomes)
    ]
    faulty = [outcome for outcome in outcomes if outcome.bad]
    healthy = [outcome for outcome in outcomes if not outcome.bad]
    rows += [_row("**all faults**", faulty)] if faulty else []
    rows += [_row("**all healthy**", healthy)] if healthy else []
    return rows


def main() -> int:
    """Raise a cluster, run the trials, print the table; 1 where any answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preflight_faults")
    parser.add_argument("--trials", type=int, default=1, help="seeds a fault")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--nodes", type=int, default=3, help="of a preflight")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="faults whose names hold this")
    given = parser.parse_args()
    names = [
        name
        for name in [*FAULTS, *HEALTHY]
        if given.only is None or any(part in name for part in given.only)
    ]
    seeds = range(given.seed, given.seed + given.trials)
    spec = ClusterSpec(nodes=f"node[1-{given.nodes + 1}]")
    with tempfile.TemporaryDirectory() as folder, Cluster(spec) as cluster:
        lab = Lab(cluster, Path(folder), options=())
        lab.outfit()
        outcomes = trials(lab, names, seeds, nodes=given.nodes)
    print("\n".join(table(outcomes)))
    return int(any(outcome.complaints() for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
