"""Metrics without a series: the run was shorter than the loggers' interval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hpc_train.report.series import thinned
from hpc_train.report.unwritten import unwritten
from tests.report.made import make_run

LOSS = {"train_loss": 1.4, "step": 48, "epoch": 3}


@pytest.mark.parametrize(
    ("trainer", "step", "metrics", "written", "said"),
    [
        ({}, 48, LOSS, [], "no series of train_loss: loggers write it every 50 steps"),
        ({}, 49, {**LOSS, "acc": 1}, ["acc"], "no series of train_loss: "),
        ({}, 1, {**LOSS, "acc": 1}, [], "no series of train_loss, acc: "),
        ({"log_every_n_steps": 100}, 99, LOSS, [], "every 100 steps"),
        ({}, 50, LOSS, [], ""),
        ({"log_every_n_steps": 1}, 48, LOSS, [], ""),
        ({}, 48, {"step": 48}, [], ""),
        ({}, 48, LOSS, ["train_loss"], ""),
        ({}, 48, {"loss_epoch": 1, "loss": 1}, ["loss_step"], ""),
    ],
)
def test_a_run_shorter_than_the_interval_is_told(
    tmp_path: Path,
    trainer: dict[str, int],
    step: int,
    metrics: dict[str, float],
    written: list[str],
    said: str,
) -> None:
    made = make_run(tmp_path)
    made.attempt(0, 0, steps=(0, step))
    status = replace(made.report().status, step=step, metrics=metrics)
    made.run.config.write_text(yaml.safe_dump({"trainer": trainer, "loggers": ["csv"]}))
    series = [thinned(name, [1.0], [1.0]) for name in written]
    told = unwritten(made.run, status, series)
    assert said in told
    assert bool(told) == bool(said)


@pytest.mark.parametrize("text", ["trainer: {}\nloggers: []\n", "[", ""])
def test_without_a_logger_or_a_config_nothing_is_said(tmp_path: Path, text: str) -> None:
    made = make_run(tmp_path)
    status = replace(made.report().status, step=3, metrics=LOSS)
    made.run.config.write_text(text)
    assert unwritten(made.run, status, []) == ""
    made.run.config.unlink()
    assert unwritten(made.run, status, []) == ""
