from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pytorch_lightning.loggers import TensorBoardLogger

from hpc_train.cli.foreground import PROGRESS_LINE
from hpc_train.errors import ConfigError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_notes
from hpc_train.training.loggers import (
    ProgressLines,
    make_loggers,
    newest_numbers,
    note_last_not_finite,
    steps_in_all,
    write_final_metrics,
)
from hpc_train.training.metrics_csv import MetricsCsv


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open() as stream:
        return [{k: v for k, v in row.items() if v} for row in csv.DictReader(stream)]


def test_a_step_has_one_row_whatever_is_logged_for_it_and_when(tmp_path: Path) -> None:
    log = MetricsCsv(tmp_path / "metrics.csv")
    log.log_metrics({"loss": torch.tensor(0.5)}, step=0)
    log.log_metrics({"loss": 0.25}, step=1)
    log.log_metrics({"val_acc": 0.9}, step=1)
    log.log_metrics({"loss": 0.125}, step=2)
    log.finalize("success")
    assert rows(tmp_path) == [
        {"step": "0", "loss": "0.5"},
        {"step": "1", "loss": "0.25", "val_acc": "0.9"},
        {"step": "2", "loss": "0.125"},
    ]


def test_the_first_value_that_is_no_number_is_noted_once_in_the_log_and_in_the_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDir(tmp_path)
    run.attempt(0).path.mkdir(parents=True)
    run.latest.symlink_to(run.attempt(0).path)
    (log,) = make_loggers(["csv"], run, 0)
    log.log_metrics({"loss": 0.5, "best": float("inf")}, step=0)
    assert capsys.readouterr().out == ""
    for step in (1, 2):
        log.log_metrics({"acc": 1, "loss": torch.tensor(float("nan"))}, step=step)
    log.log_metrics({"val_acc": float("nan")}, step=2)
    log.finalize("success")
    said = (
        "loss was nan at step 1: where that is not meant, a lower learning rate, or"
        " trainer.gradient_clip_val=1.0"
    )
    assert capsys.readouterr().out == f"note: {said}\n"
    assert read_notes(run.attempt(0)) == [said]


NAN, INF = float("nan"), float("inf")
BELOW = ": where that is not meant, a lower learning rate, or"


@pytest.mark.parametrize(
    ("logged", "last", "is_script", "said"),
    [
        ({}, {"train_loss": NAN, "val_loss": 2.5}, False, "train_loss was nan at step 32"),
        ({}, {"acc": NAN, "val_loss": INF}, False, "val_loss was inf at step 32"),
        ({}, {"val_loss": -INF}, True, "val_loss was -inf at step 32"),
        ({"loss": 0.5}, {"loss": NAN}, False, "loss was nan at step 32"),
        ({"loss": NAN}, {"loss": NAN}, False, "loss was nan at step 7"),  # once
        ({}, {"loss": 0.5, "best": INF}, False, ""),
        ({}, {}, False, ""),
    ],
)
def test_a_fit_that_ends_with_what_is_no_number_and_was_not_logged_is_noted(
    logged: dict[str, float], last: dict[str, float], is_script: bool, said: str, tmp_path: Path
) -> None:
    run = RunDir(tmp_path)
    run.attempt(0).path.mkdir(parents=True)
    run.latest.symlink_to(run.attempt(0).path)
    if logged:
        (log,) = make_loggers(["csv"], run, 0)
        log.log_metrics(logged, step=7)
        log.finalize("success")
    metrics = {name: torch.tensor(value) for name, value in last.items()}
    trainer: Any = SimpleNamespace(callback_metrics=metrics, global_step=32)
    note_last_not_finite(run, trainer, is_script=is_script)
    clip = "Trainer(gradient_clip_val=1.0)" if is_script else "trainer.gradient_clip_val=1.0"
    assert read_notes(run.attempt(0)) == ([f"{said}{BELOW} {clip}"] if said else [])


def test_a_loss_that_is_infinite_is_noted_and_a_best_value_so_far_is_not(tmp_path: Path) -> None:
    for name, value, noted in (
        ("val_loss", float("inf"), True),
        ("val_loss", float("-inf"), True),
        ("best", float("inf"), False),
        ("best", float("nan"), True),
        ("name", "nan", False),
    ):
        told: list[str] = []
        log = MetricsCsv(tmp_path / "metrics.csv", note=lambda found, told=told: told.append(found))
        log.log_metrics({"loss": 0.5, name: value}, step=3)
        log.finalize("success")
        assert bool(told) is noted


