"""What it costs to look at runs among a thousand: beside one squeue and the start of a Python."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.cluster import client_environment, closed, raised
from benchmarks.many_runs import make_runs
from benchmarks.measure import BenchError, Cost, compare, process
from benchmarks.places import REPOSITORY, Places
from benchmarks.rows import Row, row_of
from hpc_train.runs.layout import RunDir
from tests.cluster import Cluster
from tests.cluster.counting import Counting

PAIRS = 15
RUNS = 1000
NEWEST = 30
RUNNING = 6
PENDING = 34


def rows(places: Places) -> Iterator[Row]:
    """`list` of the newest of 1,000 runs and of all, `status` of the newest, and Slurm's share."""
    with raised() as cluster, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = client_environment(cluster, home)
        runs = _thousand_runs(places, cluster, home, env)
        run = partial(process, env=env, cwd=home)

        def bare() -> Cost:
            return run(["squeue"]) + run([places.python, "-c", "pass"])

        for words, lines in (("list", NEWEST + 1), ("list --all", RUNS + 1), ("status", None)):
            command = [places.hpc_train, *words.split(), "--runs-dir", str(runs)]
            yield _queries(words, command, lines, home, env)
            compared = compare(partial(run, command), bare, pairs=PAIRS)
            yield row_of(f"hpc-train {words}, {RUNS} runs : squeue + python", compared)


def _thousand_runs(places: Places, cluster: Cluster, home: Path, env: Mapping[str, str]) -> Path:
    sleep = "#!/bin/sh\nexec sleep 3600\n"
    active = [cluster.sbatch(["--ntasks=1"], sleep) for _ in range(RUNNING)]
    for job_id in active:
        cluster.wait(job_id, "RUNNING")
    closed(cluster)
    active += [cluster.sbatch(["--ntasks=1"], sleep) for _ in range(PENDING)]
    first = ["submit", "--runs-dir", f"{home}/template", "configs/digits.yaml"]
    process([places.hpc_train, *first], env=env, cwd=REPOSITORY)
    (made,) = (home / "template").glob("*/*")
    make_runs(RunDir(made), home / "runs", RUNS - len(active), active)
    return home / "runs"


def _queries(
    words: str, command: list[str], lines: int | None, home: Path, env: Mapping[str, str]
) -> Row:
    """Run it once with every program of Slurm replaced by one that counts itself."""
    counting = Counting(home / "counting")
    done = subprocess.run(
        command,
        env=counting.environment(env),
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = done.stdout.count("\n")
    if lines is not None and printed != lines:
        raise BenchError(f"hpc-train {words} printed {printed} lines, not {lines}")
    asked = counting.calls()
    return Row(
        what=f"hpc-train {words}, {RUNS} runs : queries of Slurm",
        ours=str(len(asked)),
        peer="1",
        ratio=f"{len(asked)}",
        target="<= 1",
        ok=len(asked) <= 1,
    )
