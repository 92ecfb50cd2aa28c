"""What ended a rank: recorded with its place, its step and its own words."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpc_train.config.schema import CheckpointConfig
from hpc_train.errors import RunFailedError
from hpc_train.plan.plan import ObjectSpec
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_exits, read_notes
from tests.training.launched import DIGITS, make_plan, run_ranks

FAULTY = """
import os
import signal
import torch
from hpc_train.examples.digits import DigitsClassifier, DigitsData

class AtInit(DigitsClassifier):
    def __init__(self):
        raise KeyError("vocabulary")

class OnRank1(DigitsClassifier):
    def training_step(self, batch, batch_idx):
        if self.global_rank == 1 and batch_idx == 2:
            raise ValueError("NaN in the loss")
        return super().training_step(batch, batch_idx)

class StopsItself(DigitsClassifier):
    def on_train_batch_start(self, batch, batch_idx):
        if self.global_rank == 1 and self.global_step == 9 and "GO_ON" not in os.environ:
            os.kill(os.getpid(), signal.SIGUSR2)

class Unpicklable(DigitsData):
    def train_dataloader(self):
        return torch.utils.data.DataLoader(
            super().train_dataloader().dataset,
            batch_size=self.batch_size,
            num_workers=1,
            multiprocessing_context="spawn",
            collate_fn=lambda samples: samples,
        )

class SavesALambda(DigitsClassifier):
    def on_save_checkpoint(self, checkpoint):
        checkpoint["best"] = {"of": lambda loss: loss}

class SaveRaises(DigitsClassifier):
    def on_save_checkpoint(self, checkpoint):
        raise LookupError("no score so far")

class StopsEarly(DigitsClassifier):
    def training_step(self, batch, batch_idx):
        self.trainer.should_stop = self.global_step == 3
        return super().training_step(batch, batch_idx)

class BringsAFinder(DigitsClassifier):
    def configure_callbacks(self):
        from pytorch_lightning.callbacks import LearningRateFinder
        return [LearningRateFinder()]

class NoLoss(DigitsClassifier):
    def __init__(self, but=-1):
        super().__init__(8)
        self.but = but

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        if batch_idx == self.but:
            return loss

class StepsByHand(NoLoss):
    def training_step(self, batch, batch_idx):
        self.zero_grad()
        super(NoLoss, self).training_step(batch, batch_idx).backward()
        self.trainer.optimizers[0].step()

class LogsNan(DigitsClassifier):
    def training_step(self, batch, batch_idx):
        self.log("own_loss", float("nan"))
        return super().training_step(batch, batch_idx)

class OutOfMemory(DigitsClassifier):
    def training_step(self, batch, batch_idx):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
