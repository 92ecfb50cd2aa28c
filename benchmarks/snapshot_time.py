"""How long `snapshot: git` takes for 10,000 files, beside `cp -r` of the same tree."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, compare, process
from benchmarks.places import Places
from benchmarks.rows import Row, row_of
from hpc_train.config.origins import NOWHERE
from hpc_train.config.schema import SnapshotConfig
from hpc_train.runs.snapshot import select, take

FILES = 10_000
FOLDERS = 100
PAIRS = 5
AT_MOST_S = 2.0


def rows(_places: Places) -> Iterator[Row]:
    """Choosing and copying; the target is in seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = _project(folder / "project")
        compared = compare(
            lambda: _snapshot(project, folder / "run"),
            lambda: _copy(project, folder / "peer"),
            pairs=PAIRS,
        )
    row = row_of(f"snapshot of {FILES:,} files : cp -r", compared)
    yield dataclasses.replace(row, target=f"< {AT_MOST_S:g} s", ok=compared.ours.wall_s < AT_MOST_S)


def _project(folder: Path) -> Path:
    for number in range(FILES):
        place = folder / f"package{number % FOLDERS}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"module{number}.py").write_text("x = 1\n" * (200 + number % 400))
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def _snapshot(project: Path, run: Path) -> Cost:
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir()
    began, cpu = time.perf_counter(), time.process_time()
    take(select(SnapshotConfig(mode="git"), project, project / "runs", NOWHERE), run)
    return Cost(time.perf_counter() - began, time.process_time() - cpu)


def _copy(project: Path, target: Path) -> Cost:
    shutil.rmtree(target, ignore_errors=True)
    return process(["cp", "-r", str(project), str(target)])
