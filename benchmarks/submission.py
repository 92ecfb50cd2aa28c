"""What one submission costs a user's shell, on a real Slurm whose jobs have to wait."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.cluster import client_environment, closed, raised
from benchmarks.measure import compare, process
from benchmarks.places import REPOSITORY, Places
from benchmarks.rows import Row, row_of

PAIRS = 15
TARGET = 2.0
SHAPE = ["--nodes=3", "--ntasks-per-node=4", "--gres=gpu:4", "--time=30"]


def rows(places: Places) -> Iterator[Row]:
    """`hpc-train submit` against a script with submitit alone, and beside a bare sbatch."""
    with raised() as cluster, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        closed(cluster)
        env = client_environment(cluster, home)
        run = partial(process, env=env, cwd=REPOSITORY)
        config = [
            "--nodes",
            "3",
            "--gpus",
            "4",
            "--runs-dir",
            f"{home}/runs",
            "configs/digits.yaml",
        ]
        ours = partial(run, [places.hpc_train, "submit", *config])
        alone = [places.python, "benchmarks/peer_submitit.py", f"{home}/submitit"]
        yield row_of(
            "hpc-train submit : submitit alone",
            compare(ours, partial(run, alone), pairs=PAIRS),
            at_most=TARGET,
        )
        script = home / "job.sbatch"
        script.write_text("#!/bin/sh\nsrun true\n")
        bare = ["sbatch", *SHAPE, f"--chdir={home}", str(script)]
        compared = compare(ours, partial(run, bare), pairs=PAIRS)
        yield row_of("hpc-train submit : bare sbatch", compared)