"""

NO_LOSS = FAULTY.partition("self.but = but")[0].count("\n") + 3

SAVES_A_LAMBDA = FAULTY.partition('checkpoint["best"]')[0].count("\n") + 1


def faulty(tmp_path: Path, name: str) -> ObjectSpec:
    (tmp_path / "faulty_models.py").write_text(FAULTY)
    return ObjectSpec(f"faulty_models.{name}", {})


def test_the_rank_that_failed_first_is_told_from_those_that_lost_it(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, model=faulty(tmp_path, "OnRank1"))
    start = time.monotonic()
    ended = run_ranks(plan, tmp_path / "run")
    assert time.monotonic() - start < 150
    assert ended.codes == [76, 1], ended.log(0)
    first, second = read_exits(ended.attempt)
    assert (first.rank, first.kind, first.error) == (1, "user", "ValueError: NaN in the loss")
    assert first.where == f"{tmp_path}/faulty_models.py:14"
    assert first.step == 2
    assert (second.rank, second.kind) == (0, "network")
    assert "error: ValueError: NaN in the loss" in ended.log(1)


def test_a_stopped_run_goes_on_in_the_same_files_without_a_doubled_point(tmp_path: Path) -> None:
    spec = faulty(tmp_path, "StopsItself")
    plan = make_plan(
        tmp_path,
        model=spec,
        trainer={"max_epochs": 2, "log_every_n_steps": 1},
        loggers=["csv", "tensorboard"],
    )
    first = run_ranks(plan, tmp_path / "run", attempt=0)
    assert first.codes == [75, 75], first.log(0)
    second = run_ranks(plan, tmp_path / "run", attempt=1, environ={"GO_ON": "1"})
    assert second.codes == [0, 0], second.log(0)
    stopped = read_exits(first.attempt)
    assert {(item.kind, item.cause) for item in stopped} == {("saved", "SIGUSR2")}
    assert len({item.step for item in stopped}) == 1
    (step,) = {item.first_step for item in read_exits(second.attempt)}
    assert step == stopped[0].step
    assert f"going on after step {step} on 2 ranks" in second.log(0)
    with (tmp_path / "run" / "metrics" / "metrics.csv").open() as stream:
        steps = [int(row["step"]) for row in csv.DictReader(stream) if row["loss"]]
    final = json.loads((tmp_path / "run" / "metrics" / "final.json").read_text())
    assert steps == list(range(final["step"]))


@pytest.mark.parametrize(
    ("name", "kind", "error"),
    [
        ("AtInit", "user", "KeyError: 'vocabulary'"),
        ("OutOfMemory", "gpu_memory", "OutOfMemoryError: CUDA out of memory. Tried to"),
    ],
)
def test_what_ended_a_rank_is_recorded_with_its_place(
    tmp_path: Path, name: str, kind: str, error: str
) -> None:
    plan = make_plan(tmp_path, ranks_per_node=1, model=faulty(tmp_path, name))
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [1]
    (record,) = read_exits(ended.attempt)
    assert record.kind == kind
    assert record.error.startswith(error)
    assert record.where.startswith(f"{tmp_path}/faulty_models.py:")


def test_a_wrong_argument_of_the_model_is_one_line(tmp_path: Path) -> None:
    spec = ObjectSpec("hpc_train.examples.digits.DigitsClassifier", {"witdh": 3})
    ended = run_ranks(make_plan(tmp_path, ranks_per_node=1, model=spec), tmp_path / "run")
    assert ended.codes == [3]
    assert "error: model.init_args: DigitsClassifier takes no argument 'witdh'" in ended.log(0)
    assert "fix: did you mean 'width'?" in ended.log(0)
    assert "Traceback" not in ended.log(0)


def test_a_rank_without_its_run_directory_says_how_to_start_one() -> None:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("HPC_TRAIN")}
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train.training"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "HPC_TRAIN_RUN_DIR is not set" in done.stderr


def test_an_error_that_the_tear_down_follows_is_told_and_not_the_tear_downs(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, ranks_per_node=1, data=faulty(tmp_path, "Unpicklable"))
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [1]
    (record,) = read_exits(ended.attempt)
    assert record.error.startswith("AttributeError: Can't pickle local object 'Unpicklable.")
    assert "combined_loader" not in ended.log(0).splitlines()[-1]


@pytest.mark.parametrize(
    "saves", [{"every_n_steps": 3}, {"every_n_steps": 3, "asynchronous": False}]
)
def test_a_checkpoint_that_the_programs_own_hook_spoils_ends_all_ranks_at_its_first_save(
    saves: dict[str, Any], tmp_path: Path
) -> None:
    model = faulty(tmp_path, "SavesALambda")
    plan = replace(make_plan(tmp_path, model=model), checkpoint=CheckpointConfig(**saves))
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [RunFailedError.exit_code] * 2
    records = read_exits(ended.attempt)
    for record in records:
        assert "on_save_checkpoint of faulty_models.SavesALambda put a lambda" in record.error
        assert "at checkpoint['best']['of'] (AttributeError" in record.error
        assert record.where == f"{tmp_path / 'faulty_models.py'}:{SAVES_A_LAMBDA}"
        assert 3 <= (record.step or 0) < 12, "of 23 steps"
        assert "in _save" in record.traceback
    assert "could not be saved" not in ended.log(0) + ended.log(1)


def test_a_training_whose_last_state_is_not_saved_has_failed_and_goes_on_later(
    tmp_path: Path,
) -> None:
    plan, run = make_plan(tmp_path), RunDir(tmp_path / "run")
    run.path.mkdir()
    run.checkpoints.write_text("in the way")
    ended = run_ranks(plan, run.path)
    assert ended.codes == [RunFailedError.exit_code] * 2, ended.log(0)
    end = "trained to step 22, and its last state could not be saved: Not a directory"
    for record in read_exits(ended.attempt):
        assert (record.kind, record.step, record.traceback) == ("unsaved", 22, "")
        assert record.error.startswith(f"{end} ({run.checkpoints}); once one can write there: hpc")
    assert f"error: {end}" in ended.log(0)
    assert "Traceback" not in ended.log(0)
    run.checkpoints.unlink()
    assert run_ranks(plan, run.path, attempt=1).codes == [0, 0]
    assert newest_step(run) == 22


@pytest.mark.parametrize("trainer", [{"max_epochs": 9}, {"max_steps": 3}])
def test_a_training_step_that_never_gives_a_loss_fails_at_the_end_of_its_first_epoch(
    trainer: dict[str, Any], tmp_path: Path
) -> None:
    model = faulty(tmp_path, "NoLoss")
    plan = make_plan(tmp_path, ranks_per_node=1, model=model, trainer=trainer)
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [RunFailedError.exit_code], ended.log(0)
    (record,) = read_exits(ended.attempt)
    said = "training_step of faulty_models.NoLoss returned None at every step: no optimizer step"
    assert record.error.startswith(said)
    assert "write `return loss` at its end" in record.error
    assert record.where == f"{tmp_path / 'faulty_models.py'}:{NO_LOSS}"
    assert record.step == min(22, trainer.get("max_steps", 22))


@pytest.mark.parametrize(("name", "arguments"), [("NoLoss", {"but": 3}), ("StepsByHand", {})])
def test_a_training_step_may_give_no_loss_now_and_then_or_take_its_steps_by_hand(
    name: str, arguments: dict[str, int], tmp_path: Path
) -> None:
    model = replace(faulty(tmp_path, name), init_args=arguments)
    plan = make_plan(tmp_path, ranks_per_node=1, model=model)
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [0], ended.log(0)


def test_a_hook_that_raises_as_it_saves_ends_the_training_with_its_own_error(
    tmp_path: Path,
) -> None:
    plan = make_plan(tmp_path, model=faulty(tmp_path, "SaveRaises"))
    ended = run_ranks(plan, tmp_path / "run")
    assert set(ended.codes) == {1}
    assert read_exits(ended.attempt)[0].error == "LookupError: no score so far"
    assert "in on_save_checkpoint" in ended.log(0)


@pytest.mark.parametrize(
    ("model", "callbacks", "cause"),
    [
        (
            "StopsEarly",
            [],
            r"the training's own code \(trainer.should_stop\) ended it at step 4 of \d+, epoch 1",
        ),
        (
            "",
            [{"monitor": "val_acc", "patience": 1, "min_delta": 3.0}],
            r"EarlyStopping ended it at step \d+ of \d+, epoch 2: Monitored metric val_acc did .*",
        ),
        ("", [{"monitor": "val_acc", "patience": 2, "min_delta": 3.0}], ""),  # the last epoch
    ],
)
def test_what_ends_a_training_early_is_recorded_with_its_step(
    tmp_path: Path, model: str, callbacks: list[dict[str, object]], cause: str
) -> None:
    early = "pytorch_lightning.callbacks.EarlyStopping"
    plan = make_plan(
        tmp_path,
        ranks_per_node=1,
        model=faulty(tmp_path, model) if model else DIGITS,
        trainer={
            "max_epochs": 3,
            "callbacks": [{"class_path": early, "init_args": one} for one in callbacks],
        },
    )
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [0], ended.log(0)
    (record,) = read_exits(ended.attempt)
    assert record.kind == "finished"
    assert re.fullmatch(cause, record.cause), record.cause


@pytest.mark.parametrize("loggers", [["csv"], []])
def test_a_short_training_whose_last_loss_is_no_number_is_noted(
    tmp_path: Path, loggers: list[str]
) -> None:
    plan = make_plan(tmp_path, ranks_per_node=1, model=faulty(tmp_path, "LogsNan"), loggers=loggers)
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [0], ended.log(0)
    (note,) = read_notes(ended.attempt)
    assert note.startswith("own_loss was nan at step 22: where that is not meant, a lower ")


def test_a_callback_that_a_model_brings_and_that_takes_trial_steps_is_refused(
    tmp_path: Path,
) -> None:
    plan = make_plan(tmp_path, ranks_per_node=1, model=faulty(tmp_path, "BringsAFinder"))
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [3], ended.log(0)
    (record,) = read_exits(ended.attempt)
    assert record.error.startswith("the callback LearningRateFinder takes trial steps within")
