"""What a sweep of 1,000 points costs a user's shell, on a real Slurm whose jobs have to wait."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.cluster import client_environment, closed, raised
from benchmarks.measure import compare, process
from benchmarks.places import REPOSITORY, Places
from benchmarks.rows import Row, row_of

PAIRS = 3  # the controller holds 10,000 tasks (MaxJobCount), and a pair is 2,000
TARGET = 1.5
RATES = "model.init_args.lr=" + ",".join(f"{lr / 10}" for lr in range(1, 11))


def rows(places: Places) -> Iterator[Row]:
    """`hpc-train submit --sweep` against a script with submitit's map_array alone."""
    with raised() as cluster, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        closed(cluster)
        run = partial(process, env=client_environment(cluster, home), cwd=REPOSITORY)
        shape = ["--nodes", "3", "--gpus", "4", "--runs-dir", f"{home}/runs", "--at-most", "8"]
        axes = ["--sweep", RATES, "--sweep", "seed=range(100)"]
        ours = partial(run, [places.hpc_train, "submit", *shape, "configs/digits.yaml", *axes])
        alone = [places.python, "benchmarks/peer_map_array.py", f"{home}/submitit"]
        yield row_of(
            "hpc-train submit --sweep, 1,000 points : map_array",
            compare(ours, partial(run, alone), pairs=PAIRS),
            at_most=TARGET,
        )
