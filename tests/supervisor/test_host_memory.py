"""A machine without Slurm that has no memory left for its training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.supervisor.host_memory import oom_kills

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "faults" / "tiny.yaml"
LIMIT = 1200 << 20
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("pgfault 7\noom_kill 3\nnuma_hit 9\n", 3),
        ("oom_kill 0\n", 0),
        ("pgfault 7\n", 0),
        ("thp_oom_kill 5\n", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_the_kernel_counts_whom_it_killed_for_memory(
    text: str | None, count: int, tmp_path: Path
) -> None:
    """One before Linux 4.13 does not, and no other system does."""
    vmstat = tmp_path / "vmstat"
    if text is not None:
        vmstat.write_text(text)
    assert oom_kills(vmstat) == count


@pytest.fixture
def small_memory(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The `cgroup.procs` of a memory cgroup that holds little."""
    version1 = (V1 / "memory.limit_in_bytes").exists()
    if os.geteuid() != 0 or not (version1 or (V2 / "memory.max").exists() or _v2_has_memory()):
        pytest.skip("needs root and a memory cgroup of its own")
    group = (V1 if version1 else V2) / f"hpc-train-{os.getpid()}"
    group.mkdir()
    (group / ("memory.limit_in_bytes" if version1 else "memory.max")).write_text(str(LIMIT))
    yield group / "cgroup.procs"
    group.rmdir()


def _v2_has_memory() -> bool:
    control = V2 / "cgroup.subtree_control"
    return control.exists() and "memory" in control.read_text().split()


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_rank_that_the_kernel_kills_for_memory_is_told_so_and_not_tried_again(
    small_memory: Path, tmp_path: Path, ranks: int
) -> None:
    words = ["--nodes", "1", "--gpus", str(ranks), "model.class_path=tests.faults.grows.Grows"]
    command = [sys.executable, "-m", "hpc_train.cli", "run", str(TINY), *words]
    inside = ["bash", "-c", f'echo $$ > {small_memory} && exec "$@"', "bash", *command]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        [*inside, f"runs_dir={tmp_path}/runs"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 10, done.stdout + done.stderr
    (run,) = (tmp_path / "runs" / "tiny").glob("2*")
    shown = [sys.executable, "-m", "hpc_train.cli", "status", "--json", str(run)]
    said = subprocess.run(shown, env=env, capture_output=True, text=True, check=True).stdout
    (only,) = json.loads(said)["attempts"]
    assert (only["outcome"], only["rank"]) == ("out_of_memory", ranks - 1)
    assert "ran out of host memory, and its kernel killed the process" in only["reason"]
    assert "fix        less memory used on the host (fewer or smaller workers" in done.stdout
