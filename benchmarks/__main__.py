"""`python -m benchmarks [--peers VENV] [NAME ...]`: all benchmarks, or those named."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from benchmarks.measure import BenchError
from benchmarks.places import PEERS_VARIABLE, Places
from benchmarks.rows import Row, print_header, print_row

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
        try:
            for row in importlib.import_module(f"benchmarks.{name}").rows(places):
                print_row(row)
                missed += row.ok is False
        except BenchError as error:
            print_row(Row(what=f"{name}: not run", ours="", peer="", ratio=""))
            print(f"{name}: {error}", file=sys.stderr)
            missed += 1
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
