"""`python -m hpc_train.doctor RUNS_DIR MADE`: one node, started by srun."""

from __future__ import annotations

import sys
from pathlib import Path

from hpc_train.doctor.on_nodes import report_node

if __name__ == "__main__":
    sys.stdout.write(report_node(Path(sys.argv[1]), Path(sys.argv[2])) + "\n")
