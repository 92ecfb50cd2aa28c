"""A sweep on the real Slurm: one array, a run a point, whatever happens to a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.runs.layout import RunDir
from tests.cluster import Cluster
from tests.cluster.faults import change_partition
from tests.faults.running import CONFIG, LEAN, STARTED_S, Training, hpc_train, until

pytestmark = pytest.mark.slurm


class Site:
    """The command in a folder of runs, on a cluster."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.env = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(LEAN)}

    def hpc(self, *words: str, code: int = 0) -> Any:
        done = hpc_train(self.cluster, *words, env=self.env)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done

    def json(self, *words: str) -> dict[str, Any]:
        return dict(json.loads(self.hpc(*words, "--json").stdout))

    def submit(self, *words: str) -> dict[str, Any]:
        where = (f"runs_dir={self.folder / 'runs'}", "slurm.nodes=1")
        return self.json("submit", str(CONFIG), *where, *words)

    def point(self, sweep: dict[str, Any], number: int) -> Training:
        run = RunDir(Path(f"{sweep['sweep_dir']}-{number}"))
        return Training(self.cluster, run, f"{sweep['job_id']}_{number}")


def test_each_task_is_requeued_cancelled_and_resumed_by_itself_and_with_the_whole(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    axes = ("--sweep", "model.init_args.step_s=0.05,0.04", "--sweep", "seed=range(2)")
    sweep = site.submit(*axes, "--at-most", "3")
    points = [site.point(sweep, number) for number in range(4)]
    for point in points[:3]:
        until(point.run.plan.exists, "the run to be made", STARTED_S)
        assert point.wait_step() >= 3
    seen = site.json("status", sweep["sweep"])
    assert seen["states"] == {"running": 3, "pending": 1}
    assert [point["job_id"] for point in seen["points"]] == [
        f"{sweep['job_id']}_{number}" for number in range(4)
    ]
    assert not points[3].run.path.exists(), "made when its task begins"

    slurm_cluster.command(["scontrol", "requeue", points[1].job_id])
    assert points[1].wait_attempt_end().outcome.value == "preempted"
    site.hpc("cancel", f"{sweep['sweep']}-0")
    assert points[0].wait_end() == "cancelled"
    again = points[1].wait_step(1)
    assert again > points[1].records()[0].last_step >= 3
    until(points[3].run.plan.exists, "the run of the last point", STARTED_S)
    points[3].wait_step()
    assert len(points[2].records()) == 1, "the requeue was of one task"
    assert site.json("status", sweep["sweep"])["states"] == {"running": 3, "cancelled": 1}

    # A point that goes on in a job of its own is ended with the whole as well.
    alone = site.json("resume", f"{sweep['sweep']}-0")["job_id"]
    assert alone.isdigit()
    assert site.json("cancel", sweep["sweep"])["points"] == [0, 1, 2, 3]
    until(lambda: not slurm_cluster.command(["squeue", "-h"]).stdout, "the jobs to end", 60)
    ended = site.json("status", sweep["sweep"])
    assert ended["states"] == {"cancelled": 4}
    assert "has ended" in site.hpc("cancel", sweep["sweep"], code=1).stderr

    before = points[2].records()
    whole = site.json("resume", sweep["sweep"])
    assert whole["points"] == [0, 1, 2, 3]
    saved = before[0].saved_step
    points[2].wait_step(len(before))
    newest = points[2].records()[-1]
    assert (newest.job_id, newest.first_step) == (f"{whole['job_id']}_2", saved)
    site.hpc("cancel", sweep["sweep"])


def test_a_point_that_cannot_be_requeued_goes_on_in_a_job_of_its_own(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    change_partition(slurm_cluster, GraceTime=5)
    site = Site(slurm_cluster, tmp_path)
    sweep = site.submit("--sweep", "seed=1,2", "--at-most", "1")
    first, second = (site.point(sweep, number) for number in range(2))
    until(first.run.plan.exists, "the run to be made", STARTED_S)
    first.wait_step()
    slurm_cluster.command(["scontrol", "update", f"JobId={first.job_id}", "Requeue=0"])
    urgent = slurm_cluster.preempt(first.records()[0].nodes)
    alone = until(lambda: first.records()[0].went_on_as, "a fresh job", 90)
    slurm_cluster.cancel(urgent)
    assert alone.isdigit()
    assert first.wait_step(1) > first.records()[0].last_step >= 3
    until(second.run.plan.exists, "the next point to begin", STARTED_S)
    second.wait_step()
    seen = site.json("status", sweep["sweep"])
    assert [point["job_id"] for point in seen["points"]] == [alone, second.job_id]
    assert seen["states"] == {"running": 2}
    site.hpc("cancel", sweep["sweep"])
    until(lambda: not slurm_cluster.command(["squeue", "-h"]).stdout, "the jobs to end", 60)


def test_a_sweep_says_its_best_point_and_its_script_alone_does_the_same(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    model = "model={class_path: tests.faults.tiny.Logged, init_args: {step_s: 0}}"
    words = (model, "trainer.max_steps=4", "--sweep", "seed=1,2,3", "--at-most", "2")
    sweep = site.submit(*words)
    script = tmp_path / "job.sbatch"
    where = (f"runs_dir={tmp_path / 'runs'}", "slurm.nodes=1")
    site.hpc("render", str(CONFIG), *where, *words, "-o", str(script))
    sent = Path(sweep["sweep_dir"], "job.sbatch").read_text()
    of_sweep = sent.replace(f"{sweep['sweep_dir']}/logs/", "")
    assert of_sweep.replace(f" --sweep-dir {sweep['sweep_dir']}", "") == script.read_text()
    assert "--array=0-2%2\n" in sent

    points = [site.point(sweep, number) for number in range(3)]
    assert [point.wait_end() for point in points] == ["completed"] * 3
    seen = site.json("status", sweep["sweep"], "--best", "loss")
    assert (seen["states"], seen["state"]) == ({"completed": 3}, "completed")
    losses = [point["metrics"]["loss"] for point in seen["points"]]
    assert len(set(losses)) == 3, "each has its own seed"
    assert seen["best"]["value"] == min(losses)
    assert seen["best"]["overrides"] == {"seed": losses.index(min(losses)) + 1}
    assert "nothing to go on with" in site.hpc("resume", sweep["sweep"], code=1).stderr
    configs = [point.run.config.read_text() for point in points]
    assert [f"seed: {number}\n" in config for number, config in enumerate(configs, 1)] == [True] * 3

    job = slurm_cluster.command(
        ["sbatch", "--parsable", f"--output={tmp_path}/%A_%a.log", str(script)]
    ).stdout.strip()
    folder = tmp_path / "runs" / "tiny" / f"{slurm_cluster.spec.cluster_name}-{job}"
    scripted = [
        Training(slurm_cluster, RunDir(Path(f"{folder}-{k}")), f"{job}_{k}") for k in range(3)
    ]
    assert [point.wait_end() for point in scripted] == ["completed"] * 3
    alike = site.json("status", job)
    assert [point["metrics"]["loss"] for point in alike["points"]] == losses