def test_every_row_is_in_the_file_at_once_so_a_killed_rank_loses_none(tmp_path: Path) -> None:
    log = MetricsCsv(tmp_path / "metrics.csv")
    for step in range(3):
        log.log_metrics({"loss": 1.0}, step=step)
        assert len(rows(tmp_path)) == step + 1
    log.finalize("failed")


def test_a_resumed_attempt_goes_on_in_the_file_without_doubled_points(tmp_path: Path) -> None:
    first = MetricsCsv(tmp_path / "metrics.csv")
    for step in range(10):
        first.log_metrics({"loss": float(step)}, step=step)
    first.finalize("failed")
    second = MetricsCsv(
        tmp_path / "metrics.csv", first_step=6
    )  # the last checkpoint: steps 6 to 9 come again
    second.log_metrics({"val_acc": 0.5}, step=5)  # validation of a step that was logged before
    second.log_metrics({"loss": 60.0}, step=6)
    second.finalize("success")
    second.log_metrics({"loss": 70.0}, step=7)
    second.finalize("success")
    found = rows(tmp_path)
    assert [row["step"] for row in found] == [str(step) for step in range(8)]
    assert found[5] == {"step": "5", "loss": "5.0", "val_acc": "0.5"}
    assert found[6]["loss"] == "60.0"
    assert found[7]["loss"] == "70.0"


def test_a_fresh_start_begins_a_fresh_file(tmp_path: Path) -> None:
    for step, loss in ((9, 1.0), (0, 2.0)):
        log = MetricsCsv(tmp_path / "metrics.csv")
        log.log_metrics({"loss": loss}, step=step)
        log.finalize("success")
    assert rows(tmp_path) == [{"step": "0", "loss": "2.0"}]


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,loss\n0,1.0\n1,0.")
    log = MetricsCsv(tmp_path / "metrics.csv", first_step=5)
    log.log_metrics({"loss": 3.0}, step=5)
    log.finalize("success")
    assert rows(tmp_path) == [{"step": "0", "loss": "1.0"}, {"step": "5", "loss": "3.0"}]


def test_loggers_keep_one_place_over_all_attempts(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "digits" / "20260101-abc")
    board, csv_log = make_loggers(["csv", "tensorboard"], run, 7)
    assert Path(csv_log.save_dir or "") == run.metrics
    assert isinstance(board, TensorBoardLogger)
    assert Path(board.log_dir) == run.metrics / "tensorboard"
    assert board._kwargs["purge_step"] == 7


@pytest.mark.parametrize("words", [["csv", "tensorboard"], ["tensorboard", "csv"]])
def test_a_models_logger_is_lightnings_own_and_writes_through_its_experiment(
    words: list[str], tmp_path: Path
) -> None:
    first = make_loggers(words, RunDir(tmp_path), 0)[0]  # Lightning: `trainer.logger`
    assert isinstance(first, TensorBoardLogger)
    first.experiment.add_scalar("mine", 0.5, 0)
    assert Path(first.log_dir).is_dir()


def test_the_csv_logger_has_a_folder_and_names_the_logger_that_a_model_expects(
    tmp_path: Path,
) -> None:
    (log,) = make_loggers(["csv"], RunDir(tmp_path), 0)
    assert isinstance(log, MetricsCsv)
    log.save()
    assert (log.name, log.version, Path(log.log_dir).is_dir()) == ("csv", "", True)
    assert not hasattr(log.experiment, "__len__")
    with pytest.raises(AttributeError, match="no add_image, and no TensorBoard logger is con"):
        log.experiment.add_image("x", None)
    for asked in (lambda: log.experiment.log({}), lambda: log.log_image("x", [])):
        with pytest.raises(AttributeError, match="and no Weights & Biases logger is configured"):
            asked()
    log.take_everything()  # as in a bench
    log.log_image("x", [])
    log.experiment.add_image("x", None)


class WandbLogger(MetricsCsv):
    def __init__(self, save_dir: str, **told: str) -> None:
        super().__init__(Path(save_dir))
        self.told = told


def test_weights_and_biases_keeps_the_runs_id(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "digits" / "20260101-abc")
    kind = {"class_path": f"{__name__}.WandbLogger", "init_args": {"project": "p"}}
    (made,) = make_loggers([kind], run, 0)
    assert made.told == {"id": "20260101-abc", "resume": "allow", "project": "p"}  # type: ignore[attr-defined]


def test_a_word_that_names_no_logger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"loggers\[1\]: 'wandb' is no logger"):
        make_loggers(["csv", "wandb"], RunDir(tmp_path), 0)


