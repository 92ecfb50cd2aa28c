"""An evaluation between two steps: when it is left for a stop, and with which state."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from hpc_train.training.resume.checkpoint import list_checkpoints
from tests.training.controlled import KEEP, Held, Training, stopped


def evaluating(training: Training, batches: int = 10, **more: Any) -> None:
    asked = {"snapshot": training.snapshot, "may_leave": True, "batches": batches, **more}
    training.controller.evaluation_begins(training.step, **asked)


def batches(training: Training, first: int, last: int, batch_s: float = 1.0) -> None:
    for batch in range(first, last + 1):
        training.now += batch_s
        training.controller.evaluation_batch(training.step, batch)


@pytest.fixture
def training(tmp_path: Path) -> Training:
    """Four steps taken, nothing saved."""
    made = Training(tmp_path)
    made.controller.begin(0)
    made.train(4)
    made.made.clear()
    return made


def test_a_stop_in_an_evaluation_saves_the_state_from_before_it(training: Training) -> None:
    evaluating(training)
    assert training.heartbeat.phase == "validate"
    assert training.made == [4]
    batches(training, 1, 3)
    training.stop.set("SIGUSR1")
    training.step = 99  # whatever callbacks have done to the model meanwhile
    stop = stopped(lambda: training.controller.evaluation_batch(4, 4))
    assert (stop.cause, stop.step, stop.saved) == ("SIGUSR1", 4, True)
    assert training.saved == [4]
    assert training.weight(4) == 4.0
    assert training.heartbeat.batch == 4


def test_a_stop_that_came_before_an_evaluation_does_not_wait_for_it(training: Training) -> None:
    training.stop.set("SIGTERM")
    stop = stopped(lambda: evaluating(training))
    assert (stop.step, stop.saved, training.saved) == (4, True, [4])


def test_where_nothing_is_new_an_evaluation_is_left_without_a_save(training: Training) -> None:
    evaluating(training, snapshot=None)
    batches(training, 1, 2)
    training.stop.set("SIGTERM")
    stop = stopped(lambda: batches(training, 3, 3))
    assert (stop.step, stop.saved, training.saved) == (4, False, [])
    training.controller.evaluation_ends()
    assert not stopped(lambda: evaluating(training, snapshot=None)).saved


def test_an_evaluation_that_may_not_be_left_is_finished_first(training: Training) -> None:
    training.stop.set("SIGTERM")
    evaluating(training, may_leave=False)
    batches(training, 1, 10)
    training.controller.evaluation_ends()
    assert training.made == []
    assert stopped(lambda: training.train(5)).step == 5


@pytest.mark.parametrize(("seconds", "copied"), [(1.4, False), (1.5, False), (1.6, True)])
def test_a_short_evaluation_is_finished_and_a_long_one_left(
    seconds: float, copied: bool, training: Training
) -> None:
    evaluating(training, 1)
    training.now += seconds
    training.controller.evaluation_ends()
    assert training.heartbeat.phase == "train"
    training.made.clear()
    evaluating(training)
    assert training.made == ([4] if copied else [])
    training.stop.set("SIGTERM")
    if copied:
        assert stopped(lambda: batches(training, 1, 1)).saved
    else:
        batches(training, 1, 10)


def test_a_sanity_check_tells_nothing_of_an_evaluations_time(training: Training) -> None:
    evaluating(training, 1)
    training.now += 0.1
    training.controller.evaluation_ends(whole=False)
    training.made.clear()
    evaluating(training)
    assert training.made == [4]


def test_behind_the_batches_that_all_ranks_have_nobody_asks(training: Training) -> None:
    evaluating(training, 3)
    batches(training, 1, 2)
    training.stop.set("SIGTERM")
    training.controller.evaluation_batch(4, 4)
    training.controller.evaluation_batch(4, 5)
    assert stopped(lambda: training.controller.evaluation_batch(4, 3)).step == 4


def test_an_evaluation_of_unknown_length_is_not_left_in_its_middle(training: Training) -> None:
    evaluating(training, 0)
    training.stop.set("SIGTERM")
    batches(training, 1, 20)
    training.controller.evaluation_ends()
    assert stopped(lambda: training.train(5)).step == 5


def test_after_an_evaluation_its_state_is_forgotten(training: Training) -> None:
    evaluating(training)
    batches(training, 1, 10)
    training.controller.evaluation_ends()
    training.train(6)
    training.made.clear()
    evaluating(training, snapshot=None)
    training.stop.set("SIGTERM")
    stop = stopped(lambda: batches(training, 1, 1))
    assert (stop.step, stop.saved, training.saved) == (6, False, [])


def test_a_save_under_way_is_finished_before_the_copy_for_an_evaluation(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=2, every_n_minutes=None, **KEEP)
    training.controller.begin(0)
    training.train(2)
    training.saver.wait_idle()
    assert training.saver.busy, "written, and not settled"
    training.made.clear()
    evaluating(training)
    assert training.made == [], "the buffers are in use: this evaluation is finished first"
    training.stop.set("SIGTERM")
    batches(training, 1, 10)


def test_faults_in_an_evaluation_happen_at_their_batch(tmp_path: Path) -> None:
    training = Training(tmp_path, "raise@validate=3")
    training.controller.begin(0)
    evaluating(training, 9)
    batches(training, 1, 2)
    with pytest.raises(RuntimeError, match="validate 3"):
        batches(training, 3, 3)


def test_the_time_of_an_evaluation_or_a_save_is_no_steps_time(training: Training) -> None:
    evaluating(training)
    training.now += 900.0
    training.controller.evaluation_ends()
    training.train(12, step_s=0.01)
    # Steps of 10 ms are asked about every 50 ms: a stop is seen within that, and not 15 min later.
    training.stop.set("SIGTERM")
    assert stopped(lambda: training.train(30, step_s=0.01)).step <= 17


def test_who_leaves_an_evaluation_with_nothing_new_finishes_the_save_that_is_under_way(
    tmp_path: Path,
) -> None:
    training, written = Training(tmp_path, every_n_steps=4), threading.Event()
    training.own = Held(written)
    training.controller.begin(0)
    for step in range(1, 5):
        training.now, training.step = training.now + 1, step
        training.controller.boundary(step, training.snapshot, over=False)
    threading.Timer(0.2, written.set).start()
    training.stop.set("SIGTERM")
    ended = stopped(lambda: evaluating(training, snapshot=None))
    assert (ended.step, ended.saved) == (4, False)
    assert [found.step for found in list_checkpoints(training.folder, verify=True)] == [4]
