"""`hpc-train submit --dry-run` where Slurm is: what sinfo tells of the job is said beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run_of_yesterday import project

__all__ = ["project"]

SINFO = """\
echo "$*" >> {asked}
case "$*" in
  *--all*) printf 'train\\nurgent\\nhidden\\n';;
  *) cat <<'END'
train*|infinite|3|1-infinite|8|(null)|n[1-3]|N/A|16000|up
urgent|5:00|3|1-infinite|8|(null)|n[1-3]|N/A|16000|up
END
esac"""
TO_ASK = "(--dry-run); --test-only asks Slurm whether and when it would start\n"


@pytest.fixture
def asked(taken, tmp_path: Path) -> Path:
    """What sinfo was asked, a line each."""
    log = tmp_path / "asked-of-sinfo"
    taken.has("sinfo", SINFO.format(asked=log))
    return log


@pytest.mark.parametrize("more", [[], ["--sweep", "seed=1,2"], ["--json"]])
@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["--partition", "gpu"], "slurm.partition is gpu: there are train, urgent"),
        (["--partition", "trian"], "is trian: did you mean 'train'? there are train, urgent"),
        (
            ["--partition", "urgent", "--time", "2:00:00"],
            "(urgent 5:00), so the job would never start: write slurm.partition=train, which",
        ),
        (["slurm.mem_per_cpu=9G"], "no node of the partition has so much (train 16000M, urgent"),
        (["--nodes", "4"], "more than the partition gives a job (train 3)"),
    ],
)
def test_what_submit_would_refuse_is_noted(
    hpc, project: Path, asked: Path, words: list[str], note: str, more: list[str]
) -> None:
    said = hpc("submit", "cfg.yaml", "--dry-run", *words, *more)
    assert said.code == 0, said
    (told,) = [line for line in said.err.splitlines() if "submit would refuse it: " in line]
    assert note in told
    if "--json" in more:
        assert json.loads(said.out)["schema_version"] == 1
    assert len(asked.read_text().splitlines()) == 1 + (
        "slurm.partition is" in note or "did" in note
    )


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--partition", "train,urgent", "--time", "2:00:00"],
        ["--partition", "hidden"],  # which sinfo shows with --all alone
    ],
)
def test_nothing_is_noted_of_what_slurm_may_take(hpc, project: Path, asked: Path, words) -> None:
    said = hpc("submit", "cfg.yaml", "--dry-run", *words)
    assert "refuse" not in said.err
    assert said.err.endswith(TO_ASK)


@pytest.mark.parametrize("sinfo", ["exit 1", "echo", "sleep 9"])
def test_a_slurm_that_does_not_tell_is_no_reason_to_fail(
    hpc, taken, project: Path, sinfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpc_train.slurm.partitions.SINFO_S", 0.3)
    taken.has("sinfo", sinfo)
    said = hpc("submit", "cfg.yaml", "--dry-run", "--partition", "gpu")
    assert (said.code, "refuse" in said.err) == (0, False), said


@pytest.mark.parametrize("more", [[], ["--sweep", "seed=1,2"]])
def test_render_notes_the_same_beside_the_script(
    hpc, project: Path, asked: Path, more: list[str]
) -> None:
    said = hpc("render", "cfg.yaml", "--partition", "trian", *more)
    told = "slurm.partition is trian: did you mean 'train'? there are train, urgent"
    assert said.err == f"note: this machine's Slurm would not run it: {told}\n"
    assert (said.code, said.out.startswith("#!/bin/bash")) == (0, True)
    assert hpc("render", "cfg.yaml", "--partition", "train", *more).err == ""


FEATURES = """\
echo "$*" >> {asked}
case "$*" in
  *--all*%f*) printf 'a100,nvlink\nv100\nsecret\n';;
  *--all*) printf 'n1\nn2\nn3\nhidden1\n';;
  *) cat <<'END'
train*|infinite|2|1-infinite|8|(null)|n[1-2]|N/A|16000|up|a100,nvlink
train*|infinite|1|1-infinite|8|(null)|n3|N/A|16000|up|v100
END
esac"""


@pytest.mark.parametrize(
    ("words", "note", "asks"),
    [
        ("slurm.constraint=nvlnk", "is nvlnk: did you mean 'nvlink'? there are a100, nvlink", 2),
        ("slurm.constraint=nvlink&x1", "slurm.constraint is nvlink&x1: there are a100, nvlink", 2),
        ("slurm.exclude=n[1-3],m9", "slurm.exclude leaves 0 of the partition's 3 nodes", 1),
        ("slurm.exclude=n[7-8]", "slurm.exclude names n[7-8], and there is no such node: th", 2),
        ("slurm.nodelist=m9", "slurm.nodelist names m9, and the partition has no such node", 1),
        ("slurm.constraint=a100", "", 1),
        ("slurm.constraint=[a100*1|v100]", "", 1),
        ("slurm.constraint=secret", "", 2),  # of nodes that sinfo shows with --all alone
        ("slurm.exclude=hidden1", "", 2),
        ("slurm.exclude=n1", "", 1),
        ("slurm.exclude=./nodes.txt", "", 1),
    ],
)
def test_features_and_nodes_that_there_are_not_are_noted(
    hpc, taken, project: Path, tmp_path: Path, words: str, note: str, asks: int
) -> None:
    log = tmp_path / "asked-of-sinfo"
    taken.has("sinfo", FEATURES.format(asked=log))
    for command in (["submit", "--dry-run"], ["render"]):
        said = hpc(*command, "cfg.yaml", words)
        assert said.code == 0, said
        told = [
            it for it in said.err.splitlines() if "would refuse it: " in it or "would not" in it
        ]
        assert len(told) == bool(note), said
        assert note in "".join(told)
        assert len(log.read_text().splitlines()) == asks
        log.unlink()


def test_a_dry_run_for_this_machine_asks_nothing(hpc, project: Path, asked: Path) -> None:
    said = hpc("submit", "cfg.yaml", "--dry-run", "--cluster", "local", "--partition", "gpu")
    assert said.code == 0
    assert "--test-only" not in said.err
    assert not asked.exists()


def test_without_slurm_nothing_is_said_of_it(hpc, project: Path, without_slurm: None) -> None:
    said = hpc("submit", "cfg.yaml", "--dry-run", "--partition", "gpu")
    assert (said.code, "Slurm" in said.err, "refuse" in said.err) == (0, False, False), said
    said = hpc("render", "cfg.yaml", "--partition", "gpu")
    assert (said.code, said.err) == (0, ""), said


@pytest.mark.parametrize("time", ["25:00", "24:00", "16:75", "2099-13-01", "2099-01-32T16:00"])
def test_a_time_that_there_is_not_is_refused(hpc, project: Path, time: str) -> None:
    for command in (["submit", "--dry-run"], ["render"]):
        said = hpc(*command, "cfg.yaml", f"slurm.begin={time}")
        assert f"slurm.begin is '{time}'" in said.err
        assert "fix: write it like now+1hour, tomorrow, 16:00, or a date" in said.err


@pytest.mark.parametrize(
    "time",
    [
        "23:59",
        "now+90minutes",
        "now+30",
        "2099-12-31T23:59:59",
        "8:30pm",
        "12/24/99-16:00",
        "1224-16:00",
    ],
)
def test_times_as_sbatch_takes_them_are_taken(hpc, project: Path, time: str) -> None:
    assert hpc("render", "cfg.yaml", f"slurm.begin={time}").code == 0
