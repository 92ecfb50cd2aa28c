"""Metrics of a run, over all its attempts: a CSV file, TensorBoard, final.json, lines to read.

Everything here writes on global rank 0 only.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO, cast

from typing_extensions import override

from hpc_train.errors import ConfigError
from hpc_train.runs.atomic import write_text
from hpc_train.runs.layout import RunDir
from hpc_train.runs.not_finite import NotFinite, first_not_finite, tells_divergence
from hpc_train.runs.ranks import leave_note
from hpc_train.training.build import build, spec_of
from hpc_train.training.fit_notes.data_not_finite import LOOK, not_finite_in_data
from hpc_train.training.metrics_csv import MetricsCsv, number
from hpc_train.training.private.lightning import (
    PACKAGE,
    Logger,
    TensorBoardLogger,
    TrainerFn,
    pl,
)
from hpc_train.training.private.lightning_logged import numbers_of_progress_bar
from hpc_train.training.service_loggers import mlflow_logger, wandb_logger

_MOST_SHOWN = 3
_CLIP = "trainer.gradient_clip_val=1.0"
_SILENT = ("v_num", "epoch", "step")  # said anyway, or of no meaning in a line


def make_loggers(kinds: list[Any], run: RunDir, first_step: int) -> list[Logger]:
    """Build the config's loggers so that every attempt goes on in the same place.

    Lightning's `self.logger` is the first, so hpc-train's own csv comes last: models know those
    of Lightning.

    Args:
        kinds: "csv", "tensorboard" or {class_path, init_args}.
        first_step: Optimizer steps already taken; points at or after it, which an attempt that
            was killed may have left, are taken out.

    Raises:
        ConfigError: for a word that names no logger.
    """
    loggers: list[Logger] = []
    for place, kind in enumerate(kinds):
        if kind == "csv":
            loggers.append(MetricsCsv(run.metrics_csv, first_step, _note_of_not_finite(run)))
        elif kind == "tensorboard":
            board = TensorBoardLogger(
                str(run.metrics),
                name="",
                version="tensorboard",
                default_hp_metric=False,
                purge_step=first_step or None,  # SummaryWriter: hides what a dead attempt left
            )
            loggers.append(board)
        else:
            loggers.append(_custom_logger(kind, place, run, first_step))
    return sorted(loggers, key=lambda logger: type(logger) is MetricsCsv)


def _note_in(run: RunDir) -> Callable[[str], None]:
    """Says a line in the log and in the run's history."""

    def note(text: str) -> None:
        print(f"note: {text}", flush=True)  # noqa: T201 - a rank's log
        leave_note(run.latest_attempt, text)

    return note


def _note_of_not_finite(run: RunDir, clip: str = _CLIP) -> Callable[[NotFinite], None]:
    """Says that a value is no number.

    Args:
        clip: How gradients are clipped here.
    """

    def note(found: NotFinite) -> None:
        advice = f"where that is not meant, a lower learning rate, or {clip}"
        if of_data := not_finite_in_data():
            advice = f"{of_data}: {LOOK}"
        _note_in(run)(f"{found.text}: {advice}")

    return note


def note_last_not_finite(run: RunDir, trainer: pl.Trainer, *, is_script: bool = False) -> None:
    """Leave a note where a fit has ended with a metric that is no number, and none was logged.

    Lightning hands its loggers what a step logs every `log_every_n_steps` (50): those of a short
    training may get nothing, and of a long one nothing of the last steps.
    """
    if first_not_finite(run.metrics_csv):  # noted as it was logged
        return
    clip = "Trainer(gradient_clip_val=1.0)" if is_script else _CLIP
    last = {name: number(value) for name, value in trainer.callback_metrics.items()}
    found = [name for name, value in last.items() if tells_divergence(name, value)]
    for name in sorted(found, key=lambda it: "loss" not in it)[:1]:
        _note_of_not_finite(run, clip)(NotFinite(name, trainer.global_step, last[name]))


def _custom_logger(kind: Any, place: int, run: RunDir, first_step: int) -> Logger:
    spec = spec_of(kind)
    if spec is None:
        raise ConfigError(
            f"loggers[{place}]: {kind!r} is no logger",
            "write csv, tensorboard or {class_path: ..., init_args: {...}}",
        )
    defaults = {"save_dir": str(run.metrics), "run_name": run.run_id}
    key = f"loggers[{place}]"
    name = spec.class_path.rpartition(".")[2]
    note = _note_in(run)
    if name == "WandbLogger":
        logger = wandb_logger(
            spec, key=key, defaults=defaults, run_id=run.run_id, goes_on=first_step > 0, note=note
        )
    elif name == "MLFlowLogger":
        kept = run.metrics / f"mlflow-run-{place}.txt"
        logger = mlflow_logger(spec, key=key, defaults=defaults, kept=kept, note=note)
    else:
        logger = build(spec, key=key, defaults=defaults)
    if not isinstance(logger, Logger):
        raise ConfigError(
            f"{key}: {spec.class_path} is no logger of {PACKAGE}",
            f"name a class of {PACKAGE}.loggers or one derived from Logger",
        )
    return logger


