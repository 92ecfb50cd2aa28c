"""The preflight over 64 nodes of a real Slurm: all well, and some nodes broken.

    python -m benchmarks.preflight_many --trials 3

Each trial is `hpc-train preflight --nodes 64 --json` on slurmd's of one machine, each in a network
namespace of its own. Prints a Markdown table: who was named, rounds of pairs, seconds from the
command's start to its answer, Slurm's allocation and srun's own waiting included.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from tests.cluster import Cluster
from tests.preflight_on_slurm.lab import Lab, Said
from tests.preflight_on_slurm.many_nodes import BEFORE, BIG, cut

__all__ = ["main"]

AFTER = "one cut after the start"


def trial(lab: Lab, case: str, nodes: int) -> tuple[set[str], Said]:
    """The nodes that are broken, and what the command said."""
    if case == AFTER:
        with lab.start(nodes=nodes) as running:
            running.wait_for("look-node40.json")
            cut(lab.cluster, "node40")
            return {"node40"}, running.said()
    broken, bad, _ = BEFORE[case]
    for node in bad:
        broken(lab.cluster, node)
    return set(bad), lab.check(nodes=nodes)


def main() -> int:
    """Raise the cluster, run the trials, print the table; 1 where a wrong node was named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preflight_many")
    parser.add_argument("--trials", type=int, default=1)
    given = parser.parse_args()
    wrong = 0
    print("| 64 nodes | trials | named rightly | verdict | rounds | s, median | s, worst |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, Cluster(BIG) as cluster:
        lab = Lab(cluster, Path(folder), options=())
        for case in (*BEFORE, AFTER):
            outcomes = []
            for _ in range(given.trials):
                outcomes.append(trial(lab, case, 64))
                cluster.reset()
            right = sum(said.named == bad for bad, said in outcomes)
            wrong += len(outcomes) - right
            seconds = sorted(said.seconds for _, said in outcomes)
            verdicts = "/".join(sorted({said.verdict for _, said in outcomes}))
            rounds = sorted({int(said.document["rounds"]) for _, said in outcomes})
            print(
                f"| {case} | {len(outcomes)} | {right} | {verdicts} |"
                f" {' to '.join(str(number) for number in {rounds[0]: 0, rounds[-1]: 0})} |"
                f" {statistics.median(seconds):.1f} | {seconds[-1]:.1f} |",
                flush=True,
            )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