def trainer(**values: Any) -> Any:
    base = {
        "is_global_zero": True,
        "global_step": 0,
        "current_epoch": 0,
        "world_size": 4,
        "max_steps": -1,
        "max_epochs": 2,
        "num_training_batches": 30,
        "accumulate_grad_batches": 2,
        "progress_bar_metrics": {"loss": 0.5, "v_num": 3},
        "callback_metrics": {"loss": torch.tensor(0.5), "val_acc": torch.tensor(0.97)},
        "sanity_checking": False,
        "state": SimpleNamespace(fn="fit"),
    }
    return SimpleNamespace(**{**base, **values})


def test_a_line_tells_step_epoch_metrics_and_speed(tmp_path: Path) -> None:
    now = [0.0]
    out = io.StringIO()
    lines = ProgressLines(64, every_s=5, stream=out, clock=lambda: now[0])
    lines.on_train_start(trainer(), None)  # type: ignore[arg-type]
    for seconds, step in ((2.0, 4), (6.0, 12), (7.0, 14)):
        now[0] = seconds
        lines.on_train_batch_end(trainer(global_step=step), None, None, None, 0)  # type: ignore[arg-type]
    lines.on_train_end(trainer(global_step=30, current_epoch=2), None)  # type: ignore[arg-type]
    assert out.getvalue().splitlines() == [
        "training from step 0 on 4 ranks",
        "step 12/30  epoch 0  loss 0.5  128 samples/s",
        "step 30/30  epoch 2  loss 0.5  val_acc 0.97",
    ]
    told = [bool(PROGRESS_LINE.match(line)) for line in out.getvalue().splitlines()]
    assert told == [False, True, True], "`hpc-train run` shows these in its own line"


def test_only_rank_0_writes_lines() -> None:
    out = io.StringIO()
    lines = ProgressLines(64, stream=out)
    lines.on_train_start(trainer(is_global_zero=False), None)  # type: ignore[arg-type]
    assert out.getvalue() == ""


def test_final_metrics_are_one_document(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_final_metrics(run, trainer(global_step=30, current_epoch=2))
    document = json.loads((run.metrics / "final.json").read_text())
    assert document == {
        "loss": 0.5,
        "val_acc": pytest.approx(0.97),
        "step": 30,
        "epoch": 2,
    }


BY_HAND = SimpleNamespace(automatic_optimization=False)  # two optimizers, each every batch


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({}, 30),  # 30 micro batches an epoch, two a step, two epochs
        ({"num_training_batches": 31}, 32),
        ({"max_steps": 7}, 7),
        ({"max_steps": 70}, 30),
        ({"max_steps": 7, "max_epochs": -1}, 7),
        ({"max_epochs": -1}, None),
        ({"max_epochs": None}, None),
        ({"num_training_batches": float("inf")}, None),
        ({"num_training_batches": float("inf"), "max_steps": 7}, 7),
        ({"lightning_module": BY_HAND, "current_epoch": 0}, None),
        ({"lightning_module": BY_HAND, "current_epoch": 1, "global_step": 60}, 120),
        ({"lightning_module": BY_HAND, "current_epoch": 2, "global_step": 120}, 120),
        ({"lightning_module": BY_HAND, "current_epoch": 0, "max_steps": 7}, 7),
    ],
)
def test_the_steps_of_a_training_are_known_where_it_has_an_end(arguments, steps) -> None:
    assert steps_in_all(trainer(**arguments)) == steps


@pytest.mark.parametrize(
    ("shown", "row", "told"),
    [
        ({"loss": 0.5, "acc": 1, "v_num": 3}, {"train_loss": 9.0}, {"loss": 0.5, "acc": 1.0}),
        ({}, {"train_loss": 0.25, "lr": 0.1, "val_loss": 1.0, "epoch": 3}, {"train_loss": 0.25}),
        ({"v_num": 3}, {"train_loss": 0.25}, {"train_loss": 0.25}),
        (
            {},
            {"step": 4, "a": 1.0, "nll": 2, "b": 3.0, "c": 4.0},
            {"a": 1.0, "nll": 2.0, "b": 3.0},
        ),
        ({}, {}, {}),
        ({}, {"train_loss": "text", "loss": None}, {}),  # a heartbeat must not die of it
    ],
)
def test_what_a_person_watches_is_what_was_asked_for_or_the_loss(
    tmp_path: Path, shown: dict[str, Any], row: dict[str, Any], told: dict[str, float]
) -> None:
    file = MetricsCsv(tmp_path / "metrics.csv")
    if row:
        file.log_metrics(row, step=0)
    connector = SimpleNamespace(_progress_bar_metrics=shown)
    given = trainer(_logger_connector=connector, loggers=[file])
    assert newest_numbers(given) == told
    without = newest_numbers(trainer(_logger_connector=connector, loggers=[]))
    assert without == (told if "loss" in shown else {})
    file.finalize("success")
