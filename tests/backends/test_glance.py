"""The list of runs: what is kept of it, and when it is made anew."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.backends.glance import newest_run, rows
from hpc_train.backends.observe import observe
from hpc_train.report.columns import LIST_HEADER
from hpc_train.report.diary import list_row
from hpc_train.store.events import Event, EventKind, append_event
from hpc_train.store.layout import RunDir
from hpc_train.store.ranks import Heartbeat, write_heartbeat

STATE, STEP = LIST_HEADER.index("STATE"), LIST_HEADER.index("STEP")


class Slurm:
    """A squeue that says what it is told to, and counts how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        squeue = folder / "squeue"
        squeue.write_text(f"#!/bin/sh\necho >> {folder}/asked\ncat {folder}/says\n")
        squeue.chmod(0o755)
        # Debian's own would look for a cluster by name service, for a minute.
        sacct = folder / "sacct"
        sacct.write_text("#!/bin/sh\nexit 1\n")
        sacct.chmod(0o755)
        self.says()

    def says(self, *lines: str) -> None:
        (self.folder / "says").write_text("".join(f"{line}\n" for line in lines))

    def asked(self) -> int:
        """How often since the last call."""
        log = self.folder / "asked"
        count = len(log.read_text()) if log.exists() else 0
        log.write_text("")
        return count


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    fake = Slurm(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{fake.folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # Debian's own sacct may be installed: without a cluster it fails, as at some sites.
    monkeypatch.setenv("SLURM_CONF", "/nowhere/slurm.conf")
    return fake


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunDir]:
    def make(number: int, job_id: str, *, ended: bool) -> RunDir:
        run = RunDir(tmp_path / "runs" / f"name{number % 2}" / f"id-{number}")
        run.attempt(0).path.mkdir(parents=True)
        run.plan.write_text("{}")
        run.latest.symlink_to("attempts/0")
        at = time.time() - 1000 + number
        tell(run, at, EventKind.SUBMITTED, job_id=job_id, backend="slurm")
        tell(run, at + 1, EventKind.ATTEMPT_STARTED, attempt=0, job_id=job_id)
        if ended:
            end(run, at + 2)
        return run

    return make


def tell(run: RunDir, at: float, kind: EventKind, **data: object) -> None:
    append_event(run.events, Event(at, kind, data))


def end(run: RunDir, at: float) -> None:
    told = {"outcome": "completed", "last_step": 7, "saved_step": 7}
    tell(run, at, EventKind.ATTEMPT_ENDED, attempt=0, **told)
    tell(run, at, EventKind.RUN_ENDED, attempt=0, state="completed", reason="all done")


def listed(tmp_path: Path) -> list[list[str]]:
    return rows(os.environ, [str(tmp_path / "runs")])


def observed(runs: list[RunDir]) -> list[list[str]]:
    """What the diaries say, newest first, without anything kept."""
    return [list(list_row(status)) for status in reversed(observe(runs, time.time()))]


def test_what_is_kept_says_what_the_diaries_say_at_the_price_of_one_squeue(
    slurm, make_run, tmp_path
):
    runs = [make_run(number, str(number), ended=number < 3) for number in range(5)]
    slurm.says("3|RUNNING|None|node1|N/A", "4|PENDING|Priority||N/A")
    expected = observed(runs)
    slurm.asked()
    for _ in range(3):
        assert listed(tmp_path) == expected
        assert slurm.asked() == 1
    assert newest_run(os.environ, [str(tmp_path / "runs")]) == str(runs[-1].path)
    assert slurm.asked() == 0


def test_ended_runs_need_no_slurm_at_all(slurm, make_run, tmp_path):
    runs = [make_run(number, str(number), ended=True) for number in range(3)]
    assert listed(tmp_path) == listed(tmp_path) == observed(runs)
    assert slurm.asked() == 0


def test_a_job_whose_state_changed_is_seen_at_once(slurm, make_run, tmp_path):
    make_run(0, "7", ended=False)
    slurm.says("7|PENDING|Priority||N/A")
    assert listed(tmp_path)[0][STATE] == "pending"
    slurm.says("7|RUNNING|None|node1|N/A")
    slurm.asked()
    assert listed(tmp_path)[0][STATE] == "running"
    assert slurm.asked() == 1


def test_a_job_that_slurm_forgot_is_lost_and_not_still_running(slurm, make_run, tmp_path):
    make_run(0, "7", ended=False)
    slurm.says("7|RUNNING|None|node1|N/A")
    assert listed(tmp_path)[0][STATE] == "running"
    slurm.says()
    assert [listed(tmp_path)[0][STATE] for _ in range(2)] == ["lost", "lost"]


def test_the_steps_of_a_running_job_go_on(slurm, make_run, tmp_path):
    run = make_run(0, "7", ended=False)
    slurm.says("7|RUNNING|None|node1|N/A")
    for step in (3, 5):
        beat = Heartbeat(
            rank=0, node="n", pid=1, time=1.0, moved=1.0, phase="train", step=step, batch=9
        )
        write_heartbeat(run.attempt(0), beat)
        assert listed(tmp_path)[0][STEP] == str(step)


def test_a_diary_that_grew_is_read_again(slurm, make_run, tmp_path):
    run = make_run(0, "7", ended=False)
    slurm.says("7|RUNNING|None|node1|N/A")
    assert listed(tmp_path)[0][STATE] == "running"
    end(run, time.time())
    assert listed(tmp_path)[0][STATE] == "completed"


def test_new_runs_appear_and_removed_ones_go(slurm, make_run, tmp_path):
    first = make_run(0, "1", ended=True)
    assert len(listed(tmp_path)) == 1
    make_run(1, "2", ended=True)
    assert [row[1] for row in listed(tmp_path)] == ["id-1", "id-0"]
    first.events.unlink()
    first.plan.unlink()
    assert [row[1] for row in listed(tmp_path)] == ["id-1"]


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"not marshal", json.dumps({}).encode()])
def test_a_broken_memory_costs_nothing_but_time(slurm, make_run, tmp_path, garbage):
    make_run(0, "1", ended=True)
    good = listed(tmp_path)
    (file,) = (tmp_path / "state/hpc-train/glance").iterdir()
    file.write_bytes(garbage)
    assert listed(tmp_path) == good
