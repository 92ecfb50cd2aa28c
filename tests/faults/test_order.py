"""One run after another on the real Slurm: `--after`, `--smoke`, and what a partition allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.runs.events import read_events
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import RunDir
from tests.cluster import Cluster
from tests.cluster.faults import change_partition
from tests.faults.running import CONFIG, STARTED_S, Training, until
from tests.faults.test_sweeps import Site

pytestmark = pytest.mark.slurm
LONG = "trainer.max_steps=100000"
SHORT = "trainer.max_steps=5"


def training(site: Site, said: dict[str, str]) -> Training:
    return Training(site.cluster, RunDir(Path(said["run_dir"])), said["job_id"])


def test_a_run_begins_once_another_is_complete_whichever_job_carries_that(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    change_partition(slurm_cluster, GraceTime=5)
    first = training(site, site.submit(LONG, "requeue.max_excluded_nodes=0"))
    waits = training(site, site.submit(SHORT, "--after", first.run.run_id))

    def waits_for() -> str:
        return slurm_cluster.job(waits.job_id)["Dependency"]

    first.wait_step()
    assert waits_for().startswith(f"afterok:{first.job_id}(")
    slurm_cluster.command(["scontrol", "requeue", first.job_id])
    first.wait_attempt_end()
    first.wait_step(1)
    assert slurm_cluster.state(waits.job_id) == "PENDING", "a requeue is no end"

    slurm_cluster.command(["scontrol", "update", f"JobId={first.job_id}", "Requeue=0"])
    urgent = slurm_cluster.preempt(first.records()[1].nodes)
    went_on = until(lambda: first.records()[1].went_on_as, "a fresh job", 90)
    assert went_on != first.job_id
    until(lambda: waits_for().startswith(f"afterok:{went_on}("), "the job to wait for it", 120)
    slurm_cluster.cancel(urgent)
    first.wait_step(2)

    site.hpc("cancel", first.run.run_id)
    assert first.wait_end() == "cancelled"
    until(
        lambda: "DependencyNeverSatisfied" in slurm_cluster.job(waits.job_id)["Reason"], "it", 150
    )
    status = site.json("status", waits.run.run_id)
    assert status["state"] == "pending"
    assert f"hpc-train resume {first.run.run_id}" in status["reason"]
    refused = site.hpc("submit", str(CONFIG), "--after", first.run.run_id, code=3).stderr
    assert "it is cancelled" in refused

    number = len(first.records())  # of the attempt to come, which may begin at once
    again = site.json("resume", first.run.run_id)["job_id"]
    assert waits_for().startswith(f"afterok:{again}(")
    first.wait_step(number)
    site.hpc("cancel", first.run.run_id)
    site.hpc("cancel", waits.run.run_id)
    assert site.json("status", waits.run.run_id)["state"] == "cancelled"


def test_a_smoke_test_comes_first_on_one_node_and_the_job_begins_when_it_has_worked(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    where = f"runs_dir={tmp_path / 'runs'}"
    site.hpc("submit", str(CONFIG), where, SHORT, "--smoke", "slurm.constraint=nothing", code=4)
    assert not (tmp_path / "runs").exists(), "nothing is half submitted"
    run = training(site, site.json("submit", str(CONFIG), where, SHORT, "--smoke"))
    (folder,) = (tmp_path / "runs" / "tiny-smoke").iterdir()
    smoke = Training(
        slurm_cluster, RunDir(folder), newest_job_id(read_events(folder / "events.jsonl"))
    )
    assert f"afterok:{smoke.job_id}(" in slurm_cluster.job(run.job_id)["Dependency"]
    assert smoke.wait_end() == "completed"
    assert [len(record.nodes) for record in smoke.records()] == [1]
    assert smoke.records()[0].last_step == 3
    assert run.wait_end() == "completed"
    assert len(run.records()[0].nodes) == 3
    assert run.records()[0].started >= smoke.records()[0].ended


def test_a_run_begins_once_all_points_of_a_sweep_are_complete_whichever_jobs_carry_them(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    words = ("trainer.max_steps=60", "model.init_args.step_s=0.5")
    sweep = site.submit(*words, "--sweep", "seed=1,2", "--at-most", "1")
    points = [site.point(sweep, number) for number in range(2)]
    waits = training(site, site.submit(SHORT, "--after", sweep["sweep"]))

    def waits_for() -> str:
        return slurm_cluster.job(waits.job_id)["Dependency"]

    assert waits_for() == f"afterok:{sweep['job_id']}_*(unfulfilled)"
    site.hpc("cancel", f"{sweep['sweep']}-1")
    refused = site.hpc("submit", str(CONFIG), "--after", sweep["sweep"], code=3).stderr
    assert f"its point {sweep['sweep']}-1 is cancelled" in refused
    assert f"hpc-train resume {sweep['sweep']}-1" in refused

    alone = site.json("resume", f"{sweep['sweep']}-1")["job_id"]
    assert f"afterok:{alone}(unfulfilled)" in waits_for()
    assert "_*" not in waits_for(), "the whole array is never complete by itself now"
    assert waits.wait_end() == "completed"
    assert [point.end() for point in points] == ["completed"] * 2
    assert waits.records()[0].started >= max(point.records()[-1].ended or 0 for point in points)
    assert points[1].records()[-1].job_id == alone


def test_the_start_in_several_partitions_and_the_chain_that_a_short_one_takes(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    asked = ("submit", str(CONFIG), "slurm.time=0:12:00", "--test-only")
    rows = site.json(*asked, "--partitions", "short,train,nowhere")["partitions"]
    assert rows[0]["partition"] == "train"
    refused = {row["partition"]: row["refused"] for row in rows}
    assert refused["train"] == ""
    assert "longer than the partition allows (short 5:00)" in refused["short"]
    assert "Slurm refused" in refused["nowhere"]
    assert "no partition" in site.hpc(*asked, "--partitions", "short,nowhere", code=4).stderr

    told = site.hpc("submit", str(CONFIG), "slurm.time=0:12:00", "--partition", "short", code=4)
    assert "write --partition train, which allows it; or a chain of" in told.stderr
    assert "jobs does it: write --partition short --time 0:05:00;" in told.stderr
    told = site.hpc("submit", str(CONFIG), "slurm.time=0:12:00", "--partition", "short",
                    "requeue.enabled=false", code=4)  # fmt: skip
    assert "requeue.enabled=true" in told.stderr


def test_an_array_begins_once_a_run_is_complete_and_each_point_may_go_on_with_other_options(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    first = training(site, site.submit("trainer.max_steps=60", "model.init_args.step_s=0.5"))
    sweep = site.submit(LONG, "--sweep", "seed=1,2", "--after", first.run.run_id)
    points = [site.point(sweep, number) for number in range(2)]
    first.wait_step()
    assert not first.end(), "it still trains"
    assert site.json("status", sweep["sweep"])["states"] == {"pending": 2}
    assert not any(point.run.path.exists() for point in points)
    assert first.wait_end() == "completed"
    for point in points:
        until(point.run.plan.exists, "the run to be made", STARTED_S)
        point.wait_step()

    site.hpc("cancel", sweep["sweep"])
    assert [point.wait_end() for point in points] == ["cancelled"] * 2
    again = site.json("resume", sweep["sweep"], "--time", "0:10:00")
    assert again["points"] == [0, 1]
    for point, job in zip(points, again["job_ids"], strict=True):
        assert slurm_cluster.job(job)["TimeLimit"] == "00:10:00"
        point.wait_step(1)
        assert point.records()[1].first_step == point.records()[0].saved_step
    site.hpc("cancel", sweep["sweep"])


def test_a_run_begins_once_all_of_several_are_complete_whichever_jobs_carry_them(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    change_partition(slurm_cluster, GraceTime=5)
    short = ("trainer.max_steps=40", "name=short", "slurm.begin=now+1hour")
    done = training(site, site.submit(*short))
    long, other = (
        training(site, site.submit(LONG, f"name={name}", f"slurm.nodelist={node}"))
        for name, node in (("long", "node1"), ("other", "node2"))
    )
    both = [word for it in (done, long, other) for word in ("--after", it.run.run_id)]
    waits = training(site, site.submit(SHORT, *both, "--after", "long"))

    def waits_for() -> str:
        return slurm_cluster.job(waits.job_id)["Dependency"]

    jobs = (done.job_id, long.job_id, other.job_id)
    assert waits_for() == ",".join(f"afterok:{job}(unfulfilled)" for job in jobs)
    slurm_cluster.scontrol("update", f"JobId={done.job_id}", "StartTime=now")
    assert done.wait_end() == "completed"
    long.wait_step()
    slurm_cluster.command(["scontrol", "update", f"JobId={long.job_id}", "Requeue=0"])
    urgent = slurm_cluster.preempt(long.records()[0].nodes)
    went_on = until(lambda: long.records()[0].went_on_as, "a fresh job", 90)
    assert went_on != long.job_id
    until(
        lambda: (
            waits_for() == f"afterok:{went_on}(unfulfilled),afterok:{other.job_id}(unfulfilled)"
        ),
        "the job to wait for it and the other one",
        120,
    )
    slurm_cluster.cancel(urgent)
    long.wait_step(1)  # a job that is cancelled as it starts leaves no end
    other.wait_step()

    site.hpc("cancel", other.run.run_id)
    assert other.wait_end() == "cancelled"
    until(
        lambda: "DependencyNeverSatisfied" in slurm_cluster.job(waits.job_id)["Reason"], "it", 150
    )
    reason = site.json("status", waits.run.run_id)["reason"]
    assert f"{other.run.run_id}, which it waits for, did not complete" in reason
    assert long.run.run_id not in reason
    site.hpc("cancel", long.run.run_id)
    assert long.wait_end() == "cancelled"
    # Who is resumed takes few steps, so that both are complete.
    for run in (other, long):
        site.json("resume", run.run.run_id, f"trainer.max_steps={run.records()[-1].last_step + 5}")
    assert waits.wait_end() == "completed"
    ends = [run.records()[-1].ended for run in (other, long)]
    assert waits.records()[0].started >= max(ends)
    assert [run.end() for run in (other, long)] == ["completed"] * 2


def test_a_run_that_waits_for_a_job_which_failed_is_not_resumed_into_the_same_wait(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    go = tmp_path / "go"
    waits = f"while [ ! -e '{go}' ]; do sleep 0.2; done; exit 1"
    words = ["sbatch", "--parsable", "-N1", "-o/dev/null", "--wrap", waits]
    fails = slurm_cluster.command(words).stdout.strip()
    run = training(site, site.submit(SHORT, f"slurm.dependency=afterok:{fails}"))
    go.touch()
    until(lambda: slurm_cluster.state(fails) == "FAILED", "the first job to fail", 60)
    site.hpc("cancel", run.run.run_id)
    refused = site.hpc("resume", run.run.run_id, code=4).stderr
    assert f"job {fails} has ended as FAILED" in refused
    fix = f"hpc-train resume {run.run.run_id} slurm.dependency=null"
    assert fix in refused
    site.hpc(*fix.split()[1:])
    assert run.wait_end() == "completed"
