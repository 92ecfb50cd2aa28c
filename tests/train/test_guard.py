"""Between two steps: when it is time to save, and what a stop leaves; the clock is the test's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from hpc_train.config.schema import CheckpointConfig
from hpc_train.store.layout import RunDir
from hpc_train.train.agreement import Agreement
from hpc_train.train.checkpoint import list_checkpoints
from hpc_train.train.faults import Faults, parse_faults
from hpc_train.train.guard import Guard, Stopped
from hpc_train.train.heartbeat import Pulse
from hpc_train.train.loading import load_tensors
from hpc_train.train.saving import MODEL_FILE, Identity, Saver, Snapshot
from hpc_train.train.stop import StopFlag


class Held:
    """State whose writing waits for an event; the copy to memory does not."""

    def __init__(self, until: threading.Event) -> None:
        self.until = until

    def __deepcopy__(self, memo: dict[int, Any]) -> Held:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        in_time = self.until.wait(5)
        self.until.set()  # one wait is enough to fail
        assert in_time
        return (str, ())


class Training:
    """A guard with real parts, at a clock that is moved by hand."""

    def __init__(self, folder: Path, faults: str = "", **config: Any) -> None:
        self.now = 5000.0
        self.config = CheckpointConfig(**config)
        self.folder = folder / "checkpoints"
        self.folder.mkdir()
        self.stop = StopFlag()
        self.made: list[int] = []  # steps whose state was asked for
        self.phases: list[str] = []  # in which state was asked for
        self.own: Any = None
        self.step = 0
        made = Faults(parse_faults(faults), rank=0, attempt=0)
        self.saver = Saver(
            self.folder,
            self.config,
            Identity(config_hash="c", attempt=0, world_size=1, accumulate=1),
            rank=0,
            group=None,
            faults=made,
        )
        attempt = RunDir(folder).attempt(0)
        self.pulse = Pulse(attempt, rank=0, node="n", every_s=1.0, stop=self.stop)
        self.guard = Guard(
            self.config,
            agreement=Agreement(None, self.stop, rank=0, clock=self.clock),
            evaluation=Agreement(None, self.stop, rank=0, clock=self.clock),
            saver=self.saver,
            pulse=self.pulse,
            faults=made,
            clock=self.clock,
        )

    def clock(self) -> float:
        return self.now

    def snapshot(self) -> Snapshot:
        self.made.append(self.step)
        self.phases.append(self.pulse.phase)
        model = {"state_dict": {"weight": torch.full((3,), float(self.step))}}
        return Snapshot(step=self.step, epoch=0, samples=self.step, model=model, own=self.own)

    def train(self, to: int, *, step_s: float = 1.0, over: bool = False) -> None:
        """Take steps until `to` are taken."""
        while self.step < to:
            self.now += step_s
            self.step += 1
            self.guard.boundary(self.step, self.snapshot, over=over)
            self.saver.wait_idle()

    @property
    def saved(self) -> list[int]:
        self.saver.finish()
        return sorted(found.step for found in list_checkpoints(self.folder, verify=True))

    def weight(self, step: int) -> float:
        state = load_tensors(self.folder / f"step-{step:09d}" / MODEL_FILE)
        return float(state["state_dict"]["weight"][0])


KEEP = {"keep_last": 99}


# When a save is due.


@pytest.mark.parametrize("asynchronous", [True, False])
def test_by_default_a_save_is_due_every_ten_minutes(asynchronous: bool, tmp_path: Path) -> None:
    training = Training(tmp_path, asynchronous=asynchronous, **KEEP)
    training.guard.begin(0)
    training.train(35, step_s=60.0)
    assert training.saved == [10, 20, 30]
    assert training.weight(20) == 20.0


def test_minutes_count_from_where_the_training_began_and_from_the_last_save(
    tmp_path: Path,
) -> None:
    training = Training(tmp_path, every_n_minutes=1.0, asynchronous=False, **KEEP)
    training.now += 3600.0  # imports, the checkpoint's loading
    training.guard.begin(0)
    training.train(5, step_s=59.9)
    assert training.saved == [2, 4]


def test_half_a_minute_is_thirty_seconds_and_not_one_less(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=0.5, asynchronous=False, **KEEP)
    training.guard.begin(0)
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
    training.guard.begin(4)
    training.train(12)
    assert training.saved == [7, 10]


def test_a_save_by_steps_begins_the_minutes_anew_and_the_other_way_round(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=8, every_n_minutes=0.1, **KEEP)
    training.guard.begin(0)
    training.train(5, step_s=1.0)
    assert training.saved == []
    training.train(6)  # six seconds
    training.train(14, step_s=0.1)  # eight steps
    training.train(15, step_s=5.9)
    training.train(16, step_s=0.1)  # six seconds after step 14
    assert training.saved == [6, 14, 16]


def test_where_no_save_is_wanted_the_state_is_never_asked_for(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=None)
    training.guard.begin(0)
    training.train(50, step_s=3600.0)
    assert (training.made, training.saved) == ([], [])


def test_memory_is_made_ready_once_and_ahead_of_the_first_save(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=5, every_n_minutes=None, **KEEP)
    training.guard.begin(0)
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
    training.guard.begin(0)
    training.train(3)
    assert training.made == made


def test_while_a_save_is_written_no_other_is_due_by_time(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=1.0, **KEEP)
    written = threading.Event()
    training.own = Held(written)
    training.guard.begin(0)
    for step in range(1, 6):
        training.now += 60.0
        training.step = step
        training.guard.boundary(step, training.snapshot, over=False)
    assert training.saver.last_step == 1, "the first is still written"
    training.own = None
    written.set()
    training.saver.wait_idle()
    training.train(7, step_s=60.0)
    assert training.saved == [1, 7], "step 6 heard that the first is written"


def test_a_save_is_told_as_such_and_then_it_trains_on(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=2, every_n_minutes=None, asynchronous=False)
    assert training.pulse.phase == "start"
    training.guard.begin(0)
    assert (training.pulse.phase, training.pulse.step) == ("train", 0)
    training.train(2)
    assert (training.pulse.phase, training.pulse.step) == ("train", 2)


def test_the_last_state_is_saved_at_the_end(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_minutes=None)
    training.guard.begin(0)
    training.train(3)
    training.guard.end(training.snapshot)
    assert training.saved == [3]
    assert training.phases[-1] == "save"


# A stop.


def stopped(do: Any) -> Stopped:
    with pytest.raises(Stopped) as caught:
        do()
    return caught.value


def test_a_stop_saves_the_step_at_which_it_was_seen_and_leaves(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.guard.begin(0)
    training.train(2)
    training.stop.set("SIGTERM")
    stop = stopped(lambda: training.train(9))
    assert (stop.cause, stop.step, stop.saved) == ("SIGTERM", 3, True)
    assert str(stop) == "stopped by SIGTERM: saved step 3"
    assert training.saved == [3]


def test_a_stop_that_came_before_training_began_leaves_with_nothing_new(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.stop.set("stop file")
    stop = stopped(lambda: training.guard.begin(7))
    assert (stop.cause, stop.step, stop.saved) == ("stop file", 7, False)
    assert "nothing new to save" in str(stop)
    assert training.made == []


def test_a_training_that_is_over_is_not_stopped(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.guard.begin(0)
    training.stop.set("SIGTERM")
    training.train(1, over=True)
    training.guard.end(training.snapshot)
    assert training.saved == [1]


def test_a_stop_right_behind_a_save_leaves_with_that_one(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=3, every_n_minutes=None)
    training.guard.begin(0)
    training.train(3)
    training.stop.set("SIGTERM")
    stop = stopped(lambda: training.guard.boundary(3, training.snapshot, over=False))
    assert (stop.step, stop.saved, training.saved) == (3, True, [3])


@pytest.mark.parametrize(("began", "saved"), [(0, [0]), (3, [])])
def test_a_state_that_a_checkpoint_holds_already_is_not_saved_again(
    began: int, saved: list[int], tmp_path: Path
) -> None:
    training = Training(tmp_path)
    training.step = began
    training.guard.begin(began)
    training.guard.end(training.snapshot)
    assert training.saved == saved, "what is at 0 steps is in no checkpoint"


def test_a_stop_that_cannot_be_saved_says_so_and_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = Training(tmp_path)
    training.guard.begin(0)
    training.folder.rmdir()
    training.folder.write_text("in the way")
    training.stop.set("SIGTERM")
    stop = stopped(lambda: training.train(1))
    assert not stop.saved
    assert "stopped by SIGTERM after step 1, and it could not be saved" in capsys.readouterr().err


@pytest.mark.parametrize(("fault", "steps"), [("raise@start", 0), ("raise@step=2", 2)])
def test_faults_that_were_asked_for_happen_where_they_should(
    fault: str, steps: int, tmp_path: Path
) -> None:
    training = Training(tmp_path, fault)

    def run() -> None:
        training.guard.begin(0)
        training.train(5)

    with pytest.raises(RuntimeError, match="asked for"):
        run()
    assert training.step == steps


# An evaluation.


def evaluating(training: Training, batches: int = 10, **more: Any) -> None:
    asked = {"snapshot": training.snapshot, "may_leave": True, "batches": batches, **more}
    training.guard.evaluation_begins(training.step, **asked)


def batches(training: Training, first: int, last: int, batch_s: float = 1.0) -> None:
    for batch in range(first, last + 1):
        training.now += batch_s
        training.guard.evaluation_batch(training.step, batch)


@pytest.fixture
def training(tmp_path: Path) -> Training:
    """Four steps taken, nothing saved."""
    made = Training(tmp_path)
    made.guard.begin(0)
    made.train(4)
    made.made.clear()
    return made


def test_a_stop_in_an_evaluation_saves_the_state_from_before_it(training: Training) -> None:
    evaluating(training)
    assert training.pulse.phase == "validate"
    assert training.made == [4]
    batches(training, 1, 3)
    training.stop.set("SIGUSR1")
    training.step = 99  # whatever callbacks have done to the model meanwhile
    stop = stopped(lambda: training.guard.evaluation_batch(4, 4))
    assert (stop.cause, stop.step, stop.saved) == ("SIGUSR1", 4, True)
    assert training.saved == [4]
    assert training.weight(4) == 4.0
    assert training.pulse.batch == 4


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
    training.guard.evaluation_ends()
    assert not stopped(lambda: evaluating(training, snapshot=None)).saved


def test_an_evaluation_that_may_not_be_left_is_finished_first(training: Training) -> None:
    training.stop.set("SIGTERM")
    evaluating(training, may_leave=False)
    batches(training, 1, 10)
    training.guard.evaluation_ends()
    assert training.made == []
    assert stopped(lambda: training.train(5)).step == 5


@pytest.mark.parametrize(("seconds", "copied"), [(1.4, False), (1.5, False), (1.6, True)])
def test_a_short_evaluation_is_finished_and_a_long_one_left(
    seconds: float, copied: bool, training: Training
) -> None:
    evaluating(training, 1)
    training.now += seconds
    training.guard.evaluation_ends()
    assert training.pulse.phase == "train"
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
    training.guard.evaluation_ends(whole=False)
    training.made.clear()
    evaluating(training)
    assert training.made == [4]


def test_behind_the_batches_that_all_ranks_have_nobody_asks(training: Training) -> None:
    evaluating(training, 3)
    batches(training, 1, 2)
    training.stop.set("SIGTERM")
    training.guard.evaluation_batch(4, 4)
    training.guard.evaluation_batch(4, 5)
    assert stopped(lambda: training.guard.evaluation_batch(4, 3)).step == 4


def test_an_evaluation_of_unknown_length_is_not_left_in_its_middle(training: Training) -> None:
    evaluating(training, 0)
    training.stop.set("SIGTERM")
    batches(training, 1, 20)
    training.guard.evaluation_ends()
    assert stopped(lambda: training.train(5)).step == 5


def test_after_an_evaluation_its_state_is_forgotten(training: Training) -> None:
    evaluating(training)
    batches(training, 1, 10)
    training.guard.evaluation_ends()
    training.train(6)
    training.made.clear()
    evaluating(training, snapshot=None)
    training.stop.set("SIGTERM")
    stop = stopped(lambda: batches(training, 1, 1))
    assert (stop.step, stop.saved, training.saved) == (6, False, [])


def test_a_save_under_way_is_finished_before_the_copy_for_an_evaluation(tmp_path: Path) -> None:
    training = Training(tmp_path, every_n_steps=2, every_n_minutes=None, **KEEP)
    training.guard.begin(0)
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
    training.guard.begin(0)
    evaluating(training, 9)
    batches(training, 1, 2)
    with pytest.raises(RuntimeError, match="validate 3"):
        batches(training, 3, 3)


def test_the_time_of_an_evaluation_or_a_save_is_no_steps_time(training: Training) -> None:
    evaluating(training)
    training.now += 900.0
    training.guard.evaluation_ends()
    training.train(12, step_s=0.01)
    # Steps of 10 ms are asked about every 50 ms: a stop is seen within that, and not 15 min later.
    training.stop.set("SIGTERM")
    assert stopped(lambda: training.train(30, step_s=0.01)).step <= 17
