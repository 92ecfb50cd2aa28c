"""The console script."""

from __future__ import annotations

import gc
import sys

# A command lives for a fraction of a second; collecting every 700 new objects, which is Python's
# default, takes a tenth of the time in which click and the command are imported.
COLLECT_EVERY = 100_000


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(COLLECT_EVERY)
    try:
        from hpc_train.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)

    run()
