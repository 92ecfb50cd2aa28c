"""`python -m benchmarks [--peers VENV] [NAME ...]`: all benchmarks, or those named."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.places import PEERS_VARIABLE, Places
from benchmarks.rows import print_benchmark, print_header

# The order is that of the price: seconds first, minutes last.
NAMES = (
    "help_pages",
    "rendering",
    "doctor_time",
    "snapshot_time",
    "submission",
    "sweeping",
    "listing",
    "reporting",
    "watching",
    "fetching",
    "buckets",
    "nccl_log",
    "diagnose",
    "cluster_load",
    "ranks",
    "resume_costs",
    "script_step",
    "faults",
)


def main() -> int:
    """Run them; 1 when a target is missed or a benchmark could not run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--peers", type=Path, metavar="VENV", help=f"venv of the peers (or {PEERS_VARIABLE})"
    )
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    # As users have it: where modules may not be kept compiled, each command compiles ours anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    places = Places.find(options.peers)
    print_header()
    missed = 0
    for name in options.names or NAMES:
        # Each in a process of its own: the largest size of a child counts its parent's at the fork
        # (getrusage(2), Linux), and one benchmark's data made the next one's commands look large.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            missed += alone.submit(print_benchmark, name, places).result()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
