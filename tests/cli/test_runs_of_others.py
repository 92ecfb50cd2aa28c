"""What only the owner of a run can do, as another user who may read it types it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ownership import owner_of
from tests.cli.test_resume_notes import CONFIG, NETS, submitted

OTHER = 65_533  # of nobody


def become_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may read all and write nothing, and is somebody else."""
    allowed = os.access
    monkeypatch.setattr("os.getuid", lambda: OTHER)
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK and allowed(path, mode))


@pytest.fixture
def another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    become_another(monkeypatch)


@pytest.fixture
def run(hpc, taken, tmp_path: Path) -> RunDir:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    return submitted(hpc)


def contents(run: RunDir) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("words", "doing"),
    [
        ("rm x", "remove"),
        ("rm x --yes", "remove"),
        ("resume x", "resume"),
        ("resume x --nodes 1 --dry-run", "resume"),
        ("resume x trainer.max_epochs=9", "resume"),
    ],
)
def test_a_run_of_another_user_is_told_by_its_owner(
    hpc, run: RunDir, another_user: None, words: str, doing: str
) -> None:
    before = contents(run)
    said = hpc(*words.split())
    owner = owner_of(run.path)
    told = f"error: x ({run.run_id}) is a run of {owner}: only they can {doing} it"
    assert (said.code, said.err.splitlines()) == (1, [told])
    assert contents(run) == before


def test_a_waiting_run_of_another_user_is_not_cancelled(
    hpc, taken, run: RunDir, another_user: None
) -> None:
    events = [it for it in run.events.read_text().splitlines() if "run_ended" not in it]
    run.events.write_text("".join(f"{it}\n" for it in events))
    taken.says("7|PENDING|Priority|N/A|N/A")
    said = hpc("cancel", "x")
    told = f"is a run of {owner_of(run.path)}: only they can cancel it"
    assert (said.code, "Traceback" in said.err) == (1, False)
    assert told in said.err, said


def test_its_weights_are_offered(hpc, run: RunDir, another_user: None) -> None:
    folder = run.checkpoints / "step-000000040"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"step": 40, "epoch": 0, "files": []}))
    said = hpc("resume", "x")
    assert f"fix: with its weights: hpc-train submit cfg.yaml init_from={run.path}\n" in said.err


def test_a_pattern_leaves_it_where_it_is(hpc, run: RunDir, another_user: None) -> None:
    said = hpc("rm", "x/*", "--yes")
    assert f"kept: {run.run_id} is a run of {owner_of(run.path)}" in said.err
    assert run.plan.exists()


def test_a_run_of_ones_own_on_a_disk_without_writing_is_not_anothers(
    hpc, run: RunDir, another_user: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getuid", lambda: run.path.stat().st_uid)
    assert hpc("resume", "x", "--dry-run").code == 0


def test_a_sweep_of_another_user(hpc, run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hpc("submit", "cfg.yaml", "--name", "sw", "--sweep", "seed=1,2").code == 0
    become_another(monkeypatch)
    for words in ("cancel sw", "resume sw", "resume sw trainer.max_epochs=9"):
        said = hpc(*words.split())
        told = f"is a sweep of {owner_of(run.path)}: only they can {words.split()[0]} it"
        assert (said.code, told in said.err) == (1, True), said
