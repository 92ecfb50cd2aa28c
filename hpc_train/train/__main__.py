"""`python -m hpc_train.train`: one rank, started by srun or torchrun."""

from __future__ import annotations

import sys

from hpc_train.train.rank import main

if __name__ == "__main__":
    sys.exit(main())
