"""Ranks killed in the middle of saves, and newest checkpoints that turn out to be broken."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from hpc_train.runs.ranks import read_exits
from hpc_train.training.resume.checkpoint import list_checkpoints
from tests.ledger import compare
from tests.training.ranks import Run

SPEC = {"samples": 200, "epochs": 2, "step_s": 0.01, "checkpoint": {"every_n_steps": 1}}
LONG = {**SPEC, "epochs": 5}  # for twenty kills, one to three steps apart


def run_in_one_go(folder: Path, spec: dict[str, object]) -> Run:
    run = Run(folder, **spec)
    assert run.run(2) == [0, 0]
    return run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_in_one_go(tmp_path_factory.mktemp("undisturbed"), SPEC)


@pytest.fixture(scope="module")
def long_undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_in_one_go(tmp_path_factory.mktemp("long"), LONG)


def last_step(run: Run) -> int:
    return max((entry.step for entry in run.ledger), default=0)


def kill_while_saving(run: Run, rng: random.Random, last: int) -> bool:
    """Kill one rank, or both, at a moment of its own choosing; every step saves.

    Returns:
        False if too few steps are left before the `last`.
    """
    done = last_step(run)
    if done > last - 4:
        return False
    ranks = run.start(2)
    ranks.wait_for_step(done + rng.randint(1, 3))
    time.sleep(rng.random() * 0.02)
    for rank in rng.choice([(0,), (1,), (0, 1)]):
        if ranks.processes[rank].is_alive():
            ranks.send(signal.SIGKILL, rank)
    codes = ranks.wait(left_s=20)
    assert set(codes) <= {0, 76, -9}, ranks.logs()
    return True


def assert_goes_on_exactly(run: Run, undisturbed: Run) -> None:
    assert run.run(2) == [0, 0]
    assert compare(undisturbed.ledger, run.ledger).problems == []
    assert all(found.valid for found in list_checkpoints(run.dir.checkpoints, verify=True))


def test_killed_at_random_moments_of_saves_the_run_goes_on_exactly(
    tmp_path: Path, undisturbed: Run
) -> None:
    run, rng = Run(tmp_path, **SPEC), random.Random(1)
    for _ in range(6):
        assert kill_while_saving(run, rng, last_step(undisturbed))
        assert all(found.valid for found in list_checkpoints(run.dir.checkpoints, verify=True))
    assert_goes_on_exactly(run, undisturbed)


@pytest.mark.soak
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", range(5))
def test_killed_at_twenty_random_moments_of_saves_the_run_goes_on_exactly(
    seed: int, tmp_path: Path, long_undisturbed: Run
) -> None:
    run, rng = Run(tmp_path, **LONG), random.Random(seed)
    for _ in range(20):
        assert kill_while_saving(run, rng, last_step(long_undisturbed))
    assert_goes_on_exactly(run, long_undisturbed)


@pytest.mark.parametrize("point", ["save", "commit"])
def test_killed_between_writing_and_commit_the_one_before_is_taken(
    point: str, tmp_path: Path, undisturbed: Run
) -> None:
    run = Run(tmp_path, **SPEC)
    codes = run.run(2, f"kill@{point}=4:rank=0")
    assert codes == [-signal.SIGKILL, 76]
    assert "step-000000004" not in run.checkpoints
    assert_goes_on_exactly(run, undisturbed)
    assert not [name for name in run.checkpoints if "partial" in name]


def truncate(path: Path) -> None:
    os.truncate(path / "model.ckpt", 100)


def flip_a_byte(path: Path) -> None:
    data = bytearray((path / "rank-1.pt").read_bytes())
    data[len(data) // 2] ^= 4
    (path / "rank-1.pt").write_bytes(data)


def lose_the_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


@pytest.mark.parametrize("damage", [truncate, flip_a_byte, lose_the_manifest])
def test_a_broken_newest_checkpoint_costs_the_steps_behind_the_one_before(
    damage: object, tmp_path: Path, undisturbed: Run
) -> None:
    run = Run(tmp_path, **{**SPEC, "checkpoint": {"every_n_steps": 4}})
    assert run.run(2, "stop@step=10") == [75, 75]
    damage(run.dir.checkpoints / "step-000000010")  # type: ignore[operator]
    assert run.run(2, "stop@step=9") == [75, 75]
    assert "step-000000010 is passed over" in run.log(1, 0) or "is passed over" in run.log(1, 0)
    assert "first 8" in run.log(1, 1)  # rank 0 chose, and rank 1 was told
    assert_goes_on_exactly(run, undisturbed)
    assert "step-000000010.broken" in run.checkpoints


def make_unreadable(file: Path) -> None:
    """As of a node whose mount is broken: it answers, and gives no content."""
    file.rename(file.with_suffix(".moved"))
    file.symlink_to(file.name)


def mend(file: Path) -> None:
    file.unlink()
    file.with_suffix(".moved").rename(file)


@pytest.mark.parametrize("name", ["model.ckpt", "rank-1.pt"])
def test_a_checkpoint_that_cannot_be_read_ends_the_attempt_and_is_left_alone(
    name: str, tmp_path: Path, undisturbed: Run
) -> None:
    run = Run(tmp_path, **{**SPEC, "checkpoint": {"every_n_steps": 4}})
    assert run.run(2, "stop@step=10") == [75, 75]
    file = run.dir.checkpoints / "step-000000010" / name
    make_unreadable(file)
    assert run.run(2) == [76, 76], run.log(1, 0)
    for rank in (0, 1):  # rank 0 found it, and rank 1 was told
        assert f"step-000000010 cannot be read on this node: {name} unread" in run.log(1, rank)
    assert "step-000000010" in run.checkpoints
    mend(file)
    assert_goes_on_exactly(run, undisturbed)


@pytest.mark.parametrize("name", ["model.ckpt", "rank-0.pt"])
def test_a_damaged_file_that_nobody_verified_is_one_line_and_no_error_of_torch(
    name: str, tmp_path: Path
) -> None:
    run = Run(tmp_path, **{**SPEC, "checkpoint": {"verify_on_load": False}})
    assert run.run(1, "stop@step=3") == [75]
    file = run.dir.checkpoints / "step-000000003" / name
    data = bytearray(file.read_bytes())
    data[-20:] = bytes(20)  # the end of the archive's directory
    file.write_bytes(data)
    assert run.run(1) == [3], run.log(1, 0)
    (record,) = read_exits(run.dir.attempt(1))
    assert record.error.startswith(
        f"step-000000003 is damaged: {name} damaged: its hash is not the manifest's (hpc-train "
    )
    assert record.traceback == ""


def test_all_checkpoints_broken_means_from_the_beginning(tmp_path: Path, undisturbed: Run) -> None:
    run = Run(tmp_path, **{**SPEC, "checkpoint": {}})
    assert run.run(2, "stop@step=10") == [75, 75]
    truncate(run.dir.checkpoints / "step-000000010")
    assert run.run(2) == [0, 0]
    assert "first 0" in run.log(1, 0)
    assert compare(undisturbed.ledger, run.ledger).problems == []


def test_a_checkpoint_of_another_config_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path, **SPEC)
    assert run.run(1, "stop@step=3") == [75]
    assert run.run(1, config_hash="other") == [3]
    assert "submit a new run" in run.log(1, 0)
