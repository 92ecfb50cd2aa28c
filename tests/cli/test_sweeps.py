"""What the commands say of a sweep, with a Slurm that takes every job as its number 7."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from hpc_train.errors import HpcTrainError
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.sweep_dir import SweepDir
from hpc_train.supervisor.__main__ import point_of_job
from tests.cli.conftest import DIGITS, Slurm

SWEEP = ("submit", DIGITS, "--sweep", "model.init_args.lr=0.1,0.2", "--sweep", "seed=range(2)")


@pytest.fixture
def array(slurm: Slurm) -> Slurm:
    slurm.has("sbatch", f'echo "$@" > {slurm.folder}/options\necho 7')
    slurm.has("scancel", f'echo "$@" >> {slurm.folder}/cancelled')
    for program in ("srun", "sinfo"):
        slurm.has(program, "exit 1")
    slurm.has("scontrol", "printf 'MaxArraySize            = 9\\nMaxJobCount = 10000\\n'")
    slurm.says(*(f"7_{number}|PENDING|Priority|N/A" for number in range(4)))
    return slurm


def points(folder: Path) -> list[str]:
    return sorted(path.name.rpartition("-")[2] for path in folder.glob("runs/digits/*-*-*-*"))


def test_a_run_of_a_rendered_script_before_it_is_not_what_its_name_means(
    hpc, array: Slurm, make_run, tmp_path: Path
) -> None:
    """Its id begins with its host, behind all that begin with a year."""
    old = make_run(0, ended=True, run_id="site-25")
    target = tmp_path / "runs" / "digits" / "site-25"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(old.path, target)
    os.utime(target / "plan.json", (1e9, 1e9))
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    assert json.loads(hpc("status", "digits", "--json").out)["sweep"] == sweep["sweep"]
    os.utime(target / "plan.json", (9e9, 9e9))
    assert json.loads(hpc("status", "digits", "--json").out)["run"] == "site-25"
    os.utime(target / "plan.json", (1e9, 1e9))
    assert hpc("cancel", "digits").code == 0
    assert (array.folder / "cancelled").read_text().strip().endswith("7")


def ended(sweep: dict[str, str], number: int, state: str, **metrics: float) -> None:
    run = Path(f"{sweep['sweep_dir']}-{number}")
    event = Event(9e9, EventKind.RUN_ENDED, {"state": state, "reason": "so it was"})
    append_event(run / "events.jsonl", event)
    (run / "metrics" / "final.json").write_text(json.dumps(metrics))


def test_a_sweep_is_one_submission_and_its_runs_are_made_when_they_are_named(
    hpc, array: Slurm, tmp_path: Path
) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    assert (sweep["job_id"], sweep["points"]) == ("7", 4)
    assert points(tmp_path) == []
    array.asked()
    status = json.loads(hpc("status", sweep["sweep"], "--json").out)
    assert array.asked() == 1
    assert status["states"] == {"pending": 4}
    assert status["points"][2]["overrides"] == {"model.init_args.lr": 0.2, "seed": 0}
    one = json.loads(hpc("status", f"{sweep['sweep']}-2", "--json").out)
    assert (one["state"], one["job_id"]) == ("pending", "7_2")
    assert points(tmp_path) == ["2"]
    assert json.loads(hpc("status", "7_3", "--json").out)["run"] == f"{sweep['sweep']}-3"
    assert hpc("status", f"{sweep['sweep']}-4").code == 5
    for reference in ("digits", "7", sweep["sweep_dir"]):
        assert json.loads(hpc("status", reference, "--json").out)["sweep"] == sweep["sweep"]
    assert f"sweep {sweep['sweep']}" in hpc("status").out, "the newest"
    said = hpc("logs", sweep["sweep"])
    assert (said.code, f"{sweep['sweep']}-0" in said.err) == (5, True)


def test_a_table_names_each_point_and_the_best(hpc, array: Slurm) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    for number in range(4):
        hpc("status", f"{sweep['sweep']}-{number}")
    assert "no point has metrics yet" in hpc("status", sweep["sweep"], "--best", "val_acc").err
    ended(sweep, 0, "completed", val_acc=0.5, val_loss=0.9)
    ended(sweep, 1, "completed", val_acc=0.9, val_loss=0.4)
    ended(sweep, 2, "completed", val_acc=float("nan"), val_loss=0.2)
    said = hpc("status", sweep["sweep"], "--best", "val_acc").out.splitlines()
    assert said[0].endswith("4 points: 1 pending, 3 completed")
    assert said[4].split() == ["POINT", "lr", "seed", "STATE", "STEP", "val_acc", "val_loss", "WHY"]
    assert said[6].split() == ["1", "0.1", "1", "completed", "0", "0.9", "0.4"]
    assert said[-1] == "best       point 1  val_acc 0.9 (max)  model.init_args.lr=0.1 seed=1"

    def best(metric: str) -> int:
        said = hpc("status", sweep["sweep"], "--json", "--best", metric)
        return int(json.loads(said.out)["best"]["point"])

    assert [best("val_loss"), best("val_loss:max"), best("val_acc:min")] == [2, 0, 0]
    assert "did you mean 'val_acc'" in hpc("status", sweep["sweep"], "--best", "val_ac").err
    assert hpc("status", sweep["sweep"], "--best", "val_acc:high").code == 2
    assert "--best is for a sweep" in hpc("status", f"{sweep['sweep']}-1", "--best", "x").err


def test_a_report_of_a_sweep_is_of_the_points_that_have_begun(hpc, array: Slurm) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    nothing = hpc("report", sweep["sweep"])
    assert nothing.code == 1
    assert "no point of the sweep" in nothing.err
    for number in (0, 3):
        hpc("status", f"{sweep['sweep']}-{number}")
        ended(sweep, number, "completed", val_acc=0.5 + number / 10)
    told = json.loads(hpc("report", sweep["sweep"], "--json").out)
    assert [run["run"] for run in told["runs"]] == [f"{sweep['sweep']}-{n}" for n in (0, 3)]
    assert [row["metrics"]["val_acc"] for row in told["compared"]] == [0.5, 0.8]
    assert hpc("report").out.count("completed") >= 2, "the newest is the sweep"


def test_a_list_has_one_line_for_a_sweep_and_asks_slurm_once(hpc, array: Slurm) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    hpc("status", f"{sweep['sweep']}-1")
    array.asked()
    (row,) = json.loads(hpc("list", "--json").out)["runs"]
    assert array.asked() == 1
    assert (row["run"], row["state"], row["points"]) == (sweep["sweep"], "pending", {"pending": 4})
    assert "4 points: 4 pending" in hpc("list").out
    (row,) = json.loads(hpc("list", "--points", "--json").out)["runs"]
    assert row["run"] == f"{sweep['sweep']}-1"


def test_diagnose_of_a_sweep_tells_of_the_point_that_failed(hpc, array: Slurm) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    for number in range(4):
        hpc("status", f"{sweep['sweep']}-{number}")
        ended(sweep, number, "failed" if number == 2 else "completed")
    said = hpc("diagnose", sweep["sweep"])
    assert said.code == 3
    assert f"{sweep['sweep']}-2" in said.out
    assert "so it was" in said.out
    ended(sweep, 0, "failed")
    both = hpc("diagnose", sweep["sweep"])
    assert both.code == 5
    assert f"did not end well: {sweep['sweep']}-0: so it was; {sweep['sweep']}-2: so it" in both.err
    assert f"fix: hpc-train diagnose {sweep['sweep']}-0" in both.err


def test_a_sweep_is_cancelled_at_once_and_resumed_as_one_array(hpc, array: Slurm) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json", "--at-most", "3").out)
    hpc("status", f"{sweep['sweep']}-1")
    ended(sweep, 1, "completed")
    assert json.loads(hpc("cancel", "digits", "--json").out)["points"] == [0, 2, 3]
    assert (array.folder / "cancelled").read_text() == "7\n", "the array, once"
    array.says(*(f"7_{number}|CANCELLED|None|N/A" for number in range(4)))
    assert json.loads(hpc("status", "7", "--json").out)["states"] == {
        "cancelled": 3,
        "completed": 1,
    }
    refused = hpc("resume", sweep["sweep"], "--dry-run")
    assert (refused.code, "-0" in refused.err) == (2, True)
    assert json.loads(hpc("resume", sweep["sweep"], "--json").out)["points"] == [0, 2, 3]
    assert "--array=0,2-3%3" in (array.folder / "options").read_text()


def test_a_sweep_of_which_points_train_is_gone_on_with_once_they_have_left(hpc, array: Slurm):
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    resume = f"go on with: hpc-train resume {sweep['sweep']}\n"
    assert hpc("cancel", "digits").err == resume
    hpc("status", f"{sweep['sweep']}-1")
    events = Path(f"{sweep['sweep_dir']}-1", "events.jsonl")
    append_event(events, Event(9e9, EventKind.ATTEMPT_STARTED, {"attempt": 0, "job_id": "7_1"}))
    shown = f"once hpc-train status {sweep['sweep']} shows none running, "
    assert hpc("cancel", "digits").err == f"{shown}{resume}"


def test_who_cancels_the_latest_point_is_told_of_the_others_of_its_sweep(hpc, array: Slurm) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    for number in range(4):
        hpc("status", f"{sweep['sweep']}-{number}")
        ended(sweep, number, "completed") if number == 2 else None
    end = f"on: hpc-train cancel {sweep['sweep']} ends the whole sweep"
    for word, others in (("latest", "2 other points of the sweep go"), ("last", "2 other points")):
        said = hpc("cancel", word)
        assert (said.code, f"{sweep['sweep']}-3" in said.out) == (0, True)
        assert f"note: {others}" in said.err
        assert end in said.err
    ended(sweep, 0, "failed")
    assert f"note: 1 other point of the sweep goes {end}" in hpc("cancel", "latest").err
    ended(sweep, 1, "failed")
    assert "of the sweep" not in hpc("cancel", "latest").err
    assert "of the sweep" not in hpc("cancel", f"{sweep['sweep']}-3", "--json").err


def test_a_sweep_is_resumed_with_changes_as_a_job_for_each_point(hpc, array: Slurm) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    hpc("status", f"{sweep['sweep']}-1")
    ended(sweep, 1, "completed")
    array.says(*(f"7_{number}|CANCELLED|None|N/A" for number in range(4)))
    array.has("sbatch", f'echo "$@" >> {array.folder}/options\necho Submitted batch job 8')
    (array.folder / "options").unlink()
    refused = hpc("resume", sweep["sweep"], "seed=3")
    assert (refused.code, "another training" in refused.err) == (3, True)
    assert not (array.folder / "options").exists(), "no point goes on where one is refused"
    said = json.loads(hpc("resume", sweep["sweep"], "--time", "3:00:00", "--json").out)
    assert (said["points"], said["job_ids"]) == ([0, 2, 3], ["8"] * 3)
    assert len((array.folder / "options").read_text().splitlines()) == 3
    again = json.loads(Path(f"{sweep['sweep_dir']}-2", "plan.json").read_text())
    assert ["time", "3:00:00"] in again["slurm"]["options"]


def test_what_slurm_does_not_take_leaves_nothing(hpc, array: Slurm, tmp_path: Path) -> None:
    said = hpc("submit", DIGITS, "--sweep", "seed=range(10)")
    assert (said.code, said.err.splitlines()[0]) == (
        4,
        "error: the sweep has 10 points, and this Slurm takes 9 (MaxArraySize)",
    )
    array.has("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    assert hpc(*SWEEP).code == 4
    assert not (tmp_path / "runs").exists()
    for words in (("--wait",), ("--follow",), ("--test-only",), ("--cluster", "local")):
        assert hpc(*SWEEP, *words).code == 2
    assert hpc("submit", DIGITS, "--at-most", "2").code == 2
    assert hpc("run", DIGITS, "sweep={seed: [1, 2]}").code == 3


def test_a_dry_run_shows_the_points_and_touches_nothing(hpc, array: Slurm, tmp_path: Path) -> None:
    said = hpc(*SWEEP, "--dry-run").out
    assert "point 3    model.init_args.lr=0.2 seed=1" in said
    assert "#SBATCH --array=0-3" in said
    assert f"\nruns in    {tmp_path}/runs, by " in said
    assert not (tmp_path / "runs").exists()


def test_a_sweep_needs_slurm(hpc, without_slurm: None) -> None:
    said = hpc(*SWEEP)
    assert (said.code, "there is no Slurm here" in said.err) == (4, True)


def test_tasks_that_never_began_are_found_in_the_accounting(hpc, array: Slurm) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    array.says()
    array.has("sacct", "echo '7_[0-1,3%2]|CANCELLED by 0|None|Unknown'\necho '7_2|RUNNING|None|x'")
    states = json.loads(hpc("status", sweep["sweep"], "--json").out)
    assert [point["state"] for point in states["points"]] == [
        *("cancelled", "cancelled", "running", "cancelled")
    ]


def test_a_task_that_begins_before_its_submission_is_noted_knows_its_job(
    hpc, array: Slurm, tmp_path: Path
) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    folder = SweepDir(Path(sweep["sweep_dir"]))
    folder.events.unlink()
    run = point_of_job(folder, {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "1"})
    assert newest_job_id(read_events(run.events)) == "7_1"
    assert point_of_job(folder, {"SLURM_ARRAY_JOB_ID": "8", "SLURM_ARRAY_TASK_ID": "1"}) == run
    assert len(read_events(run.events)) == 1
    for environ in ({}, {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "4"}):
        with pytest.raises(HpcTrainError, match=r"array|points 0 to 3"):
            point_of_job(folder, environ)


def test_a_sweep_is_removed_with_its_points_once_all_have_ended(
    hpc, array: Slurm, tmp_path: Path
) -> None:
    sweep = json.loads(hpc(*SWEEP, "--json").out)
    for number in range(4):
        hpc("status", f"{sweep['sweep']}-{number}")
        if number < 3:
            ended(sweep, number, "completed")
    array.says("7_3|PENDING|Priority|N/A")
    array.asked()
    said = hpc("rm", sweep["sweep"], "--yes")
    assert (said.code, f"({sweep['sweep']}) is pending" in said.err) == (1, True)
    assert array.asked() == 1
    assert points(tmp_path) == ["0", "1", "2", "3"]
    assert f"({sweep['sweep']}) is pending" in hpc("rm", "digits", "--yes").err
    assert hpc("rm", f"{sweep['sweep']}-0", "--yes").code == 0
    assert points(tmp_path) == ["1", "2", "3"]
    ended(sweep, 3, "failed")
    hpc("status", f"{sweep['sweep']}-0")
    ended(sweep, 0, "failed")
    assert hpc("rm", "digits/*", "--yes").code == 0
    assert list((tmp_path / "runs").iterdir()) == []


def test_the_name_of_a_sweep_is_not_enough_where_another_has_it(
    hpc, array: Slurm, tmp_path: Path
) -> None:
    """What has ended is not meant by `cancel`; `rm` would remove it."""
    first, second = (json.loads(hpc(*SWEEP, "--json").out)["sweep"] for _ in range(2))
    said = hpc("cancel", "digits")
    assert said.code == 2
    assert f"of what has not ended either: {first}" in said.err
    fix = f"by its id: hpc-train cancel {second}, or hpc-train cancel {first}\n"
    assert said.err.endswith(fix)
    assert hpc("cancel", first).code == 0
    array.says(*(f"7_{number}|CANCELLED|None|N/A" for number in range(4)))
    assert f"2 runs are named digits: {second}, {first}" in hpc("rm", "digits", "--yes").err
    assert hpc("rm", first, second, "--yes").code == 0
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_sweep_is_removed_by_its_name(hpc, array: Slurm, tmp_path: Path) -> None:
    hpc(*SWEEP)
    array.says(*(f"7_{number}|CANCELLED|None|N/A" for number in range(4)))
    assert hpc("rm", "digits", "--yes").code == 0
    assert list((tmp_path / "runs").iterdir()) == []
