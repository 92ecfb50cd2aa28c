"""Several runs of one name: which is meant is said where it is changed, and who goes on."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from tests.cli.test_resume import CONFIG, NETS


def submitted(hpc, *words: str) -> RunDir:
    said = hpc("submit", "cfg.yaml", "--json", *words)
    assert said.code == 0, said
    return RunDir(Path(json.loads(said.out)["run_dir"]))


def end(*runs: RunDir) -> None:
    ended = {"state": "cancelled", "reason": "somebody cancelled it"}
    for run in runs:
        append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, ended))


@pytest.fixture
def pair(hpc, taken, tmp_path: Path) -> list[RunDir]:
    """Two runs of the name x, the newest first; none has ended."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    old = submitted(hpc)
    return [submitted(hpc), old]


def notes(err: str) -> list[str]:
    return [it for it in err.splitlines() if "are named" in it]


def test_resume_says_which_of_a_name_it_changes(hpc, pair: list[RunDir]) -> None:
    new, old = pair
    end(*pair)
    told = f"note: 2 runs are named x, and this is the newest, {new.run_id}; the other: "
    for word in ("x", "runs/x"):
        said = hpc("resume", word, "--dry-run")
        assert notes(said.err) == [f"{told}{old.run_id} (cancelled, step 0)"]
        assert f"\nrun        {new.run_id}\n" in said.out
    for word in (new.run_id, old.run_id, "latest"):
        assert notes(hpc("resume", word, "--dry-run").err) == []


def test_of_many_three_are_named(hpc, pair: list[RunDir]) -> None:
    more = [submitted(hpc) for _ in range(3)]
    end(*pair, *more)
    (note,) = notes(hpc("resume", "x", "--dry-run").err)
    assert note.startswith("note: 5 runs are named x, and this is the newest, ")
    assert note.count("(cancelled, step 0)") == 3
    assert note.endswith(" and 1 more")


def test_one_alone_is_told_without_a_note(hpc, pair: list[RunDir]) -> None:
    other = submitted(hpc, "--name", "y")
    end(other)
    assert notes(hpc("resume", "y", "--dry-run").err) == []


def test_status_says_who_of_the_name_goes_on_as_well(hpc, pair: list[RunDir]) -> None:
    new, old = pair
    end(new)
    said = hpc("status", "x")
    assert f"\n  run        {new.run_id}\n" in said.out
    assert f"\n  note       of this name {old.run_id} (" in said.out
    assert " goes on as well\n" in said.out
    assert "of this name" not in hpc("status", new.run_id).out
    end(old)
    assert "of this name" not in hpc("status", "x").out


def test_one_that_goes_on_is_said_behind_many_that_have_ended(hpc, pair: list[RunDir]) -> None:
    """The three newest others alone were looked at, and all of them had ended."""
    _, old = pair
    newest = [submitted(hpc) for _ in range(4)]
    end(pair[0], *newest)
    assert f"\n  note       of this name {old.run_id} (" in hpc("status", "x").out
