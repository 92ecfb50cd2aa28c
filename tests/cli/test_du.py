"""`hpc-train du`: what runs take, by what it is."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from hpc_train.runs.disk_use import DiskUse, disk_use, size_text
from tests.cli.conftest import Slurm


def make(runs: Path, number: int, **sizes: int) -> Path:
    """A run with a file of so many bytes in each folder."""
    run = runs / "net" / f"20260101-{number:06d}-0000"
    run.mkdir(parents=True)
    (run / "plan.json").write_text("{}")
    for folder, size in sizes.items():
        (run / folder).mkdir()
        (run / folder / "file").write_bytes(b"x" * size)
    return run


def test_the_largest_run_comes_first_and_all_is_as_du_counts(
    hpc, slurm: Slurm, tmp_path: Path
) -> None:
    small = make(tmp_path / "runs", 1, attempts=10_000)
    large = make(tmp_path / "runs", 2, checkpoints=900_000, models=300_000, snapshot=50_000, own=1)
    slurm.asked()
    document = json.loads(hpc("du", "--json").out)
    assert slurm.asked() == 0
    assert [row["run"] for row in document["runs"]] == [large.name, small.name]
    for row in document["runs"]:
        told = subprocess.check_output(["du", "-s", "-B1", row["run_dir"]], text=True)
        folder_itself = Path(row["run_dir"]).stat().st_blocks * 512
        assert row["total"] + folder_itself == int(told.split()[0])
        parts = ("checkpoints", "logs", "snapshot", "other")
        assert sum(row[part] for part in parts) == row["total"]
    assert 1_200_000 <= document["runs"][0]["checkpoints"] < 1_300_000
    assert document["total"] == sum(row["total"] for row in document["runs"])
    lines = hpc("du").out.splitlines()
    assert lines[0].split() == ["NAME", "RUN", "CHECKPOINTS", "LOGS", "SNAPSHOT", "OTHER", "TOTAL"]
    assert [line.split()[1] for line in lines[1:3]] == [large.name, small.name]
    assert lines[3].startswith("2 runs ")


def test_links_are_not_followed_and_a_file_of_two_runs_counts_once(tmp_path: Path) -> None:
    one, two = make(tmp_path, 1, checkpoints=500_000), make(tmp_path, 2)
    (two / "weights").mkdir()
    os.link(one / "checkpoints" / "file", two / "weights" / "file")
    (two / "all").symlink_to(one)
    seen: set[tuple[int, int]] = set()
    first, second = disk_use([one], seen), disk_use([two], seen)
    assert first.checkpoints > 500_000
    assert second.total < 20_000
    assert disk_use([tmp_path / "absent"], seen) == DiskUse()


def test_a_sweep_is_one_row_with_its_points(hpc, slurm: Slurm, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for number in range(3):
        make(runs, 1, checkpoints=100_000).rename(runs / "net" / f"20260101-000009-aaaa-{number}")
    (runs / "net" / "20260101-000009-aaaa").mkdir()
    (runs / "net" / "20260101-000009-aaaa" / "sweep.json").write_text("{}")
    document = json.loads(hpc("du", "--json").out)
    assert [row["run"] for row in document["runs"]] == ["20260101-000009-aaaa"]
    assert document["runs"][0]["checkpoints"] > 300_000


def test_no_runs_are_told_and_no_error(hpc, slurm: Slurm) -> None:
    said = hpc("du")
    assert (said.code, said.out, said.err) == (0, "", "no runs\n")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (20 << 20, "20 MiB"), (5 << 50, "5120 TiB")],
)
def test_a_size_is_short(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.slow
def test_ten_thousand_runs_are_counted_in_seconds(hpc, slurm: Slurm, tmp_path: Path) -> None:
    for number in range(10_000):
        run = tmp_path / "runs" / "net" / f"20260101-{number:06d}-0000"
        (run / "attempts").mkdir(parents=True)
        for name in ("plan.json", "events.jsonl", "attempts/rank-0.log"):
            (run / name).write_text("{}")
    began = time.process_time()  # what others do on the machine, or its disk, is not counted
    said = hpc("du")
    took_s = time.process_time() - began
    assert said.err == "30 of 10,000 runs; --all shows them\n"
    assert said.out.splitlines()[-1].startswith("10,000 runs")
    assert took_s < 20, f"{took_s:.1f} s; alone it is under 2"
    began = time.process_time()
    assert hpc("rm", "20260101-00000*", "--yes").code == 0
    assert time.process_time() - began < 40
