"""What it costs to look at a thousand runs: beside one squeue and the start of a Python."""

from __future__ import annotations

import os
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
from hpc_train.store.layout import RunDir
from tests.cluster import Cluster

PAIRS = 15
TARGET = 2.0
RUNS = 1000
RUNNING = 6
PENDING = 34
ASKING = ("squeue", "sacct", "scontrol", "sinfo")


def rows(places: Places) -> Iterator[Row]:
    """`list` of 1,000 runs and `status` of their newest, and how often Slurm is asked."""
    with raised() as cluster, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = client_environment(cluster, home)
        runs = _thousand_runs(places, cluster, home, env)
        run = partial(process, env=env, cwd=home)

        def bare() -> Cost:
            return run(["squeue"]) + run([places.python, "-c", "pass"])

        for name, at_most in (("list", TARGET), ("status", None)):
            command = [places.hpc_train, name, "--runs-dir", str(runs)]
            yield _queries(command, home, env)
            compared = compare(partial(run, command), bare, pairs=PAIRS)
            of = "" if at_most else "the newest of "
            what = f"hpc-train {name}, {of}{RUNS} runs : squeue + python"
            yield row_of(what, compared, at_most=at_most)


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


def _queries(command: list[str], home: Path, env: Mapping[str, str]) -> Row:
    """Run it once with every asking command of Slurm replaced by one that counts itself."""
    counting, log = home / "counting", home / "asked"
    counting.mkdir(exist_ok=True)
    log.write_text("")
    for name in ASKING:
        real = subprocess.run(["which", name], capture_output=True, text=True, check=True)
        wrapper = counting / name
        wrapper.write_text(f'#!/bin/sh\necho {name} >> {log}\nexec {real.stdout.strip()} "$@"\n')
        wrapper.chmod(0o755)
    counted = {**env, "PATH": f"{counting}{os.pathsep}{env['PATH']}"}
    done = subprocess.run(
        command, env=counted, cwd=home, capture_output=True, text=True, check=True
    )
    lines = done.stdout.count("\n")
    if command[1] == "list" and lines != RUNS + 1:
        raise BenchError(f"hpc-train list printed {lines} lines for {RUNS} runs and a header")
    asked = log.read_text().split()
    return Row(
        what=f"hpc-train {command[1]}, {RUNS} runs : queries of Slurm",
        ours=str(len(asked)),
        peer="1",
        ratio=f"{len(asked)}",
        target="<= 1",
        ok=len(asked) <= 1,
    )
