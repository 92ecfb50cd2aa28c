"""A run, a sweep or a bench in the place of a config, and a folder within one of runs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import project, refused, run, sweep

__all__ = ["project", "run", "sweep"]
LOOKS = ("bench", "config show", "notify")


def test_the_name_of_a_run_is_told_with_the_config_that_it_was_submitted_with(
    hpc, run: RunDir
) -> None:
    """It was told what Python writes: hpc_train.Run.find(...)."""
    for command in LOOKS:
        for word, named in (("x", ""), (run.run_id, " (x)"), ("latest", " (x)"), ("7", " (x)")):
            fix = f"fix: {command} takes a config: hpc-train {command} cfg.yaml"
            said = refused(hpc, f"{command} {word}", f"{word} is a run{named}, and no config", fix)
            assert said.endswith("cfg.yaml")
    assert hpc("config", "show", "cfg.yaml").code == 0
    assert hpc("bench", "cfg.yaml", "--dry-run").code == 0
    fix = f"hpc-train resume {run.run_id} goes on with it; hpc-train submit cfg.yaml begins anew"
    for command in ("submit", "run", "render", "launch --hosts a"):
        refused(hpc, f"{command} x", "x is a run, and no config", fix)


def test_where_the_config_is_gone_the_runs_own_is_named(hpc, run: RunDir) -> None:
    Path("cfg.yaml").unlink()
    fix = refused(hpc, "config show x", "x is a run", f"show runs/x/{run.run_id}/config.yaml")
    assert hpc(*shlex.split(fix.partition(": hpc-train ")[2])).code == 0


def test_a_scripts_arguments_stand_behind_it(hpc, run: RunDir, project: Path) -> None:
    (project / "train.py").touch()
    document = json.loads(run.environment.read_text())
    document["config"]["words"] = ["train.py", "--nodes", "2", "--", "--lr", "0.2"]
    document["config"]["file"] = str(project / "train.py")
    run.environment.write_text(json.dumps(document))
    plan = json.loads(run.plan.read_text())
    run.plan.write_text(json.dumps({**plan, "script": {"path": "train.py"}}))
    refused(hpc, "bench x", "x is a run", "bench takes a config: hpc-train bench train.py -- --lr")


def test_the_name_of_another_folders_run_may_be_a_file_of_this_one(
    hpc, run: RunDir, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "other").mkdir()
    monkeypatch.chdir(project / "other")
    Path("x.yaml").write_text("name: x\n")
    for command in ("submit", "bench"):
        refused(hpc, f"{command} x", "x: there is no such file", "did you mean 'x.yaml'?")
    refused(hpc, f"bench {run.run_id}", "is a run (x)", f"hpc-train bench {project}/cfg.yaml")


def test_a_sweep_is_told_so(hpc, sweep: str) -> None:
    for word, named in (("sw", ""), (sweep, " (sw)")):
        said = f"{word} is a sweep{named}, and no config"
        refused(hpc, f"bench {word}", said, "takes a config: hpc-train bench cfg.yaml")
        refused(hpc, f"submit {word}", said, f"hpc-train resume {sweep} goes on with it")


def test_a_bench_is_told_with_what_shows_its_table(hpc, run: RunDir) -> None:
    assert hpc("bench", "cfg.yaml", "--no-wait").code == 0
    made = json.loads(hpc("list", "--json").out)["runs"][0]
    for command in ("bench", "submit"):
        for word in ("x-bench", made["run"]):
            fix = f"hpc-train bench {made['run']} --show prints its table"
            refused(hpc, f"{command} {word}", f"{word} is a bench that was made", fix)
    assert "x  bench" in hpc("bench", made["run"], "--show").out
    fix = refused(hpc, "bench x", "x is a run", "its newest bench: hpc-train bench x --show")
    assert "x  bench" in hpc("bench", "x", "--show").out
    assert "hpc-train bench cfg.yaml; " in fix


@pytest.mark.parametrize("command", ["list", "du", "top", "status", "rm x", "logs x", "report x"])
def test_a_folder_within_one_of_runs_is_none(hpc, run: RunDir, command: str) -> None:
    """`no runs` was said of the folder of a name, with exit code 0."""
    for folder, is_what in (
        ("runs/x", "that is the folder of the name x"),
        (f"runs/x/{run.run_id}", "that is a run"),
        (f"{run.path.parent}/", "that is the folder of the name x"),
    ):
        said = f"--runs-dir {folder.rstrip('/')}: {is_what}, and no folder of runs"
        refused(hpc, f"{command} --runs-dir {folder}", said, "write --runs-dir runs")


def test_the_folder_of_a_sweeps_name_is_none(hpc, sweep: str, monkeypatch) -> None:
    monkeypatch.chdir("runs/sw")
    refused(hpc, "du --runs-dir .", "the folder of the name sw, and no", f"{Path.cwd().parent}")
    refused(hpc, f"du --runs-dir {sweep}", "that is a sweep, and no folder of runs", "--runs-dir /")


def test_a_folder_of_runs_that_holds_a_copy_beside_the_names_is_one(hpc, run: RunDir) -> None:
    run.path.rename("runs/kept")
    assert hpc("list", "--runs-dir", "runs").code == 5
    Path("runs/y/20260101-000000-0000").mkdir(parents=True)
    Path("runs/y/20260101-000000-0000/plan.json").write_text("{}")
    assert hpc("du", "--runs-dir", "runs").code == 0


def test_a_run_behind_du_is_told_that_it_takes_none(hpc, run: RunDir, project: Path) -> None:
    none = "du takes no RUN, and has a line for each: hpc-train du"
    for word in ("x", "runs/x", f"runs/x/{run.run_id}"):
        assert refused(hpc, f"du {word}", f"extra argument ({word})", none).endswith("train du")
    refused(hpc, "du runs", "extra argument (runs)", "fix: write hpc-train du --runs-dir runs")
    (project / "old").mkdir()
    (project / "runs").rename(project / "old" / "runs")
    refused(hpc, "du old/runs/x", "extra argument", f"{none} --runs-dir old/runs")
