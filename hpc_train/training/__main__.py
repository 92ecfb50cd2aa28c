"""`python -m hpc_train.training`: one rank, started by srun or torchrun."""

from __future__ import annotations

import sys

from hpc_train.training.rank import main

if __name__ == "__main__":
    sys.exit(main())
