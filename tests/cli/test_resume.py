"""`hpc-train resume`: what may change, what is told, and what a refusal leaves."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import HpcTrainError
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir

NETS = """\
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule): ...
class Data(LightningDataModule): ...
"""
CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net}
data: {class_path: nets.Data}
trainer: {accelerator: cpu}
slurm: {nodes: 2, gpus_per_node: 2}
"""


@pytest.fixture
def stopped(hpc, taken, tmp_path: Path) -> RunDir:
    """A run of 2 x 2 ranks that was cancelled."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    said = hpc("submit", "cfg.yaml", "--json")
    assert said.code == 0, said
    run = RunDir(Path(json.loads(said.out)["run_dir"]))
    ended = {"state": "cancelled", "reason": "somebody cancelled it"}
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, ended))
    return run


def contents(run: RunDir) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def test_a_dry_run_shows_the_next_job_and_writes_nothing(hpc, stopped: RunDir) -> None:
    before = contents(stopped)
    said = hpc("resume", "x", "--dry-run", "--nodes", 1, "--account", "a1", "--qos", "q1")
    assert said.code == 0, said
    for option in ("--nodes=1", "--account=a1", "--qos=q1"):
        assert f"#SBATCH {option}" in said.out
    assert "nothing was submitted and nothing was written" in said.err
    assert contents(stopped) == before


def test_a_dry_run_on_this_machine_shows_no_script_of_slurm(hpc, stopped: RunDir) -> None:
    said = hpc("resume", "x", "--dry-run", "--cluster", "local")
    assert said.code == 0, said
    assert "#SBATCH" not in said.out
    assert "\ngoes on    from the beginning" in said.out


def test_a_dry_run_says_at_which_step_it_goes_on(hpc, stopped: RunDir) -> None:
    nothing = "\ngoes on    from the beginning: nothing is saved\n"
    assert nothing in hpc("resume", "x", "--dry-run").out
    for step, whole in ((8, True), (12, True), (16, False)):
        folder = stopped.checkpoints / f"step-{step:09d}"
        folder.mkdir(parents=True)
        versions = {"hpc-train": "0.1.0"}
        manifest = {
            "step": step, "epoch": 0, "samples": 0, "world_size": 1, "accumulate": 1,
            "config_hash": "", "attempt": 0, "time": 0.0, "versions": versions, "files": [],
            "schema_version": 1,
        }  # fmt: skip
        (folder / "manifest.json").write_text(json.dumps(manifest) if whole else "{")
    said = hpc("resume", "x", "--dry-run")
    assert "\ngoes on    from step 12\n" in said.out
    assert "begins again" not in said.err
    assert json.loads(hpc("resume", "x", "--dry-run", "--json").out)["first_step"] == 12


def test_a_dry_run_without_options_shows_the_script_as_it_is(hpc, stopped: RunDir) -> None:
    said = hpc("resume", "x", "--dry-run", "--json")
    assert json.loads(said.out)["script"] == stopped.script.read_text()


def test_account_and_qos_reach_the_plan(hpc, stopped: RunDir) -> None:
    assert hpc("resume", "x", "--account", "a1", "--qos", "q1").code == 0
    options = dict(json.loads(stopped.plan.read_text())["slurm"]["options"])
    assert (options["account"], options["qos"]) == ("a1", "q1")


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_shape_that_cannot_keep_the_batch_names_shapes_and_no_other_batch(
    hpc, stopped: RunDir, dry: list[str]
) -> None:
    before = contents(stopped)
    said = hpc("resume", "x", "--nodes", 3, *dry)
    assert said.code == 3
    assert "global_batch_size 8 cannot be split over 6 ranks" in said.err
    assert "nearest global_batch_size" not in said.err
    assert "a run keeps its batch; nearest shapes: --nodes 2 --gpus 2" in said.err
    assert contents(stopped) == before


@pytest.mark.parametrize(
    "override", ["global_batch_size=12", "seed=1", "trainer.precision=64", "reproducible=false"]
)
def test_what_is_fixed_is_refused_with_all_that_is(hpc, stopped: RunDir, override: str) -> None:
    said = hpc("resume", "x", override)
    assert said.code == 3
    for key in ("model", "data", "trainer", "seed", "reproducible", "global_batch_size"):
        assert key in said.err
        assert key in hpc("resume", "--help").out


def test_a_shape_that_slurm_refuses_leaves_the_run_as_it_was(hpc, taken, stopped: RunDir) -> None:
    before = contents(stopped)
    taken.has("sbatch", "echo sbatch: error: Invalid qos specification >&2; exit 1")
    said = hpc("resume", "x", "--nodes", 1)
    assert said.code == 4, said
    after = {path: text for path, text in contents(stopped).items() if "submitit" not in path.parts}
    assert after == {path: text for path, text in before.items() if "submitit" not in path.parts}


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_code_that_is_not_the_first_attempts_is_named(
    hpc, stopped: RunDir, tmp_path: Path, dry: list[str]
) -> None:
    assert "the code" not in hpc("resume", "x", "--dry-run").err
    (tmp_path / "nets.py").write_text(NETS + "# changed\n")
    (tmp_path / "more.py").write_text("")
    said = hpc("resume", "x", *dry)
    notes = [line for line in said.err.splitlines() if line.startswith("note: ")]
    assert notes == [
        "note: the code is not that of the first attempt: nets.py",
        "note: it has no whole checkpoint, and begins again at step 0",
    ]


def test_what_is_imported_by_a_name_of_the_moment_may_be_any_file(
    hpc, stopped: RunDir, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(
        f"import importlib\n{NETS}more = importlib.import_module('mo' + 're')\n"
    )
    (tmp_path / "more.py").write_text("")
    assert "first attempt: more.py, nets.py\n" in hpc("resume", "x", "--dry-run").err


def test_what_the_runs_code_imports_is_followed(hpc, stopped: RunDir, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(f"from layers import deep\n{NETS}")
    (tmp_path / "layers.py").write_text("def deep():\n    from inner import part\n")
    (tmp_path / "inner.py").write_text("part = 1\n")
    (tmp_path / "plots.py").write_text("import matplotlib\n")
    said = hpc("resume", "x", "--dry-run")
    assert "first attempt: inner.py, layers.py, nets.py\n" in said.err


@pytest.mark.parametrize(
    ("gone", "told"),
    [("nets.py", "there is no module 'nets'"), ("layers.py", "imports 'layers', which is not")],
)
def test_code_that_was_there_at_the_submission_and_is_gone_is_to_be_put_back(
    hpc, taken, tmp_path: Path, gone: str, told: str
) -> None:
    """It was told to change the config's class, or to install the project's own module."""
    (tmp_path / "layers.py").write_text("deep = 1\n")
    (tmp_path / "nets.py").write_text(f"from layers import deep\n{NETS}")
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    run = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, {"state": "cancelled"}))
    (tmp_path / gone).rename(tmp_path / "renamed.py")
    said = hpc("resume", "x")
    assert said.code == 3
    error, fix = said.err.splitlines()
    assert told in error
    there = f"{gone} was there at the submission, and is gone: put it back in {tmp_path}"
    assert f"fix: {there}, and then hpc-train resume {run.run_id}" in fix


def test_files_that_were_deleted_are_told_as_that_where_the_run_imports_them(
    hpc, taken, tmp_path: Path
) -> None:
    for name in ("inner", "plots"):
        (tmp_path / f"{name}.py").write_text("part = 1\n")
    (tmp_path / "nets.py").write_text(
        f"try:\n    from inner import part\nexcept ImportError: ...\n{NETS}"
    )
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    run = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, {"state": "cancelled"}))
    for name in ("inner", "plots"):
        (tmp_path / f"{name}.py").unlink()
    said = hpc("resume", "x", "--dry-run")
    assert "note: the code is not that of the first attempt: inner.py (deleted)\n" in said.err


def test_code_of_another_commit_is_named_and_other_files_are_not(
    hpc, taken, tmp_path: Path
) -> None:
    def git(*words: str) -> str:
        argv = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path), *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    (tmp_path / "README").write_text("1")
    git("init", "-q")
    git("add", "nets.py", "cfg.yaml", "README")
    git("commit", "-qm", "1")
    run = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, {"state": "cancelled"}))
    (tmp_path / "README").write_text("2")
    git("commit", "-qam", "2")
    assert "the code is not" not in hpc("resume", "x", "--dry-run").err
    (tmp_path / "nets.py").write_text(NETS + "# changed\n")
    git("commit", "-qam", "3")
    said = hpc("resume", "x", "--dry-run")
    assert "note: the code is not that of the first attempt: nets.py\n" in said.err


def test_a_run_without_a_record_of_its_code_is_not_judged(hpc, stopped: RunDir) -> None:
    stopped.environment.unlink()
    assert "the code" not in hpc("resume", "x", "--dry-run").err


def test_a_time_of_two_fields_is_told(hpc, stopped: RunDir) -> None:
    assert 'slurm.time "2:00" is 2 min to Slurm' in hpc("resume", "x", "--time", "2:00").err


@pytest.fixture
def complete(hpc, stopped: RunDir) -> RunDir:
    """A run that is complete, after 2 epochs of 6 steps."""
    append_event(stopped.events, Event(time.time(), EventKind.RUN_ENDED, {"state": "completed"}))
    state = stopped.checkpoints / "step-000000012"
    state.mkdir()
    manifest = {"schema_version": 1, "step": 12, "epoch": 2, "samples": None, "world_size": 2}
    manifest |= {"accumulate": 1, "config_hash": "", "attempt": 0, "time": 0.0}
    (state / "manifest.json").write_text(json.dumps({**manifest, "versions": {}, "files": []}))
    stopped.done.touch()
    stopped.final_metrics.write_text('{"loss": 1.5, "step": 12, "epoch": 2}')
    return stopped


def schedule(run: RunDir, name: str, length: int | None, interval: str = "step") -> None:
    told = [{"name": name, "length": length, "interval": interval}]
    run.schedules.write_text(json.dumps(told))


def test_a_complete_run_trains_longer_and_loses_nothing(hpc, complete: RunDir) -> None:
    schedule(complete, "StepLR", None)
    said = hpc("resume", "x", "trainer.max_epochs=4")
    assert (said.code, said.err) == (0, "")
    plan = json.loads(complete.plan.read_text())
    assert (plan["training"]["trainer"]["max_epochs"], plan["reopened_step"]) == (4, 12)
    assert not complete.done.exists()
    assert (complete.checkpoints / "step-000000012" / "keep").exists()
    assert "1.5" in (complete.metrics / "final-at-12.json").read_text()
    append_event(complete.events, Event(time.time(), EventKind.RUN_ENDED, {"state": "cancelled"}))
    assert hpc("resume", "x", "--nodes", 1).code == 0
    plan = json.loads(complete.plan.read_text())
    assert plan["training"]["trainer"]["max_epochs"] == 4, "the length stays with the run"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "to train longer: hpc-train resume"),
        (("--nodes", 1), "to train longer: hpc-train resume"),
        (("trainer.max_epochs=2",), "complete, at epoch 2, and trainer.max_epochs is 2"),
        (("trainer.max_steps=11",), "complete, at step 12, and trainer.max_steps is 11"),
        (("trainer.max_epochs=4", "seed=3"), "another training"),
    ],
)
def test_what_does_not_make_a_complete_run_longer_is_refused(
    hpc, complete: RunDir, words: tuple[str, ...], says: str
) -> None:
    before = contents(complete)
    said = hpc("resume", "x", *words)
    assert said.code in (1, 3)
    assert says in said.err
    assert contents(complete) == before


def test_the_end_that_a_complete_run_had_is_told_as_one_that_it_has_reached(
    hpc, complete: RunDir
) -> None:
    plan = json.loads(complete.plan.read_text())
    plan["training"]["trainer"]["max_epochs"] = 2
    complete.plan.write_text(json.dumps(plan))
    longer = f"to train longer: hpc-train resume {complete.run_id} trainer.max_epochs=N, with N"
    assert f"{longer} above 2\n" in hpc("resume", "x").err
    said = hpc("resume", "x", "trainer.max_epochs=2")
    assert said.code == 3
    assert "the run is complete, at epoch 2, and trainer.max_epochs is 2\n" in said.err
    assert "fix: write trainer.max_epochs=4, or another larger number" in said.err
    again = hpc("resume", "x", "trainer.max_epochs=4")
    assert (again.code, again.err) == (0, "")


def test_another_end_than_the_one_that_was_reached_is_told_with_what_takes_that_away(
    hpc, complete: RunDir
) -> None:
    said = hpc("resume", "x", "trainer.max_epochs=2", "trainer.max_steps=500")
    assert "the run is complete, at epoch 2, and trainer.max_epochs is 2\n" in said.err
    assert "fix: write trainer.max_epochs=-1 beside trainer.max_steps=500; or trainer" in said.err
    said = hpc("resume", "x", "trainer.max_steps=12", "trainer.max_epochs=9")
    assert "fix: write trainer.max_steps=-1 beside trainer.max_epochs=9; or trainer" in said.err
    again = hpc("resume", "x", "trainer.max_epochs=-1", "trainer.max_steps=500")
    assert (again.code, again.err) == (0, "")


def test_a_complete_run_that_slurm_refuses_stays_complete(hpc, taken, complete: RunDir) -> None:
    taken.has("sbatch", "echo sbatch: error: Invalid qos specification >&2; exit 1")
    assert hpc("resume", "x", "trainer.max_epochs=4").code == 4
    assert complete.done.exists()
    assert json.loads(complete.plan.read_text())["reopened_step"] is None
    assert json.loads(hpc("status", "x", "--json").out)["state"] == "completed"


@pytest.mark.parametrize(
    ("built", "says"),
    [
        (("CosineAnnealingLR", 12), "was built for 12 steps and stays as it is: behind them its"),
        (("OneCycleLR", 30), "OneCycleLR was built for 30 steps and stays as it is"),
        (("LambdaLR", None), "if it knows the training's length, they change from here"),
    ],
)
def test_what_a_longer_training_means_for_the_schedule_is_one_line(
    hpc, complete: RunDir, built: tuple[str, int | None], says: str
) -> None:
    schedule(complete, *built)
    said = hpc("resume", "x", "trainer.max_epochs=4")
    assert said.code == 0, said
    (line,) = said.err.splitlines()
    assert says in line


def test_a_schedule_that_ends_with_an_error_is_refused_before(hpc, complete: RunDir) -> None:
    schedule(complete, "OneCycleLR", 12)
    said = hpc("resume", "x", "trainer.max_epochs=4")
    assert said.code == 3
    assert "OneCycleLR was built for 12 steps and cannot go on behind them" in said.err
    assert f"init_from={complete.path}" in said.err


def test_of_two_that_resume_a_run_at_once_the_second_is_told_who_has_it(
    hpc, taken, stopped: RunDir
) -> None:
    run = api.Run(stopped)
    first, second = run.next_plan(), run.next_plan()
    taken.has("sbatch", "echo Submitted batch job 8")
    assert run.go_on(first) == "8"
    before = contents(stopped)
    with pytest.raises(HpcTrainError, match=r"x \(.*\) has just been resumed as job 8") as told:
        run.go_on(second)
    assert told.value.hint == f"it needs nothing: hpc-train status {stopped.run_id} shows it"
    assert contents(stopped) == before


def test_a_complete_run_of_a_rendered_script_is_not_sent_to_a_resume_that_is_refused(
    hpc, stopped: RunDir
) -> None:
    append_event(stopped.events, Event(time.time(), EventKind.RUN_ENDED, {"state": "completed"}))
    assert "hpc-train resume" in hpc("resume", "x").err
    stopped.config.unlink()
    for more in ([], ["trainer.max_epochs=3"]):
        said = hpc("resume", "x", *more)
        assert f"with init_from={stopped.run_id} that begins with these weights" in said.err
        assert (
            "fix: its length is the script's: hpc-train render CFG trainer.max_epochs=N" in said.err
        )
