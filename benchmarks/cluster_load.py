"""What a run costs others: questions to Slurm's controller, requests to the shared file system."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.cluster import client_environment, closed, raised
from benchmarks.many_runs import make_runs
from benchmarks.measure import BenchError, process
from benchmarks.places import REPOSITORY, Places
from benchmarks.rows import Row, memory_row
from hpc_train.runs.layout import RunDir
from tests.cluster import Cluster
from tests.cluster.counting import Counting

NODES, PER_NODE = 128, 8
RANKS = NODES * PER_NODE
WATCHED_S, BEGUN_S = 30, 5
FOLLOWED_S = 130
CALL = re.compile(r"^\d+ +(\w+)\(")
LOOKED = ("status", "list --all", "report")


def rows(places: Places) -> Iterator[Row]:
    """Calls of Slurm's programs, requests to the file system, and the supervisor's own share."""
    yield from _slurm_rows(places)
    with tempfile.TemporaryDirectory() as folder:
        yield from _file_rows(Path(folder))
        yield from _supervisor_rows(Path(folder))


def _slurm_rows(places: Places) -> Iterator[Row]:
    with raised() as cluster, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        counting = Counting(home / "counting")
        env = counting.environment(client_environment(cluster, home))
        yield from _run_row(places, home, env, counting)
        closed(cluster)
        for number in (1, 100, 1000):
            runs = _waiting_runs(places, cluster, home, env, number)
            for words in LOOKED:
                before = len(counting.calls())
                process([places.hpc_train, *words.split(), "--runs-dir", str(runs)], env=env)
                asked = [call.program for call in counting.calls()[before:]]
                yield _calls(f"hpc-train {words}, {number} runs that wait", Counter(asked), 2)
        yield _followed(places, home, env, counting)


def _run_row(
    places: Places, home: Path, env: Mapping[str, str], counting: Counting
) -> Iterator[Row]:
    config = f"{REPOSITORY}/configs/digits.yaml"
    words = ["submit", "--nodes", "2", "--gpus", "1", config, "--follow", "--json"]
    argv = [places.hpc_train, *words, "--runs-dir", str(home / "runs-1")]
    done = subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout)["job_id"]
    yield _calls("a run on 2 nodes: its job, to its end", counting.of_job(job), 8)
    yield _calls("hpc-train submit --follow of it", counting.from_outside(), 8)


def _waiting_runs(
    places: Places, cluster: Cluster, home: Path, env: Mapping[str, str], number: int
) -> Path:
    """A folder of that many runs, the job of each of which waits."""
    job = cluster.sbatch([f"--array=0-{number - 1}"], "#!/bin/sh\nexec sleep 3600\n")
    template = home / f"template-{number}"
    words = ["submit", "--runs-dir", str(template), f"{REPOSITORY}/configs/digits.yaml"]
    process([places.hpc_train, *words], env=env, cwd=REPOSITORY)
    (made,) = template.glob("*/*")
    make_runs(RunDir(made), home / f"many-{number}", 0, [f"{job}_{k}" for k in range(number)])
    return home / f"many-{number}"


def _followed(places: Places, home: Path, env: Mapping[str, str], counting: Counting) -> Row:
    argv = [places.hpc_train, "submit", "--follow", "--runs-dir", str(home / "followed")]
    before = len(counting.calls())
    child = subprocess.Popen(
        [*argv, f"{REPOSITORY}/configs/digits.yaml"],
        env=env,
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(FOLLOWED_S)
    child.terminate()
    child.wait()
    asked = Counter(call.program for call in counting.calls()[before:])
    return _calls(f"--follow of a run that waits, {FOLLOWED_S} s of it", asked, FOLLOWED_S // 10)


def _calls(what: str, asked: Mapping[str, int], at_most: int) -> Row:
    total = sum(asked.values())
    each = ", ".join(f"{count} {name}" for name, count in sorted(asked.items()))
    return Row(
        what=f"{what}: {each or 'none'}",
        ours=f"{total} calls",
        peer="",
        ratio="",
        target=f"<= {at_most}",
        ok=total <= at_most,
    )


def _file_rows(folder: Path) -> Iterator[Row]:
    if shutil.which("strace") is None:
        raise BenchError("strace is not on the PATH: install it to count requests")
    for shared in (False, True):
        run = folder / f"ranks-{shared:d}"
        argv = ["ranks", str(run), str(PER_NODE), str(PER_NODE), f"{shared:d}"]
        calls = _traced(folder, run, [*argv, str(WATCHED_S + BEGUN_S)])
        calls -= _traced(folder, run, [*argv, str(BEGUN_S)])  # the start and the end
        each_s = sum(calls.values()) / WATCHED_S
        writer = "one writer a node" if shared else "a writer a rank"
        made = calls["rename"] / WATCHED_S / PER_NODE * 3600
        yield Row(
            what=f"{writer}: requests a second of a node's 8 ranks",
            ours=f"{each_s:.1f}",
            peer="",
            ratio="",
        )
        yield Row(what=f"{writer}: files a rank and hour", ours=f"{made:.0f}", peer="", ratio="")
        yield Row(
            what=f"{writer}: the same of {RANKS} ranks on {NODES} nodes, a second",
            ours=f"{each_s * NODES:.0f}",
            peer="",
            ratio="",
            target="<= 1000" if shared else "",
            ok=each_s * NODES <= 1000 if shared else None,
        )


def _traced(folder: Path, run: Path, argv: Sequence[str]) -> Counter[str]:
    """Requests below `run`, by the system call; a file that was opened is closed, too."""
    log = folder / "strace"
    traced = ["strace", "-f", "-e", "trace=%file", "-o", str(log)]
    python = [sys.executable, "-m", "benchmarks.load_parts", *argv]
    subprocess.run([*traced, *python], cwd=REPOSITORY, check=True)
    calls: Counter[str] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        found = CALL.match(line)
        if found and f'"{run}/' in line:
            calls[found[1]] += 1
            calls["close"] += found[1].startswith("open") and "ENOENT" not in line
    return calls


def _supervisor_rows(folder: Path) -> Iterator[Row]:
    for shared in (False, True):
        run = folder / f"watched-{shared:d}"
        part = [sys.executable, "-m", "benchmarks.load_parts"]
        numbers = [str(RANKS), str(PER_NODE)]
        simulator = subprocess.Popen(
            [*part, "simulated", str(run), *numbers, f"{shared:d}"], cwd=REPOSITORY
        )
        try:
            time.sleep(5)
            argv = [*part, "supervisor", str(run), *numbers, "60"]
            done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        finally:
            simulator.kill()
            simulator.wait()
        used = json.loads(done.stdout)
        if used["hang"]:
            raise BenchError("the supervisor took the simulated ranks for a hang")
        yield from _used_rows("one file a node" if shared else "a file a rank", used)


def _used_rows(how: str, used: Mapping[str, float]) -> Iterator[Row]:
    share, memory = used["cpu_share"], used["memory_mb"]
    yield Row(
        what=f"supervisor of {RANKS} ranks, {how}: share of a core",
        ours=f"{share:.1%}",
        peer="",
        ratio="",
        target="<= 5 %",
        ok=share <= 0.05,
    )
    yield memory_row(f"supervisor of {RANKS} ranks, {how}: memory", memory, at_most_mb=200)
