"""A job that waits since its nodes are reserved for others is told so, with what may be done."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.slurm.pending import Asked, explain_pending
from hpc_train.slurm.reservations import Reservation, explain_reserved, is_reserved
from tests.cluster.cluster import Cluster
from tests.e2e.conftest import DIGITS
from tests.slurm.test_sites import hpc

MAINTENANCE = "ReqNodeNotAvail, Reserved for maintenance"
OTHERS = "(ReqNodeNotAvail, May be reserved for other job)"
ROWS = [("train*", f"n{it}", "idle", "none") for it in (1, 2, 3)] + [("big", "n9", "idle", "none")]
NOW = 1_800_000_000.0


def at(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(NOW + seconds))


def reserved(start_s: float, *, nodes: str = "n[1-3]", name: str = "maint") -> Reservation:
    is_maintenance = name == "maint"
    return Reservation(name, at(start_s), at(start_s + 3600), nodes, is_maintenance)


@pytest.mark.parametrize("reason", [MAINTENANCE, OTHERS, MAINTENANCE.replace(" ", "_")])
def test_these_are_reasons_of_reservations(reason: str) -> None:
    assert is_reserved(reason)
    assert not is_reserved("ReqNodeNotAvail, UnavailableNodes:n1")


def test_one_that_begins_later_is_told_with_the_time_that_fits_before_it() -> None:
    said, fix = explain_reserved([reserved(7230)], {"partition": "train"}, ROWS, NOW)
    begins, ends = at(7230).replace("T", " "), at(10830).replace("T", " ")
    assert said == (
        "slurm.time reaches into the reservation maint (maintenance, n[1-3]),"
        f" from {begins} until {ends}"
    )
    assert fix.startswith("slurm.time=1:59:00 or less lets it begin before")


@pytest.mark.parametrize("start_s", [-60.0, 0.0])
def test_one_that_is_on_has_an_end_alone(start_s: float) -> None:
    said, fix = explain_reserved([reserved(start_s, name="course")], {}, ROWS, NOW)
    ends = at(start_s + 3600).replace("T", " ")
    assert said == f"nodes that it needs are reserved for others: course (n[1-3]), until {ends}"
    assert fix == ""


def test_where_too_little_time_is_left_nothing_shorter_is_proposed() -> None:
    assert explain_reserved([reserved(600)], {}, ROWS, NOW)[1] == ""
    assert explain_reserved([reserved(720)], {}, ROWS, NOW)[1].startswith("slurm.time=0:11:00")


@pytest.mark.parametrize(
    ("other", "options"),
    [
        (reserved(900, nodes="n9"), {"partition": "train"}),
        (reserved(-3700), {}),
        (reserved(900), {"reservation": "maint"}),
    ],
)
def test_those_of_other_nodes_of_the_past_and_its_own_are_not_meant(
    other: Reservation, options: dict[str, str | None]
) -> None:
    told = explain_reserved([other], options, ROWS, NOW)[0]
    assert told.startswith("its nodes are reserved for others (`scontrol show reservation`")
    said, _ = explain_reserved([other, reserved(1800, name="next")], options, ROWS, NOW)
    assert "reservation next (n[1-3])" in said


def test_what_is_not_known_sends_to_the_command_that_shows_it() -> None:
    for reason in (MAINTENANCE, OTHERS):
        told = explain_pending(reason)
        assert told == (
            "its nodes are reserved for others (`scontrol show reservation` shows until when):"
            " it starts when that has passed"
        )


def test_a_job_that_has_saved_goes_on_with_a_shorter_time() -> None:
    asked = Asked(resumable="r1", nodes=ROWS, reservations=[reserved(7230)], now=NOW, options={})
    assert "`hpc-train resume r1 slurm.time=VALUE`, which keeps its steps" in explain_pending(
        MAINTENANCE, "7", asked
    )


@pytest.mark.slurm
def test_a_maintenance_ahead_is_told_at_the_submission_and_by_status(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    words = ("starttime=now+40minutes", "duration=60", "users=nobody", "nodes=ALL")
    slurm_cluster.scontrol("create", "reservation=maint", *words, "flags=maint,ignore_jobs")
    try:
        shape = ("--nodes", "1", "--gpus", "1", "--time", "2:00:00", "--json")
        done = hpc(slurm_cluster, tmp_path, "submit", str(DIGITS), *shape)
        assert done.returncode == 0, done.stderr
        job_id = json.loads(done.stdout)["job_id"]
        deadline = time.monotonic() + 60
        while "Reserved_for_maintenance" not in slurm_cluster.job(job_id)["Reason"]:
            assert time.monotonic() < deadline, slurm_cluster.job(job_id)
            time.sleep(0.5)
        told = hpc(slurm_cluster, tmp_path, "status", "latest").stdout
        assert "slurm.time reaches into the reservation maint (maintenance, node[1-3])" in told
        assert "slurm.time=0:3" in told
        assert "sinfo -R" not in told
    finally:
        slurm_cluster.command(["scancel", "--user=root"])
        slurm_cluster.scontrol("delete", "reservation=maint")


@pytest.mark.slurm
def test_a_partition_that_takes_no_jobs_is_named_with_those_that_do(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(nodes="node[1-3]")
    shape = ("submit", str(DIGITS), "--nodes", "1", "--gpus", "1", "--time", "0:03:00")
    for state in ("DRAIN", "INACTIVE"):
        cluster.scontrol("update", "PartitionName=short", f"State={state}")
        try:
            done = hpc(cluster, tmp_path, *shape, "--partition", "short")
        finally:
            cluster.scontrol("update", "PartitionName=short", "State=UP")
        assert done.returncode == 4
        assert f"slurm.partition (--partition) is short ({state.lower()[:5]}" in done.stderr
        assert "takes no jobs now: up are train, urgent" in done.stderr
