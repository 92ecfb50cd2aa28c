"""Asked against used, and the flag to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpc_train.report.usage import Accounted, AskedUsed, asked_and_used
from hpc_train.runs.history_text import duration
from hpc_train.slurm.accounting import usage_in
from tests.report.made import gpu_line, make_run


def rows(
    folder: Path,
    slurm: dict[str, Any] | None = None,
    accounted: Accounted | None = None,
    *,
    use: float = 90.0,
    steps: int = 200,
    outcome: str = "completed",
) -> dict[str, AskedUsed]:
    made = make_run(folder, slurm=slurm)
    made.attempt(0, 60, steps=(0, steps), outcome=outcome)
    for node in made.nodes:
        made.watch(node, [gpu_line(5 * n, use) for n in range(10)])
    report = made.report()
    told = asked_and_used(
        report.plan, report.status.attempts, report.nodes, accounted or Accounted()
    )
    return {row.what: row for row in told}


def test_a_job_that_needs_a_fraction_of_its_time_is_told_a_shorter_one(tmp_path: Path) -> None:
    row = rows(tmp_path, {"time": "2:00:00"})["time"]
    assert (row.asked, row.used.partition(",")[0]) == (duration(7200), duration(140))
    assert row.share == pytest.approx(140 / 7200)
    assert row.advice.startswith("--time 0:15:00")


@pytest.mark.parametrize(
    ("steps", "outcome", "advice"),
    [
        (9000, "completed", ""),
        (13000, "timeout", "the limit stopped it"),
        (200, "completed", "--time"),
    ],
)
def test_a_job_that_used_its_time_is_told_nothing_or_that_it_ran_out(
    tmp_path: Path, steps: int, outcome: str, advice: str
) -> None:
    said = rows(tmp_path, steps=steps, outcome=outcome)["time"].advice
    assert said.startswith(advice)
    assert bool(said) == bool(advice)


@pytest.mark.parametrize(
    ("slurm", "asked", "advice"),
    [
        ({"mem": "256G"}, "256.0 GiB", "slurm.mem=26G"),
        ({"mem_per_gpu": "32G"}, "128.0 GiB", "slurm.mem_per_gpu=7G"),
        ({"mem_per_cpu": "8G", "cpus_per_gpu": 4}, "128.0 GiB", "slurm.mem_per_cpu=2G"),
        ({"mem": "20G"}, "20.0 GiB", "slurm.mem=26G"),  # it was full
        ({"mem": "30G"}, "30.0 GiB", ""),
        ({"mem": "0"}, "all of a node", ""),
        ({}, "the site's default", ""),
    ],
)
def test_memory_is_held_against_the_key_that_asked_for_it(
    tmp_path: Path, slurm: dict[str, Any], asked: str, advice: str
) -> None:
    row = rows(tmp_path, slurm)["memory a node"]
    assert row.asked == asked
    assert "20.0 GiB, the most of the whole node" in row.used
    assert row.advice.partition(":")[0] == advice


def test_slurms_own_count_goes_before_the_whole_nodes(tmp_path: Path) -> None:
    told = rows(
        tmp_path, {"mem": "8G", "cpus_per_gpu": 8}, Accounted(cpu_share=0.1, memory_mib=1024)
    )
    assert told["memory a node"].used.startswith("1.0 GiB, the most of the ranks")
    assert told["memory a node"].advice.startswith("slurm.mem=2G")
    assert told["CPUs a node"].asked == "32"
    assert told["CPUs a node"].used == "3.2 busy on average"
    assert told["CPUs a node"].advice.startswith("slurm.cpus_per_gpu=2")


def test_gpus_that_wait_are_told_why_and_full_ones_nothing(tmp_path: Path) -> None:
    assert "data workers" in rows(tmp_path / "a", use=20)["GPUs a node"].advice
    assert rows(tmp_path / "b", use=90)["GPUs a node"].advice == ""
    assert rows(tmp_path / "c")["GPU memory"].advice.startswith("micro_batch_size")


def test_of_a_run_that_was_hardly_more_than_its_start_nothing_is_advised(tmp_path: Path) -> None:
    short = rows(tmp_path / "a", use=20, steps=20)
    assert short["GPUs a node"].used == "20 % busy on average"
    assert short["GPUs a node"].advice == short["GPU memory"].advice == ""
    assert rows(tmp_path / "b", use=20, steps=400)["GPU memory"].advice


def test_saccts_lines_are_added_over_all_starts_of_a_job() -> None:
    usage = usage_in(
        "7|100|8|00:06:40.000|||2\n"
        "7.batch|100|8|00:00:01|20000K|1|1\n"
        "7.0|90|8|00:06:39|512M|8|2\n"
        "7|50|8|1-00:00:00||\n"
        "7|50|8|01:00:00|||2\n"
        "8|0|0|00:00:00|||1\n"
    )
    assert usage is not None
    assert usage.cpu_s == 400 + 3600
    assert usage.allocated_cpu_s == 100 * 8 + 50 * 8
    assert usage.memory_mib == 4 * 512


@pytest.mark.parametrize("text", ["", "\n", "slurm_load_jobs error", "7|||||||"])
def test_an_accounting_that_tells_nothing_gives_nothing(text: str) -> None:
    assert usage_in(text) is None
