"""Between two steps: when it is time to save, and what a stop leaves; the clock is the test's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.training.controlled import KEEP, Held, Training, stopped

# When a save is due.


@pytest.mark.parametrize("asynchronous", [True, False])
def test_by_default_a_save_is_due_every_ten_minutes(asynchronous: bool, tmp_path: Path) -> None:
    training = Training(tmp_path, asynchronous=asynchronous, **KEEP)
    training.controller.begin(0)
    training.train(35, step_s=60.0)
    assert training.saved == [10, 20, 30]
    assert training.weight(20) == 20.0


def test_minutes_count_from_where_the_training_began_and_from_the_last_save(
    tmp_path: Path,
) -> None:
    training = Training(tmp_path, every_n_minutes=1.0, asynchronous=False, **KEEP)
    training.now += 3600.0  # imports, the checkpoint's loading
    training.controller.begin(0)
    training.train(5, step_s=59.9)
    assert training.saved == [2, 4]


def test_half_a_minute_is_thirty_seconds_and_not_one_less(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=0.5, asynchronous=False, **KEEP)
    training.controller.begin(0)
    training.train(29)
    assert training.saved == []
    training.train(30)
    assert training.saved == [30]
    training.train(59)
    assert training.saved == [30]
    training.train(60)
    assert training.saved == [30, 60]


def test_steps_count_from_the_checkpoint_that_it_went_on_from(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=3, every_n_minutes=None, **KEEP)
    training.step = 4
    training.controller.begin(4)
    training.train(12)
    assert training.saved == [7, 10]


def test_a_save_by_steps_begins_the_minutes_anew_and_the_other_way_round(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=8, every_n_minutes=0.1, **KEEP)
    training.controller.begin(0)
    training.train(5, step_s=1.0)
    assert training.saved == []
    training.train(6)  # six seconds
    training.train(14, step_s=0.1)  # eight steps
    training.train(15, step_s=5.9)
    training.train(16, step_s=0.1)  # six seconds after step 14
    assert training.saved == [6, 14, 16]


def test_where_no_save_is_wanted_the_state_is_never_asked_for(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=None)
    training.controller.begin(0)
    training.train(50, step_s=3600.0)
    assert (training.made, training.saved) == ([], [])


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_save_that_is_asked_for_comes_once_whatever_the_config_says(
    asynchronous: bool, tmp_path: Path
) -> None:
    training = Training(tmp_path, every_n_minutes=None, asynchronous=asynchronous, **KEEP)
    training.controller.begin(0)
    training.train(3)
    training.controller.ask_to_save()
    training.train(9)
    assert (training.made[-1], training.saved) == (4, [4])


def test_memory_is_made_ready_once_and_ahead_of_the_first_save(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=5, every_n_minutes=None, **KEEP)
    training.controller.begin(0)
    training.train(6)
    assert training.made == [1, 5]


@pytest.mark.parametrize(
    ("config", "made"),
    [
        ({"every_n_steps": 2, "every_n_minutes": None}, [1, 2]),
        ({"every_n_minutes": 10.0}, [1]),
        ({"every_n_steps": 2, "every_n_minutes": None, "asynchronous": False}, [2]),
        ({"every_n_minutes": 10.0, "asynchronous": False}, []),
        ({"every_n_steps": 1, "every_n_minutes": None}, [1, 2, 3]),
    ],
)
def test_only_a_save_in_the_background_needs_memory_of_its_own(
    config: dict[str, Any], made: list[int], tmp_path: Path
) -> None:
    training = Training(tmp_path, **config)
    training.controller.begin(0)
    training.train(3)
    assert training.made == made


def test_a_save_at_the_first_boundary_makes_its_own_memory_ready(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=1.0, **KEEP)
    training.controller.begin(0)
    training.train(3, step_s=60.0)
    assert training.made == [1, 3], "step 2 only heard that the first save is written"


def test_while_a_save_is_written_no_other_is_due_by_time(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=1.0, **KEEP)
    written = threading.Event()
    training.own = Held(written)
    training.controller.begin(0)
    for step in range(1, 6):
        training.now += 60.0
        training.step = step
        training.controller.boundary(step, training.snapshot, over=False)
    assert training.saver.last_step == 1, "the first is still written"
    training.own = None
    written.set()
    training.saver.wait_idle()
    training.train(7, step_s=60.0)
    assert training.saved == [1, 7], "step 6 heard that the first is written"


def test_a_save_is_told_as_such_and_then_it_trains_on(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=2, every_n_minutes=None, asynchronous=False)
    assert training.heartbeat.phase == "start"
    training.controller.begin(0)
    assert (training.heartbeat.phase, training.heartbeat.step) == ("train", 0)
    training.train(2)
    assert (training.heartbeat.phase, training.heartbeat.step) == ("train", 2)


def test_the_last_state_is_saved_at_the_end(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=None)
    training.controller.begin(0)
    training.train(3)
    training.controller.end(training.snapshot)
    assert training.saved == [3]
    assert training.phases[-1] == "save"


# A stop.


def test_a_stop_saves_the_step_at_which_it_was_seen_and_leaves(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.controller.begin(0)
    training.train(2)
    training.stop.set("SIGTERM")
    stop = stopped(lambda: training.train(9))
    assert (stop.cause, stop.step, stop.saved) == ("SIGTERM", 3, True)
    assert str(stop) == "stopped by SIGTERM: saved step 3"
    assert training.saved == [3]


def test_a_stop_that_came_before_training_began_leaves_with_nothing_new(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.stop.set("stop file")
    stop = stopped(lambda: training.controller.begin(7))
    assert (stop.cause, stop.step, stop.saved) == ("stop file", 7, False)
    assert "nothing new to save" in str(stop)
    assert training.made == []


def test_a_training_that_is_over_is_not_stopped(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.controller.begin(0)
    training.stop.set("SIGTERM")
    training.train(1, over=True)
    training.controller.end(training.snapshot)
    assert training.saved == [1]


def test_a_stop_right_behind_a_save_leaves_with_that_one(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=3, every_n_minutes=None)
    training.controller.begin(0)
    training.train(3)
    training.stop.set("SIGTERM")
    stop = stopped(lambda: training.controller.boundary(3, training.snapshot, over=False))
    assert (stop.step, stop.saved, training.saved) == (3, True, [3])


@pytest.mark.parametrize(("began", "saved"), [(0, [0]), (3, [])])
def test_a_state_that_a_checkpoint_holds_already_is_not_saved_again(
    began: int, saved: list[int], tmp_path: Path
) -> None:
    training = Training(tmp_path)
    training.step = began
    training.controller.begin(began)
    training.controller.end(training.snapshot)
    assert training.saved == saved, "what is at 0 steps is in no checkpoint"


def test_a_stop_that_cannot_be_saved_says_so_and_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = Training(tmp_path)
    training.controller.begin(0)
    training.folder.rmdir()
    training.folder.write_text("in the way")
    training.stop.set("SIGTERM")
    stop = stopped(lambda: training.train(1))
    assert not stop.saved
    assert "stopped by SIGTERM after step 1, and it could not be saved" in capsys.readouterr().err


def test_an_end_that_cannot_be_saved_is_tried_again_and_kept_for_who_ends_the_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(tmp_path, every_n_steps=2, every_n_minutes=None)
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    training.controller.begin(0)
    training.train(2)
    training.saver.finish()
    aside = training.folder.rename(tmp_path / "aside")
    training.folder.write_text("in the way")
    training.controller.end(training.snapshot)
    assert training.controller.unsaved is None, "the last step is saved already"
    training.train(3)
    training.controller.end(training.snapshot)
    unsaved = training.controller.unsaved
    assert unsaved is not None
    end = "trained to step 3, and its last state could not be saved: Not a directory"
    assert unsaved.message == f"{end} ({training.folder})"
    assert waited == [0.0, 0.0, 2.0, 4.0]
    assert "the training goes on" not in capsys.readouterr().err
    training.folder.unlink()
    aside.rename(training.folder)
    training.controller.end(training.snapshot)
    assert training.controller.unsaved is None
    assert training.saved == [2, 3]


@pytest.mark.parametrize(("fault", "steps"), [("raise@start", 0), ("raise@step=2", 2)])
def test_faults_that_were_asked_for_happen_where_they_should(
    fault: str, steps: int, tmp_path: Path
) -> None:
    training = Training(tmp_path, fault)

    def run() -> None:
        training.controller.begin(0)
        training.train(5)

    with pytest.raises(RuntimeError, match="asked for"):
        run()
    assert training.step == steps
