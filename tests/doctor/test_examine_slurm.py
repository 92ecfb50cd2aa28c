"""What the doctor says of a site, also of such as the test cluster cannot be set up."""

from __future__ import annotations

import pytest

from hpc_train.doctor.examine_slurm import check_nodes, check_site
from hpc_train.slurm.site import SlurmSite

CONFIG = {
    "SLURM_VERSION": "23.11.4",
    "ClusterName": "big",
    "JobRequeue": "1",
    "MaxArraySize": "1001",
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "REQUEUE",
    "KillWait": "30 sec",
}
GPU = {"PartitionName": "gpu", "Default": "YES", "MaxTime": "1-00:00:00"}
LONG = {"PartitionName": "long", "Default": "NO", "MaxTime": "UNLIMITED"}


def said(partitions=(GPU, LONG), **config):
    site = SlurmSite(CONFIG | config, partitions)
    return {item.check: item for item in check_site(site)}


def test_a_site_that_allows_everything_passes() -> None:
    calm = [part | {"GraceTime": "60", "PreemptMode": "REQUEUE"} for part in (GPU, LONG)]
    found = said(calm)
    assert {item.level for item in found.values()} == {"ok"}
    assert found["slurm"].evidence == "23.11.4, cluster big"
    assert found["MaxTime"].evidence == "gpu* 1-00:00:00; long UNLIMITED"
    assert found["arrays"].evidence == "MaxArraySize=1001: indices up to 1000"


@pytest.mark.parametrize(
    ("partitions", "config", "check", "level", "words"),
    [
        ([GPU], {"SLURM_VERSION": "21.08.8-2"}, "slurm", "warn", "21.08.8-2"),
        ([GPU], {"JobRequeue": "0"}, "requeue", "ok", "only where they ask"),
        ([GPU], {"MaxArraySize": "0"}, "arrays", "warn", "off"),
        ([GPU], {"PreemptType": "(null)"}, "preemption", "ok", "none"),
        ([GPU], {"PreemptType": "preempt/none"}, "preemption", "ok", "none"),
        ([GPU | {"PreemptMode": "CANCEL"}, LONG], {}, "preempted jobs", "warn", "gpu:"),
        ([GPU | {"GraceTime": "0"}], {}, "grace", "warn", "KillWait 30 sec"),
        ([GPU | {"GraceTime": "0"}, LONG | {"GraceTime": "60"}], {}, "grace", "warn", "60 on long"),
        ([], {}, "MaxTime", "fail", "no partition"),
    ],
)
def test_what_a_site_does_not_allow(partitions, config, check, level, words) -> None:
    found = said(partitions, **config)[check]
    assert found.level == level
    assert words in found.evidence
    assert bool(found.fix) == (level != "ok")


@pytest.mark.parametrize(
    ("rows", "level", "text"),
    [
        ([], "", ""),
        ([("a*", "n1", "idle", "none"), ("b", "n1", "idle", "none")], "ok", "1, none of them down"),
        (
            [("a*", f"n{n}", "drained*", "disk swap") for n in (1, 2)]
            + [("b", "n2", "drained*", "disk swap"), ("a*", "n3", "down", "no power")],
            "warn",
            '3 of 3 take no jobs: n[1-2] are drained ("disk swap"); n3 is down ("no power")',
        ),
        ([("a*", "n1", "idle~", "none"), ("a*", "n2", "maint", "none")], "ok", "2, none"),
        (
            [("a*", f"n{n}", "down", f"why {n}") for n in range(9)],
            "warn",
            'n3 is down ("why 3"); more of them: `sinfo -R`',
        ),
    ],
)
def test_nodes_that_take_no_jobs_are_told_with_their_reasons(rows, level, text) -> None:
    found = list(check_nodes(rows))
    assert [item.level for item in found] == ([level] if level else [])
    assert all(text in item.evidence for item in found)
