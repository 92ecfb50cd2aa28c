"""Raw loops with a session: the same guarantees as with Lightning, by real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

import hpc_train
from hpc_train import api
from hpc_train.errors import ConfigError, HpcTrainError, RunFailedError
from hpc_train.plan.states import RunState
from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_exits, read_heartbeat
from hpc_train.training.session import Session
from hpc_train.training.sessions.session_history import SessionHistory
from tests.ledger import compare, compare_samples
from tests.training.ranks import Run

JOB = {"module": "tests.training.session_job", "epochs": 3}
SPECS: dict[str, dict[str, Any]] = {
    "DDP": {},
    "accumulation and data workers": {"accumulate": 2, "workers": 2},
    "a stream": {"data": "stream", "samples": 72},
    "FSDP2": {"data": "fsdp"},
    "a layer that thaws": {"thaw": True},
    "statistics of each rank's own": {"ddp": {"broadcast_buffers": False}},
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_raw_loop_that_is_stopped_goes_on_exactly(spec: dict[str, Any], tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", **JOB, **spec)
    assert undisturbed.run(3) == [0] * 3
    steps_an_epoch = max(entry.step for entry in undisturbed.ledger if entry.epoch == 0)
    run = Run(tmp_path / "run", **JOB, **spec)
    for step in (1, 2, steps_an_epoch, 2 * steps_an_epoch - 1):
        assert run.run(3, f"stop@step={step}:rank=1") == [75] * 3
        assert f"step-{step:09d}" in run.checkpoints
    assert run.run(3) == [0] * 3
    comparison = compare(undisturbed.ledger, run.ledger)
    assert comparison.problems == []
    assert comparison.retaken == 0
    assert comparison.steps == 3 * steps_an_epoch
    for name in ("buffers-0.pt", "buffers-2.pt"):
        expected, got = torch.load(undisturbed.path / name), torch.load(run.path / name)
        assert all(torch.equal(expected[key], got[key]) for key in expected)


def test_a_killed_rank_and_a_late_signal_cost_only_what_was_not_saved(tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", **JOB)
    assert undisturbed.run(3) == [0] * 3
    run = Run(tmp_path / "run", **JOB, checkpoint={"every_n_steps": 2})
    assert run.run(3, "kill@step=5:rank=1")[1] == -signal.SIGKILL
    ranks = run.start(3, step_s=0.5)
    ranks.wait_for_step(8)
    ranks.send(signal.SIGUSR1, 1)
    time.sleep(0.3)
    with suppress(ProcessLookupError):  # it may have saved and left before
        ranks.send(signal.SIGUSR1, 0)
    assert ranks.wait() == [75] * 3
    assert run.run(3) == [0] * 3
    assert compare(undisturbed.ledger, run.ledger).problems == []


@pytest.mark.parametrize("data", ["map", "fsdp"])
def test_another_number_of_ranks_goes_on_with_the_same_samples(data: str, tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", **JOB, data=data)
    assert undisturbed.run(2) == [0, 0]
    run = Run(tmp_path / "run", **JOB, data=data)
    assert run.run(4, "stop@step=4") == [75] * 4
    assert run.run(1 if data == "map" else 2, "stop@step=9") == [75] * (1 if data == "map" else 2)
    assert run.run(2) == [0, 0]
    assert compare_samples(undisturbed.ledger, run.ledger).problems == []


def test_a_stop_in_a_long_evaluation_leaves_and_evaluates_anew(tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", **JOB)
    assert undisturbed.run(3) == [0] * 3
    run = Run(tmp_path / "run", **JOB)
    assert run.run(3, "stop@validate=2:rank=0", val_batch_s=0.5) == [75] * 3
    assert run.checkpoints == ["step-000000006"]
    assert run.run(3) == [0] * 3
    assert compare(undisturbed.ledger, run.ledger).problems == []


def test_each_rank_says_how_it_ended(tmp_path: Path) -> None:
    run = Run(tmp_path, **JOB)
    assert run.run(2, "stop@step=3:rank=0") == [75, 75]
    records = read_exits(run.dir.attempt(0))
    assert [(item.code, item.kind, item.cause, item.step) for item in records] == [
        (75, "saved", "SIGTERM", 3)
    ] * 2


def test_a_raw_loop_whose_last_state_is_not_saved_has_failed(tmp_path: Path) -> None:
    run = Run(tmp_path, **JOB)
    run.dir.checkpoints.write_text("in the way")
    assert run.run(2) == [1] * 2, run.log(0, 0)
    for record in read_exits(run.dir.attempt(0)):
        assert (record.kind, record.code) == ("unsaved", RunFailedError.exit_code)
        assert "its last state could not be saved: Not a directory" in record.error
        assert record.error.endswith("once one can write there: start the script again")
    (status,) = [event for event in read_events(run.dir.events) if event.get("state")]
    assert status.get("state") == RunState.FAILED.value
    run.dir.checkpoints.unlink()
    assert run.run(2) == [0] * 2


LOOP = """
import sys
import torch, hpc_train
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(8, 1))
model = torch.nn.Linear(1, 1)
opened = hpc_train.Session.open(run_dir=sys.argv[1], global_batch_size=4, micro_batch_size=2)
"""
ENTERED = "with opened as session:\n session.restore(model=model)\n"
NO_STEP = "4 batches of this rank and no session.stepped()"


@pytest.mark.parametrize(
    ("loop", "told"),
    [
        (
            "for _ in session.epochs(3):\n  for x in session.batches(DataLoader(data)): pass",
            NO_STEP,
        ),
        (
            (
                "for e in session.epochs(3):\n"
                "  for n, x in enumerate(session.batches(DataLoader(data))):\n"
                "    if n == 3: break"
            ),
            NO_STEP,
        ),
        ("for x in session.batches(DataLoader(data)): pass", NO_STEP),
    ],
    ids=["whole epochs", "batches that are left early", "no epochs"],
)
def test_a_loop_that_never_calls_stepped_has_failed(tmp_path: Path, loop: str, told: str) -> None:
    body = ENTERED + textwrap.indent(loop, " ")
    got = run_script(tmp_path, body)
    assert got.returncode == 1
    assert told in got.stderr
    assert got.stderr.rstrip().endswith("(call session.stepped() after each optimizer.step())")
    status = api.Run.find(str(tmp_path / "run")).status()
    assert (status.state, status.step) == (RunState.FAILED, 0)
    assert told in status.reason


@pytest.mark.parametrize(
    "loop",
    [
        "for _ in session.epochs(2): list(session.evaluation(DataLoader(data)))",
        (
            "for _ in session.epochs(2):\n  for x in session.batches(DataLoader(data)): pass\n"
            "  session.stepped()"
        ),
        "for _ in session.epochs(2):\n  next(session.batches(DataLoader(data)))",
        "next(session.batches(DataLoader(data)))",
        "list(session.epochs(0))",
    ],
    ids=["evaluations alone", "a step an epoch", "less than a step", "a look", "no epoch"],
)
def test_a_loop_that_has_no_step_to_count_is_complete(tmp_path: Path, loop: str) -> None:
    got = run_script(tmp_path, ENTERED + textwrap.indent(loop, " "))
    assert got.returncode == 0, got.stderr


def test_what_asked_the_attempt_before_to_stop_does_not_stop_the_next(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stop").touch()
    loop = "for x in session.batches(DataLoader(data)): session.step_is_due and session.stepped()"
    got = run_script(tmp_path, f"{ENTERED} import time; time.sleep(1)\n {loop}")
    assert got.returncode == 0, got.stdout + got.stderr
    assert api.Run.find(str(tmp_path / "run")).status().step == 2


@pytest.mark.parametrize("method", ["epochs(2)", "batches(DataLoader(data))"])
def test_a_session_that_is_not_entered_does_not_train(tmp_path: Path, method: str) -> None:
    got = run_script(tmp_path, f"for _ in opened.{method}: pass")
    assert got.returncode == 1
    assert f"session.{method.partition('(')[0]}() is used outside of" in got.stderr
    assert "write: with hpc_train.Session.open(global_batch_size=64) as session:" in got.stderr


@pytest.mark.parametrize(
    ("loop", "method"),
    [
        ("for x in session.batches(DataLoader(data)): session.stepped()", "batches"),
        ("for _ in session.epochs(2): session.stepped()", "stepped"),
        ("session.stepped()", "stepped"),
    ],
)
def test_a_loop_that_nothing_keeps_does_not_train(tmp_path: Path, loop: str, method: str) -> None:
    got = run_script(tmp_path, f"with opened as session:\n {loop}")
    assert got.returncode == 1
    assert f"session.{method}() is used without session.restore(): nothing of the" in got.stderr
    assert "write session.restore(model=model, optimizer=optimizer) in front of" in got.stderr
    assert api.Run.find(str(tmp_path / "run")).status().step == 0


OWN_DATA = "the first step took no samples of session.batches (loop.py:12): an attempt"


def test_samples_that_the_session_did_not_deal_are_noted_once(tmp_path: Path) -> None:
    loop = "for _ in session.epochs(2):\n  for x in DataLoader(data):\n   session.stepped()"
    got = run_script(tmp_path, ENTERED + textwrap.indent(loop, " "), cwd=tmp_path)
    assert got.returncode == 0, got.stderr
    (note,) = notes_of(tmp_path / "run")
    assert OWN_DATA in note
    assert got.stderr.count(f"note: {OWN_DATA}") == 1
    dealt = "for x in session.batches(DataLoader(data)): session.step_is_due and session.stepped()"
    (tmp_path / "other").mkdir()
    assert run_script(tmp_path / "other", f"{ENTERED} {dealt}").returncode == 0
    assert not notes_of(tmp_path / "other" / "run")


def notes_of(run: Path) -> list[str]:
    events = read_events(RunDir(run).events)
    return [str(it.get("text")) for it in events if it.kind is EventKind.NOTE]


def run_script(
    tmp_path: Path, body: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "loop.py").write_text(f"{LOOP}{body}\n")
    command = [sys.executable, str(tmp_path / "loop.py"), str(tmp_path / "run")]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=250, cwd=cwd
    )


def test_without_a_run_directory_there_is_no_session() -> None:
    with pytest.raises(ConfigError, match="no run directory"):
        Session.open(global_batch_size=8, environ={})


def test_the_example_is_stopped_goes_on_and_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [
        sys.executable,
        "-m",
        "hpc_train.examples.raw_ddp",
        str(tmp_path / "run"),
        "--epochs",
        "2",
    ]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    environment = {**os.environ, "HPC_TRAIN_FAULTS": "stop@step=20:attempt=0"}
    first = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert first.returncode == 75, first.stderr
    with pytest.raises(HpcTrainError, match="a script of its own") as refused:
        api.Run.find("run").resume()
    assert "raw_ddp.py" in refused.value.hint
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert second.returncode == 0, second.stderr
    assert "epoch 1" in second.stdout
    (status,) = hpc_train.list_runs()
    assert (status.name, status.state, status.backend) == ("run", RunState.COMPLETED, "session")
    assert status.step == status.attempts[-1].saved_step == 58


TRACED = {"module": "tests.training.traced_session", "epochs": 2, "samples": 6}
BEGINS = ["before the session"]
ENDS = ["behind the epochs", "behind the session"]


def epoch(number: int, *steps: int, evaluated: bool = True) -> list[str]:
    """All that is written down of an epoch that comes to its end."""
    rest = [f"evaluation of {number}", f"epoch {number} ends"] if evaluated else []
    taken = [f"step {step}" for step in steps]
    return [f"epoch {number} begins", *taken, f"behind the batches of {number}", *rest]


@pytest.mark.parametrize(
    ("stop", "before", "after"),
    [
        (1, epoch(0, 1, evaluated=False), [*epoch(0, 2, 3), *epoch(1, 4, 5, 6)]),
        (2, epoch(0, 1, 2, evaluated=False), [*epoch(0, 3), *epoch(1, 4, 5, 6)]),
        (3, epoch(0, 1, 2, 3, evaluated=False), [*epoch(0), *epoch(1, 4, 5, 6)]),
        (4, [*epoch(0, 1, 2, 3), *epoch(1, 4, evaluated=False)], epoch(1, 5, 6)),
        (6, [*epoch(0, 1, 2, 3), *epoch(1, 4, 5, 6, evaluated=False)], epoch(1)),
    ],
)
def test_what_docs_resuming_says_of_the_code_that_runs_again_is_true(
    tmp_path: Path, stop: int, before: list[str], after: list[str]
) -> None:
    run = Run(tmp_path / "run", **TRACED)
    assert run.run(1, f"stop@step={stop}") == [75]
    assert run.run(1) == [0]
    traces = [(run.path / f"trace-{number}.txt").read_text().splitlines() for number in (0, 1)]
    assert traces == [[*BEGINS, *before, "behind the epochs"], [*BEGINS, *after, *ENDS]]


def test_a_session_is_seen_while_it_trains_and_is_told_how_it_ended(tmp_path: Path) -> None:
    run = Run(tmp_path / "mine", **{**TRACED, "samples": 600}, step_s=0.05)
    ranks = run.start(1)
    ranks.wait_until(lambda: read_heartbeat(run.dir.attempt(0).heartbeat(0)) is not None)
    found = api.Run.find(str(run.path))
    ranks.wait_until(lambda: found.status().step > 3)
    status = found.status()
    assert (status.name, status.state) == ("mine", RunState.RUNNING)
    assert (status.beat.steps, status.beat.epoch, status.beat.epochs) == (600, 1, 2)
    ranks.send(signal.SIGTERM)
    assert ranks.wait() == [75]
    stopped = found.status()
    assert (stopped.state, stopped.attempts[0].steps_lost) == (RunState.CANCELLED, 0)
    assert f"goes on from step {stopped.step}" in stopped.reason
    assert run.run(1, nan_at=stopped.step + 3) == [1]
    failed = found.status()
    assert failed.state is RunState.FAILED
    assert "rank 0: ValueError: my own mistake" in failed.reason
    assert [one.first_step for one in failed.attempts] == [0, stopped.step]


def test_a_session_that_was_killed_is_lost_once_its_heartbeat_is_old(tmp_path: Path) -> None:
    run = Run(tmp_path / "mine", **TRACED, reaction_s=0.0)
    assert run.run(1, "kill@step=2") == [-signal.SIGKILL]
    found = api.Run.find(str(run.path))
    beat = run.dir.attempt(0).heartbeat(0)
    os.utime(beat, (time.time() - 61, time.time() - 61))
    assert found.status().state is RunState.LOST


@pytest.mark.parametrize(
    ("environ", "rank"), [({"HPC_TRAIN_RUN_DIR": "/somewhere"}, 0), ({}, 1)], ids=["ours", "rank 1"]
)
def test_a_run_that_has_a_supervisor_and_other_ranks_leave_the_history_to_them(
    tmp_path: Path, environ: dict[str, str], rank: int
) -> None:
    history = SessionHistory(RunDir(tmp_path), 0, environ, rank=rank)
    history.begins()
    history.goes_on(0)
    history.ends(0)
    assert list(tmp_path.iterdir()) == []
