"""A name that Slurm refuses is told with the names that there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.slurm.refusals import refusal_error
from tests.cluster.cluster import Cluster
from tests.e2e.conftest import DIGITS
from tests.slurm.test_sites import hpc
from tests.supervisor.programs import Slurm

PARTITION = (
    "sbatch: error: invalid partition specified: {0}\n"
    "sbatch: error: Batch job submission failed: Invalid partition name specified\n"
)
FEATURE = "sbatch: error: Batch job submission failed: Invalid feature specification\n"
RESERVATION = "sbatch: error: Batch job submission failed: Requested reservation is invalid\n"
NODE = "sbatch: error: Batch job submission failed: Invalid node name specified\n"
LICENCE = "sbatch: error: Batch job submission failed: Invalid license specification\n"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


@pytest.mark.parametrize(
    ("words", "options", "program", "said", "fix"),
    [
        (
            PARTITION.format("trian"),
            {"partition": "trian"},
            "sinfo",
            ["train", "urgent", "short"],
            "slurm.partition is trian: did you mean 'train'? there are train, urgent, short",
        ),
        (
            PARTITION.format("trian"),
            {"partition": "train,trian"},
            "sinfo",
            [f"p{number}" for number in range(40)] + ["train"],
            "did you mean 'train'? there are 41, among them train, p0, p1, p2, p3, p4, p5, p6",
        ),
        (
            FEATURE,
            {"constraint": "a10O&ib*2", "partition": "train"},
            "sinfo",
            ["a100,ib", "(null)"],
            "slurm.constraint is a10O&ib*2: did you mean 'a100'? there are a100, ib",
        ),
        (
            FEATURE,
            {"constraint": "a100", "partition": "train"},
            "sinfo",
            ["(null)"],
            "and no node of train has features: leave slurm.constraint out",
        ),
        (
            RESERVATION,
            {"reservation": "curse"},
            "scontrol",
            ["ReservationName=course StartTime=2026-11-25T10:00:00 Nodes=node1"],
            "slurm.reservation is curse: did you mean 'course'? there is course",
        ),
        (
            RESERVATION,
            {"reservation": "curse"},
            "scontrol",
            ["No reservations in the system"],
            "slurm.reservation is curse, and there is no reservation: leave slurm.reservation out",
        ),
        (
            LICENCE,
            {"licenses": "matlap:2"},
            "scontrol",
            ["LicenseName=matlab Total=4 Used=0 Free=4 Reserved=0 Remote=no"],
            "slurm.licenses is matlap:2: did you mean 'matlab'? there is matlab",
        ),
        (
            NODE,
            {"exclude": "node[2-5]", "nodelist": "node1"},
            "sinfo",
            ["node1", "node2", "node3", "node1"],
            "slurm.exclude names node[4-5], and there is no such node: there are node[1-3]",
        ),
        (
            NODE,
            {"exclude": "gpu9"},
            "sinfo",
            [f"{letter}{letter}x{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"],
            "there are aaxa, bbxb, ccxc, ddxd, eexe, ffxf, ggxg, hhxh and 18 more",
        ),
    ],
)
def test_the_names_that_there_are_stand_behind_slurms_own_words(
    slurm: Slurm,
    words: str,
    options: dict[str, str | None],
    program: str,
    said: list[str],
    fix: str,
) -> None:
    slurm.says(program, *said)
    error = refusal_error(words, options)
    assert error.message.startswith("Slurm refused the job: ")
    assert fix in error.hint
    assert len(slurm.asked(program)) == 1


@pytest.mark.parametrize("answers", ["hidden", "fails", "absent"])
def test_without_a_sure_answer_the_command_that_lists_them_is_named(
    slurm: Slurm, answers: str
) -> None:
    if answers != "absent":
        slurm.says("sinfo", "trian", code=int(answers == "fails"))
    error = refusal_error(PARTITION.format("trian"), {"partition": "trian"})
    assert error.message.startswith("Slurm refused the job: invalid partition specified: trian")
    assert error.hint == "change slurm.partition (--partition): `sinfo -s` lists the partitions"


def test_nodes_that_are_all_there_are_not_blamed(slurm: Slurm) -> None:
    slurm.says("sinfo", "node1", "node2")
    for value in ("node1", "/home/me/nodes.txt", "node[1"):
        hint = refusal_error(NODE, {"exclude": value}).hint
        assert hint == "change slurm.nodelist or slurm.exclude: `sinfo -N -o %N` lists the nodes"


@pytest.mark.slurm
def test_a_mistyped_partition_is_told_by_submit_and_by_test_only(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster()
    there = cluster.command(["sinfo", "--noheader", "--format=%R"]).stdout.split()
    for words in ((), ("--test-only",)):
        done = hpc(cluster, tmp_path, "submit", str(DIGITS), "--partition", f"{there[0]}s", *words)
        assert done.returncode == 4, done.stdout + done.stderr
        assert f"did you mean '{there[0]}'? there" in done.stderr
    done = hpc(cluster, tmp_path, "submit", str(DIGITS), "slurm.constraint=a100")
    assert "slurm.constraint is a100" in done.stderr, done.stderr
    done = hpc(cluster, tmp_path, "submit", str(DIGITS), "slurm.exclude=node9")
    assert "slurm.exclude names node9, and there is no such node: there are" in done.stderr, done
    done = hpc(cluster, tmp_path, "submit", str(DIGITS), "slurm.reservation=course")
    assert "there is no reservation: leave slurm.reservation out" in done.stderr, done.stderr
