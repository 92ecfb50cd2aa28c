"""`hpc-train bench` and what it refuses, before anything is submitted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS, Slurm


def nothing_made(folder: Path) -> bool:
    return not list(folder.glob("runs*"))


def test_a_dry_run_names_each_shape_and_touches_nothing(hpc, tmp_path: Path) -> None:
    said = hpc("bench", DIGITS, "--nodes", "1,2,3", "--gpus", "1,2", "--dry-run")
    rows = [line.split() for line in said.out.splitlines()[1:]]
    assert ["".join(row[:3]) for row in rows] == ["1x1", "1x2", "2x1", "2x2", "3x1", "3x2"]
    assert " ".join(rows[-1][4:]) == "96 = 16 x 1 x 6"
    assert "nothing was submitted" in said.err
    words = ("--vary", "trainer.precision=32,bf16-mixed", "--dry-run", "--json")
    told = json.loads(hpc("bench", DIGITS, "--nodes", "2", *words).out)
    assert told["points"] == [
        {"slurm.nodes": 2, "trainer.precision": 32},
        {"slurm.nodes": 2, "trainer.precision": "bf16-mixed"},
    ]
    assert nothing_made(tmp_path)


def test_a_configs_own_sweep_can_be_left_out(hpc, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        f"base: {DIGITS}\nsweep: {{model: {{init_args: {{lr: [1, 2]}}}}}}"
    )
    assert "is a sweep over model" in hpc("bench", "s.yaml", "--nodes", "1", "--dry-run").err
    said = hpc("bench", "s.yaml", "sweep={}", "--nodes", "1,2", "--dry-run")
    assert [line.split()[0] for line in said.out.splitlines()] == ["SHAPE", "1", "2"]


def test_without_a_shape_it_is_that_of_the_config(hpc) -> None:
    said = hpc("bench", DIGITS, "--dry-run")
    assert said.out.splitlines()[1].startswith("2 x 2  -")


def test_a_shape_that_cannot_share_the_batch_is_named(hpc) -> None:
    refused = hpc("bench", DIGITS, "--nodes", "1,5", "--gpus", "1", "--dry-run")
    assert refused.code == 3
    assert "slurm.nodes=5 slurm.gpus_per_node=1: " in refused.err
    assert "cannot be split over 5 ranks" in refused.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--nodes", ""), "slurm.nodes has no values"),
        (("--nodes", "1,1"), "has 1 twice"),
        (("--nodes", "0"), "slurm.nodes"),
        (("--nodes", "two"), "slurm.nodes"),
        (("--vary", "trainer.precison=32,16"), "did you mean"),
        (("--steps", "1"), "5"),
        (("--nodes", "1,2", "--vary", "slurm.nodes=1,2"), "slurm.nodes is to vary twice"),
        (("--nodes", "1", "--html", "."), "--html . cannot be written"),
        (("--nodes", "1", "--html", "no/x.html"), "--html no/x.html cannot be written"),
        (("sweep={seed: [1, 2]}",), "is a sweep over seed"),
        (("hosts=[a]", "--nodes", "1"), "hosts"),
    ],
)
def test_what_is_no_bench_is_refused_in_one_line(
    hpc, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    said = hpc("bench", DIGITS, "--cluster", "local", *words)
    assert said.code in (2, 3), said.err
    assert says in said.err
    assert "Traceback" not in said.err
    assert nothing_made(tmp_path)


def test_a_shape_larger_than_the_partition_is_refused_before_any_is_submitted(
    hpc, taken: Slurm, tmp_path: Path
) -> None:
    taken.has("sbatch", f"echo >> {taken.folder}/sent; echo Submitted batch job 7")
    taken.has("sinfo", "echo 'train*|infinite|3|1-infinite|8|gpu:4|n[1-3]|N/A'")
    said = hpc("bench", DIGITS, "--nodes", "1,4", "--gpus", "1")
    assert said.code == 4
    assert "write --nodes 3 or fewer" in said.err
    assert not (taken.folder / "sent").exists()
    assert nothing_made(tmp_path)


def test_where_what_was_submitted_cannot_be_cancelled_both_errors_are_told(
    hpc, taken: Slurm, tmp_path: Path
) -> None:
    first = f"if [ -e {taken.folder}/sent ]; then echo 'sbatch: error: Invalid qos' >&2; exit 1; fi"
    taken.has("sbatch", f"{first}; echo > {taken.folder}/sent; echo Submitted batch job 7")
    taken.has("scancel", "echo 'scancel: error: Unable to contact slurm controller' >&2; exit 1")
    taken.says("7|PENDING|None|N/A")
    said = hpc("bench", DIGITS, "--nodes", "1,2", "--gpus", "1", "--no-wait")
    (error,) = (line for line in said.err.splitlines() if line.startswith("error: "))
    assert said.code == 1
    assert error.index("Invalid qos") < error.index("Unable to contact slurm controller")
    bench = said.err.rpartition("hpc-train cancel ")[2].strip()
    assert (tmp_path / "runs" / "digits-bench" / bench / "sweep.json").exists()


def test_each_shape_is_a_job_of_the_same_name_that_waits_for_the_one_before(
    hpc, taken: Slurm, tmp_path: Path
) -> None:
    taken.says("7|PENDING|Dependency|N/A")
    said = hpc("bench", DIGITS, "--nodes", "1,2", "--gpus", "1", "--no-wait", "--json")
    told = json.loads(said.out)
    assert [(row["shape"], row["state"]) for row in told["rows"]] == [
        ("1 x 1", "pending"),
        ("2 x 1", "pending"),
    ]
    assert told["chosen"] is None
    for number in (0, 1):
        script = Path(f"{told['bench_dir']}-{number}", "job.sbatch").read_text()
        assert "#SBATCH --job-name=digits-bench" in script
        assert "#SBATCH --dependency=singleton" in script
        assert "#SBATCH --no-requeue" in script
        assert f"#SBATCH --nodes={number + 1}" in script
    listed = json.loads(hpc("list", "--json").out)["runs"]
    assert [row["name"] for row in listed] == ["digits-bench"]
    assert "2 points: 2 pending" in hpc("status", told["bench"]).out
    assert "is a bench" in hpc("resume", told["bench"]).err
    again = hpc("bench", told["bench"], "--show")
    assert "1 x 1" in again.out
    assert again.code == 1, "there is no number yet"


@pytest.mark.parametrize(
    ("words", "time"),
    [
        (("slurm.time=2:00:00",), "2:00:00"),
        (("--time", "0:50:00"), "0:50:00"),
        ((), "0:30:00"),
    ],
)
def test_a_bench_asks_for_half_an_hour_unless_it_is_told_otherwise(
    hpc, taken: Slurm, tmp_path: Path, words: tuple[str, ...], time: str
) -> None:
    (tmp_path / "long.yaml").write_text(f'base: {DIGITS}\nslurm: {{time: "1-00:00:00"}}\n')
    taken.says("7|PENDING|Dependency|N/A")
    told = json.loads(hpc("bench", "long.yaml", *words, "--no-wait", "--json").out)
    script = Path(f"{told['bench_dir']}-0", "job.sbatch").read_text()
    assert f"#SBATCH --time={time}\n" in script


def test_a_refusal_of_a_later_shape_leaves_no_earlier_one(
    hpc, taken: Slurm, tmp_path: Path
) -> None:
    refuse = "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1"
    there = f"{taken.folder}/sent"
    taken.has(
        "sbatch", f"test -e {there} && {{ {refuse}; }}; touch {there}; echo Submitted batch job 7"
    )
    taken.has("scancel", f'echo "$@" >> {taken.folder}/cancelled')
    taken.says("7|PENDING|Dependency|N/A")
    said = hpc("bench", DIGITS, "--nodes", "1,2", "--gpus", "1")
    assert said.code == 4
    assert (taken.folder / "cancelled").read_text() == "7\n"
    assert nothing_made(tmp_path)


@pytest.mark.parametrize("words", [["--no-wait"], ["--dry-run"], []])
def test_a_page_that_will_not_be_written_is_refused_before_anything_is_measured(
    hpc, taken: Slurm, tmp_path: Path, words: list[str]
) -> None:
    taken.has("sbatch", f"touch {taken.folder}/sent; echo Submitted batch job 7")
    page = "page.html" if words else "nowhere/page.html"
    said = hpc("bench", DIGITS, "--gpus", "1", "--html", page, *words)
    assert said.code == 2
    assert said.err.startswith("error: --html")
    assert not (taken.folder / "sent").exists()
    assert nothing_made(tmp_path)


def test_what_is_no_bench_has_no_table(hpc) -> None:
    said = hpc("bench", "nothing", "--show")
    assert said.code == 5
    assert "no bench answers to 'nothing'" in said.err


def test_a_bench_first_is_for_slurm_and_alone(hpc, without_slurm: None) -> None:
    said = hpc("submit", DIGITS, "--bench-first", "--smoke")
    assert (said.code, "exclude one another" in said.err) == (2, True)
    said = hpc("submit", DIGITS, "--bench-first")
    assert (said.code, "--bench-first is for Slurm" in said.err) == (2, True)