class ProgressLines(pl.Callback):
    """Says where the training is: a line every few seconds, for logs and pipes.

    Args:
        global_batch_size: Samples an optimizer step.
        every_s: Seconds between two lines.
        stream: Where they go; standard output where it is None.
    """

    def __init__(
        self,
        global_batch_size: int,
        *,
        unit: str = "samples",
        every_s: float = 5.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._batch = global_batch_size
        self._unit = unit
        self._every_s = every_s
        self._stream = stream
        self._clock = clock
        self._said_at = 0.0
        self._said_step = 0

    @override
    def on_train_start(self, trainer: pl.Trainer, *_: Any) -> None:
        """Begin to count here: a resumed attempt has not taken the steps before."""
        self._said_at, self._said_step = self._clock(), trainer.global_step
        verb = "going on after step" if trainer.global_step else "training from step"
        ranks = f"{trainer.world_size} rank{'s' if trainer.world_size > 1 else ''}"
        self._say(trainer, f"{verb} {trainer.global_step} on {ranks}")

    @override
    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """A line where enough time has gone by."""
        now = self._clock()
        if now - self._said_at < self._every_s or trainer.global_step == self._said_step:
            return
        rate = (trainer.global_step - self._said_step) * self._batch / (now - self._said_at)
        metrics = _metrics_text(trainer.progress_bar_metrics)
        self._say(trainer, f"{_position(trainer)}{metrics}  {rate:.0f} {self._unit}/s")
        self._said_at, self._said_step = now, trainer.global_step

    @override
    def on_validation_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """What the validation found."""
        if not trainer.sanity_checking and self._clock() - self._said_at >= self._every_s:
            self.on_train_end(trainer)

    @override
    def on_train_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """The last line: where it ended, with everything measured."""
        self._say(trainer, f"{_position(trainer)}{_metrics_text(trainer.callback_metrics)}")

    def _say(self, trainer: pl.Trainer, line: str) -> None:
        if trainer.is_global_zero:
            print(line, file=self._stream or sys.stdout, flush=True)


def steps_in_all(trainer: pl.Trainer) -> int | None:
    """Optimizer steps of the whole training; None where it has no end or a stream's is unknown.

    A model that optimizes by hand takes as many an epoch as it likes: those of the epochs before
    tell, and in the first one nothing does.
    """
    ends = [trainer.max_steps] if trainer.max_steps > 0 else []
    batches, epochs = trainer.num_training_batches, trainer.max_epochs
    module = getattr(trainer, "lightning_module", None)
    if not epochs or epochs < 0:
        return min(ends, default=None)
    if module is not None and not module.automatic_optimization:
        done = trainer.current_epoch
        ends += [round(trainer.global_step * epochs / done)] if done else []
    elif batches != float("inf"):
        ends.append(-(-int(batches) // trainer.accumulate_grad_batches) * epochs)
    return min(ends, default=None)


def newest_numbers(trainer: pl.Trainer) -> dict[str, float]:
    """What was logged with `prog_bar=True`, else the losses of the newest row of metrics.csv.

    Where it has none, the row's first numbers.

    Only numbers that are there already: no tensor is read, which on a GPU would wait for it.
    """
    told: dict[str, Any] = numbers_of_progress_bar(trainer)
    shown = {name: value for name, value in told.items() if name not in _SILENT}
    if not shown:
        files = (logger for logger in trainer.loggers if isinstance(logger, MetricsCsv))
        row = next((file.newest for file in files), {})
        shown = {name: value for name, value in row.items() if "loss" in name and "val" not in name}
        others = [name for name in row if name not in _SILENT][:_MOST_SHOWN]
        shown = shown or {name: row[name] for name in others}
    # A row may hold anything that somebody logged.
    return {name: float(it) for name, it in shown.items() if isinstance(it, (int, float))}


def logs_nan(trainer: pl.Trainer) -> bool:
    """Whether a number that was logged last is NaN; no tensor is read."""
    rows = (it.newest for it in trainer.loggers if isinstance(it, MetricsCsv))
    newest = [numbers_of_progress_bar(trainer), *rows]
    return any(isinstance(it, float) and math.isnan(it) for row in newest for it in row.values())


def _position(trainer: pl.Trainer) -> str:
    steps = steps_in_all(trainer)
    total = f"/{steps}" if steps else ""
    return f"step {trainer.global_step}{total}  epoch {trainer.current_epoch}"


def early_end(trainer: pl.Trainer) -> str:
    """What ended a fit before its last step, and where; empty where it took all of its steps."""
    is_over = (
        trainer.current_epoch == trainer.max_epochs or trainer.global_step == trainer.max_steps
    )
    if not trainer.should_stop or is_over:
        return ""
    who, why = "the training's own code (trainer.should_stop)", ""
    for callback in cast("Any", trainer).callbacks:
        if isinstance(callback, pl.callbacks.Timer) and _is_over(callback):
            who, why = "Timer", ": its time is over"
        elif isinstance(callback, pl.callbacks.EarlyStopping):
            said = getattr(callback, "stopping_reason_message", "")  # since Lightning 2.6
            if said or callback.stopped_epoch:
                who = type(callback).__name__
                why = f": {said.removesuffix(' Signaling Trainer to stop.')}" if said else ""
    at = _position(trainer).replace("/", " of ").replace("  epoch", ", epoch")
    return f"{who} ended it at {at}{why}"


def _is_over(timer: pl.callbacks.Timer) -> bool:
    remaining_s = timer.time_remaining()
    return remaining_s is not None and remaining_s <= 0


def _metrics_text(metrics: Mapping[str, Any]) -> str:
    shown = {name: number(value) for name, value in metrics.items() if name not in _SILENT}
    return "".join(f"  {name} {value:.4g}" for name, value in shown.items())


def write_final_metrics(run: RunDir, trainer: pl.Trainer) -> None:
    """Leave `metrics/final.json`: every metric's last value, of a fit with `step` and `epoch`."""
    document = {name: number(value) for name, value in trainer.callback_metrics.items()}
    if trainer.state.fn == TrainerFn.FITTING:
        document |= {"step": trainer.global_step, "epoch": trainer.current_epoch}
    run.metrics.mkdir(parents=True, exist_ok=True)
    write_text(run.final_metrics, json.dumps(document, indent=2) + "\n")
