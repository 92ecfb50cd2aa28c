"""Notices of real runs on a real Slurm: they leave the node, and the job waits for none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.runs.events import read_events
from tests.cluster import Cluster
from tests.faults.running import submit, until
from tests.faults.test_preemption import preempt
from tests.supervisor.channels import SECRET, channel

pytestmark = pytest.mark.slurm
ON_NODE1 = ("slurm.nodes=1", "slurm.nodelist=node1")


def test_the_start_and_the_third_preemption_are_told_from_the_node(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    collector = tmp_path / "collector"
    collector.mkdir()
    with channel(address=slurm_cluster.layout.controller_address) as told:
        urls = tmp_path / "urls"
        urls.write_text(told.url)
        training = submit(
            slurm_cluster,
            tmp_path,
            *(*ON_NODE1, f"notify.urls_from={urls}", "notify.timeout_s=60"),
            *("preflight.monitor_interval_s=0.5", f"preflight.prometheus_dir={collector}"),
            "slurm.mail_user=me@example.org",
        )
        job = slurm_cluster.job(training.job_id)
        assert (job["MailUser"], job["MailType"]) == ("me@example.org", "END,FAIL")
        for number in range(3):
            training.wait_step(number, new=1)
            until(lambda: list(collector.glob("hpc-train-*.prom")), "the node's file", 60)
            preempt(training, number)
        until(lambda: len(told.came) == 2, "two notices", 60)
        training.wait_step(3, new=1)
        slurm_cluster.cancel(training.job_id)
        training.wait_end()
        until(lambda: len(told.came) == 3, "the notice of the end", 60)
    assert told.titles == [
        *("tiny began", "tiny was preempted 3 times in 24 h", "tiny cancelled"),
    ]
    assert "goes on from step" in told.came[1]["message"]
    until(lambda: not list(collector.iterdir()), "the node's file to be taken away", 60)
    files = [path for path in training.run.path.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_a_failure_is_told_with_the_words_of_status(slurm_cluster: Cluster, tmp_path: Path) -> None:
    with channel(address=slurm_cluster.layout.controller_address) as told:
        training = submit(
            slurm_cluster,
            tmp_path,
            *(*ON_NODE1, "model.init_args.raise_at=3", "notify.urls_from=CHAT"),
            *("notify.timeout_s=60", "notify.events=[failure]"),
            env={"CHAT": told.url},
        )
        assert training.wait_end() == "failed"
        until(lambda: told.came, "the notice", 60)
    assert told.titles == ["tiny failed"]
    assert f"is failed: {training.status()['reason']}" in told.came[0]["message"]


def test_a_channel_that_hangs_delays_the_jobs_end_by_no_more_than_its_bound(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    with channel(address=slurm_cluster.layout.controller_address, hangs=True) as stuck:
        training = submit(
            slurm_cluster,
            tmp_path,
            *(*ON_NODE1, "trainer.max_steps=5", "notify.urls_from=CHAT", "notify.timeout_s=20"),
            env={"CHAT": stuck.url},
        )
        assert training.wait_end() == "completed"
        log = training.run.attempt(0).supervisor_log
        until(lambda: "a channel gave no answer within 20 s" in log.read_text(), "the line", 60)
    events = {event.kind.value: event.time for event in read_events(training.run.events)}
    assert events["run_ended"] - events["attempt_ended"] < 15, "the run waits for nothing"
    assert SECRET not in log.read_text()
