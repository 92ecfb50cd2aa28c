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


def test_render_and_a_dry_run_for_this_machine_ask_nothing(hpc, project: Path, asked: Path) -> None:
    assert hpc("render", "cfg.yaml", "--partition", "gpu").code == 0
    said = hpc("submit", "cfg.yaml", "--dry-run", "--cluster", "local", "--partition", "gpu")
    assert said.code == 0
    assert "--test-only" not in said.err
    assert not asked.exists()


def test_without_slurm_nothing_is_said_of_it(hpc, project: Path, without_slurm: None) -> None:
    said = hpc("submit", "cfg.yaml", "--dry-run", "--partition", "gpu")
    assert (said.code, "Slurm" in said.err, "refuse" in said.err) == (0, False, False), said
