"""Interrupted trainings against undisturbed ones, with real processes over gloo."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from hpc_train.training.resume.manifest import read_manifest, record_file
from tests.ledger import Entry, compare, compare_samples
from tests.training.ranks import Run

SAVED, FINISHED = 75, 0
_references: dict[str, Run] = {}


@pytest.fixture
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """The undisturbed run of a spec, trained once per test session."""

    def of(world_size: int = 3, **spec: Any) -> Run:
        key = f"{world_size} {sorted(spec.items())}"
        if key not in _references:
            run = Run(tmp_path_factory.mktemp("reference"), **spec)
            assert run.run(world_size) == [FINISHED] * world_size
            _references[key] = run
        return _references[key]

    return of


def assert_same(undisturbed: Run, interrupted: Run, *, retaken: int | None = 0) -> None:
    """Bit-equal at every step, at the end, and in what the epochs logged."""
    comparison = compare(undisturbed.ledger, interrupted.ledger)
    assert comparison.problems == []
    if retaken is not None:
        assert comparison.retaken == retaken
    if not undisturbed.spec["sharded"]:
        expected = torch.load(undisturbed.path / "final.pt", weights_only=True)
        got = torch.load(interrupted.path / "final.pt", weights_only=True)
        assert expected.keys() == got.keys()
        assert all(torch.equal(expected[name], got[name]) for name in expected)
    for rank in {entry.rank for entry in undisturbed.ledger}:
        assert sorted(set(interrupted.epochs(rank))) == undisturbed.epochs(rank)


def finish(run: Run, world_size: int = 3, **changes: Any) -> None:
    assert run.run(world_size, **changes) == [FINISHED] * world_size


SHAPES = {
    "no data workers": {"estimate": True, "epochs": 3},
    "two data workers": {"workers": 2},
    "two persistent data workers": {"workers": 2, "persistent": True},
    "accumulation": {"accumulate": 2},
    "not shuffled": {"shuffle": False},
    "moving average of the weights": {"ema": True},
    "early stopping and best checkpoints": {"early_stopping": True, "epochs": 9},
    "unsized stream": {"data": "stream", "samples": 72, "epochs": 3},
    "unsized stream in two workers": {"data": "stream", "workers": 2, "samples": 84},
    "sized stream in two persistent workers": {
        "data": "sized_stream",
        "workers": 2,
        "persistent": True,
        "samples": 108,
    },
    "stream without a state": {"data": "stateless", "samples": 72},
    "weights in shards": {"sharded": True},
    "validation twice an epoch": {"trainer": {"val_check_interval": 0.5}},
    "max_steps": {"trainer": {"max_steps": 10}, "epochs": -1},
    "a layer that thaws in the second epoch": {"thaw": True, "epochs": 3},
    "a search for unused parameters": {"ddp": {"find_unused_parameters": True}},
    "a static graph, several buckets, views of them": {
        "ddp": {"static_graph": True, "bucket_cap_mb": 0.0003, "gradient_as_bucket_view": True}
    },
}


@pytest.mark.parametrize("spec", SHAPES.values(), ids=SHAPES.keys())
def test_stopping_at_three_places_changes_nothing(
    spec: dict[str, Any], tmp_path: Path, reference: Callable[..., Run]
) -> None:
    undisturbed = reference(**spec)
    last = max(entry.step for entry in undisturbed.ledger)
    steps_of_first_epoch = max(entry.step for entry in undisturbed.ledger if entry.epoch == 0)
    run = Run(tmp_path, **spec)
    for step, rank in ((2, 1), (steps_of_first_epoch, 0), (last - 2, 1)):
        assert run.run(3, f"stop@step={step}:rank={rank}") == [SAVED] * 3
        assert f"step-{step:09d}" in run.checkpoints
    finish(run)
    assert_same(undisturbed, run)


@pytest.mark.parametrize("world_size", [2, 4, 6])
def test_mixed_faults_change_nothing_whatever_the_number_of_ranks(
    world_size: int, tmp_path: Path, reference: Callable[..., Run]
) -> None:
    undisturbed = reference(world_size)
    run = Run(tmp_path, checkpoint={"every_n_steps": 2})
    # Before DDP has arranged its buckets, after that, before the first step, between two saves.
    for fault in ("stop@step=1:rank=1", "stop@step=2:rank=0", "stop@start:rank=1"):
        assert run.run(world_size, fault) == [SAVED] * world_size
    assert -signal.SIGKILL in run.run(world_size, "kill@step=7:rank=1")
    assert run.run(world_size, "stop@step=8:rank=0") == [SAVED] * world_size
    finish(run, world_size)
    assert_same(undisturbed, run, retaken=None)


def test_a_checkpoint_that_knows_no_order_of_sums_is_gone_on_from(
    tmp_path: Path, reference: Callable[..., Run]
) -> None:
    run = Run(tmp_path)
    assert run.run(2, "stop@step=3:rank=1") == [SAVED, SAVED]
    folder = run.dir.checkpoints / "step-000000003"
    for path in folder.glob("rank-*.pt"):  # as earlier versions wrote it
        own = torch.load(path, weights_only=True)
        del own["buckets"], own["inside"]["frozen"]
        torch.save(own, path)
    manifest = read_manifest(folder)
    files = tuple(record_file(folder, folder / record.path) for record in manifest.files)
    (folder / "manifest.json").write_text(replace(manifest, files=files).to_json())
    finish(run, 2)
    assert_same(reference(2), run)  # with two ranks, the order does not show


@pytest.mark.parametrize("skew_s", [0, 0.05, 0.3, 1])
def test_signals_that_reach_the_ranks_at_different_times_do_no_harm(
    skew_s: float, tmp_path: Path, reference: Callable[..., Run]
) -> None:
    undisturbed = reference(step_s=0.05)
    run = Run(tmp_path, step_s=0.3, reaction_s=0.7)
    ranks = run.start(3, step_s=0.6)  # longer than the reaction, less than the largest skew
    ranks.wait_for_step(3)
    for rank in (1, 0):
        try:
            ranks.send(signal.SIGTERM, rank)
        except ProcessLookupError:
            assert skew_s >= 0.3  # it had saved and left before its own signal came
        time.sleep(skew_s if rank == 1 else 0)
    assert ranks.wait() == [SAVED] * 3
    finish(run)
    assert_same(undisturbed, run)


def test_a_stop_is_seen_within_two_steps_while_a_step_takes_half_a_second(tmp_path: Path) -> None:
    run = Run(tmp_path, step_s=0.4, reaction_s=0.7, epochs=10)
    ranks = run.start(2)
    ranks.wait_for_step(2)
    ranks.send(signal.SIGUSR2, 1)
    at = max(entry.step for entry in run.ledger)  # behind the signal, however late that came
    assert ranks.wait() == [SAVED, SAVED]
    assert 2 <= max(entry.step for entry in run.ledger) <= at + 2


def test_the_stop_file_means_the_same_as_a_signal(tmp_path: Path) -> None:
    run = Run(tmp_path, step_s=0.4, epochs=10)
    ranks = run.start(2)
    ranks.wait_for_step(1)
    run.dir.stop.touch()
    assert ranks.wait() == [SAVED, SAVED]
    assert "stopped by stop file" in run.log(0, 1)


def test_a_second_signal_does_not_break_the_save(
    tmp_path: Path, reference: Callable[..., Run]
) -> None:
    undisturbed = reference(step_s=0.05)
    run = Run(tmp_path, step_s=0.3)
    ranks = run.start(3, step_s=1.0)  # time for all of the signals before its last step
    ranks.wait_for_step(4)
    for number in [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2] * 200:
        with suppress(ProcessLookupError):
            ranks.send(number)
        time.sleep(0.003)
    assert ranks.wait() == [SAVED] * 3
    finish(run)
    assert_same(undisturbed, run)


def test_a_stop_in_validation_leaves_at_once_and_validates_anew(
    tmp_path: Path, reference: Callable[..., Run]
) -> None:
    undisturbed = reference(val_samples=40)
    run = Run(tmp_path, val_samples=40)
    ranks = run.start(3, "stop@validate=4:rank=1", val_batch_s=0.5)
    assert ranks.wait() == [SAVED] * 3
    assert run.checkpoints == ["step-000000006"]  # from before the validation of epoch 0
    finish(run)
    assert_same(undisturbed, run)


def test_a_stop_in_the_sanity_check_has_nothing_to_save(
    tmp_path: Path, reference: Callable[..., Run]
) -> None:
    run = Run(tmp_path)
    assert run.run(3, "stop@sanity:rank=1") == [SAVED] * 3
    assert run.checkpoints == []
    assert "nothing new to save" in run.log(0, 0)
    finish(run)
    assert_same(reference(), run)


def test_a_signal_before_the_first_step_leaves_with_nothing_lost(
    tmp_path: Path, reference: Callable[..., Run]
) -> None:
    run = Run(tmp_path)
    assert run.run(3, "stop@step=5:rank=0") == [SAVED] * 3
    assert run.run(3, "stop@start:rank=1") == [SAVED] * 3
    finish(run)
    assert_same(reference(), run)


def test_signals_to_every_process_leave_the_data_workers_alive_for_the_save(
    tmp_path: Path, reference: Callable[..., Run]
) -> None:
    undisturbed = reference(step_s=0.05, workers=2)
    run = Run(tmp_path, step_s=0.3, workers=2)
    ranks = run.start(3, step_s=1.0)
    ranks.wait_for_step(3)
    for process in ranks.processes:
        os.killpg(process.pid, signal.SIGTERM)  # as Slurm does: workers are in the same step
    assert ranks.wait() == [SAVED] * 3
    finish(run)
    assert_same(undisturbed, run)


def test_after_a_killed_rank_the_newest_checkpoint_is_gone_on_from(
    tmp_path: Path, reference: Callable[..., Run]
) -> None:
    undisturbed = reference(step_s=0.02)
    run = Run(tmp_path, step_s=0.02, checkpoint={"every_n_steps": 2})
    codes = run.run(3, "kill@step=7:rank=1")
    assert codes[1] == -signal.SIGKILL
    assert codes[0] == 76  # it lost its peer
    finish(run)
    assert_same(undisturbed, run, retaken=None)
    assert compare(undisturbed.ledger, run.ledger).retaken <= 2 * 3


@pytest.mark.parametrize("data", ["map", "stream"])
def test_a_killed_rank_is_noticed_at_once_though_its_data_workers_hold_its_sockets(
    data: str, tmp_path: Path
) -> None:
    ranks = Run(tmp_path, workers=2, data=data, samples=400, step_s=0.1).start(2)
    ranks.wait_for_step(5)
    ranks.send(signal.SIGKILL, 1)
    assert ranks.wait(100) == [76, -signal.SIGKILL]


@pytest.mark.parametrize("worlds", [(2, 1, 4), (4, 2, 1), (1, 4, 2)])
def test_another_number_of_ranks_uses_each_sample_once(
    worlds: tuple[int, ...], tmp_path: Path, reference: Callable[..., Run]
) -> None:
    undisturbed = reference(2, samples=77)
    run = Run(tmp_path, samples=77)
    accumulate = {1: 4, 2: 2, 4: 1}
    for world_size, step in zip(worlds[:2], (4, 11), strict=True):
        codes = run.run(world_size, f"stop@step={step}", accumulate=accumulate[world_size])
        assert codes == [SAVED] * world_size
    finish(run, worlds[2], accumulate=accumulate[worlds[2]])
    comparison = compare_samples(undisturbed.ledger, run.ledger)
    assert comparison.problems == []
    assert comparison.retaken == 0


def test_weights_in_shards_go_on_with_another_number_of_ranks(
    tmp_path: Path, reference: Callable[..., Run]
) -> None:
    run = Run(tmp_path, sharded=True)
    assert run.run(4, "stop@step=3") == [SAVED] * 4
    assert run.run(2, "stop@step=8") == [SAVED] * 2
    finish(run, 4)
    assert compare_samples(reference(2, sharded=True).ledger, run.ledger).problems == []


def test_nan_weights_end_the_training_and_are_not_saved(tmp_path: Path) -> None:
    run = Run(tmp_path, nan_at=5, checkpoint={"every_n_steps": 2}, step_s=0.02)
    assert run.run(2) == [10, 10]
    assert "is NaN after step" in run.log(0, 0)
    assert all(int(name[5:14]) <= 5 for name in run.checkpoints if name.startswith("step"))


def test_a_finished_training_that_is_started_again_takes_no_step(tmp_path: Path) -> None:
    run = Run(tmp_path)
    finish(run)
    before: list[Entry] = run.ledger
    finish(run)
    assert run.ledger == before


def test_an_exception_of_the_user_ends_with_the_users_code(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.run(1, "raise@step=3") == [1]
    assert "RuntimeError" in run.log(0, 0)


def test_an_iterable_set_with_a_state_refuses_another_number_of_ranks(tmp_path: Path) -> None:
    run = Run(tmp_path, data="stream")
    assert run.run(2, "stop@step=2") == [SAVED, SAVED]
    assert run.run(1, accumulate=2) == [3]
    assert "go on with 2 ranks" in run.log(1, 0)


def test_an_iterable_set_without_a_state_says_what_happens(tmp_path: Path) -> None:
    run = Run(tmp_path, data="stateless", samples=48)
    finish(run)
    assert "has no state_dict()" in run.log(0, 0)


def interrupt_at_random(run: Run, rng: random.Random, world_size: int) -> None:
    """One attempt, ended by one of the things that end attempts, or by its end."""
    done = max((entry.step for entry in run.ledger), default=0)
    kind = rng.choice(["stop one", "stop all", "skewed", "kill", "file", "validation"])
    ranks = run.start(world_size)
    try:
        ranks.wait_for_step(done + rng.randint(1, 4))
    except AssertionError:
        return  # it came to its end
    time.sleep(rng.random() * 0.05)
    if kind == "kill":
        ranks.send(signal.SIGKILL, rng.randrange(world_size))
    elif kind == "file":
        run.dir.stop.touch()
    else:
        victims = list(range(world_size))[: 1 if kind == "stop one" else None]
        rng.shuffle(victims)
        for rank in victims:
            if ranks.processes[rank].is_alive():
                with suppress(ProcessLookupError):  # it has left in between
                    ranks.send(rng.choice([signal.SIGTERM, signal.SIGUSR2]), rank)
            time.sleep(rng.choice([0, 0.05, 0.3]) if kind == "skewed" else 0)
    codes = ranks.wait()
    run.dir.stop.unlink(missing_ok=True)
    assert set(codes) <= {0, 75, 76, -9}, ranks.logs()


def trial(tmp_path: Path, undisturbed: Run, seed: int, interruptions: int, **spec: Any) -> None:
    rng = random.Random(seed)
    run = Run(tmp_path / str(seed), **spec, checkpoint={"every_n_steps": 3})
    for _ in range(interruptions):
        interrupt_at_random(run, rng, 3)
    finish(run)
    assert_same(undisturbed, run, retaken=None)
    shutil.rmtree(run.path)


@pytest.mark.parametrize("workers", [0, 2])
def test_ten_random_interruptions_change_nothing(
    workers: int, tmp_path: Path, reference: Callable[..., Run]
) -> None:
    spec = {"step_s": 0.03, "samples": 120, "epochs": 3, "workers": workers}
    trial(tmp_path, reference(**spec), seed=workers, interruptions=10, **spec)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(20))
def test_many_random_interruptions_change_nothing(
    seed: int, tmp_path: Path, reference: Callable[..., Run]
) -> None:
    rng = random.Random(seed)
    spec = {
        "step_s": 0.02,
        "samples": 216,  # whole batches in two workers of three ranks, for BatchNorm
        "epochs": 3,
        "workers": rng.choice([0, 2]),
        "persistent": rng.choice([True, False]),
        "accumulate": rng.choice([1, 2]),
        "data": rng.choice(["map", "stream"]),
        "ema": rng.choice([True, False]),
    }
    trial(tmp_path, reference(**spec), seed=seed, interruptions=20, **spec)
