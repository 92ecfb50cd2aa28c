"""Metrics of a run, over all its attempts: a CSV file, TensorBoard, final.json, lines to read.

Everything here writes on global rank 0 only.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO, cast

from torch import Tensor
from typing_extensions import override

from hpc_train.errors import ConfigError
from hpc_train.runs.atomic import write_text
from hpc_train.runs.layout import RunDir
from hpc_train.training.build import build, spec_of
from hpc_train.training.private.lightning import (
    PACKAGE,
    Logger,
    TensorBoardLogger,
    TrainerFn,
    pl,
    rank_zero_only,
)
from hpc_train.training.private.lightning_logged import numbers_of_progress_bar

_MOST_SHOWN = 3
_SILENT = ("v_num", "epoch", "step")  # said anyway, or of no meaning in a line


def make_loggers(kinds: list[Any], run: RunDir, first_step: int) -> list[Logger]:
    """Build the config's loggers so that every attempt goes on in the same place.

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
            loggers.append(MetricsCsv(run.metrics_csv, first_step))
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
            loggers.append(_custom_logger(kind, place, run))
    return loggers


def _custom_logger(kind: Any, place: int, run: RunDir) -> Logger:
    spec = spec_of(kind)
    if spec is None:
        raise ConfigError(
            f"loggers[{place}]: {kind!r} is no logger",
            "write csv, tensorboard or {class_path: ..., init_args: {...}}",
        )
    defaults = {"save_dir": str(run.metrics), "run_name": run.run_id}
    if spec.class_path.rpartition(".")[2] == "WandbLogger":
        # One W&B run for all attempts: docs.wandb.ai/guides/runs/resuming
        spec = type(spec)(spec.class_path, {"id": run.run_id, "resume": "allow", **spec.init_args})
    kept = run.metrics / f"mlflow-run-{place}.txt"
    is_mlflow = spec.class_path.rpartition(".")[2] == "MLFlowLogger"
    if is_mlflow and kept.exists():
        known = {"run_id": kept.read_text(encoding="utf-8").strip()}
        spec = type(spec)(spec.class_path, {**known, **spec.init_args})
    logger = build(spec, key=f"loggers[{place}]", defaults=defaults)
    if is_mlflow and getattr(rank_zero_only, "rank", 0) == 0:
        _keep_mlflow_run(logger, kept)
    if not isinstance(logger, Logger):
        raise ConfigError(
            f"loggers[{place}]: {spec.class_path} is no logger of {PACKAGE}",
            f"name a class of {PACKAGE}.loggers or one derived from Logger",
        )
    return logger


def _keep_mlflow_run(logger: Any, file: Path) -> None:
    """Write down the id that MLflow's server gives a run: the next attempt goes on in it."""
    if run_id := logger.run_id:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, f"{run_id}\n")


class MetricsCsv(Logger):
    """metrics.csv: a row a step that logged anything, a column a metric, `step` first.

    Lightning's own CSVLogger deletes the file of an earlier attempt. This one goes on in it: rows
    of steps that are taken again are dropped, and what is logged twice for one step is merged,
    so that a step has one row whatever happened.

    Args:
        path: The file.
        first_step: Optimizer steps taken before this attempt.
    """

    def __init__(self, path: Path, first_step: int = 0) -> None:
        super().__init__()
        self._path = path
        self._first_step = first_step
        self._columns = ["step"]
        self._row: dict[str, Any] = {}  # the last one in the file; it may still get more metrics
        self._row_start = 0  # its offset in bytes
        self._file: io.BufferedRandom | None = None

    @property
    @override
    def name(self) -> str:
        """Lightning's word for the kind of logger."""
        return "csv"

    @property
    @override
    def version(self) -> str:
        """One for all attempts."""
        return ""

    @property
    def newest(self) -> dict[str, Any]:
        """A copy of the newest row."""
        return dict(self._row)

    @property
    @override
    def save_dir(self) -> str:
        """The folder of metrics.csv."""
        return str(self._path.parent)

    @override
    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Nothing: the run directory has the whole config."""

    @override
    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float | Tensor], step: int | None = None) -> None:
        """Write one row, or add to the last one where it is of the same step."""
        file = self._file or self._open()
        values = {name: _number(value) for name, value in metrics.items() if name != "step"}
        if step is None:
            step = self._row.get("step", -1) + 1
        if self._row.get("step") == step:
            self._row |= values
        else:
            self._row_start = file.seek(0, io.SEEK_END)
            self._row = {"step": step, **values}
        new = [name for name in self._row if name not in self._columns]
        if new:  # another header; rare, so the whole file is written
            self._columns += new
            self._store([row for row in _read_rows(self._path) if row["step"] != step])
        self._write_row()

    @override
    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Close the file; a later row opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> io.BufferedRandom:
        """Take over what earlier attempts left, without the steps to come."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        rows = _read_rows(self._path)
        if not self._row:  # else it is opened again by the same attempt
            rows = [row for row in rows if row["step"] < self._first_step]
            self._columns = list(dict.fromkeys(["step", *(name for row in rows for name in row)]))
        self._row = rows.pop() if rows else {}
        file = self._store(rows)
        if self._row:
            self._write_row()
        return file

    def _store(self, rows: list[dict[str, Any]]) -> io.BufferedRandom:
        """Write the header and `rows`; the last row comes behind them."""
        lines = [self._columns, *([row.get(name, "") for name in self._columns] for row in rows)]
        write_text(self._path, "".join(map(_csv_line, lines)))
        if self._file is not None:
            self._file.close()
        self._file = self._path.open("r+b")
        self._row_start = self._file.seek(0, io.SEEK_END)
        return self._file

    def _write_row(self) -> None:
        assert self._file is not None
        line = _csv_line([self._row.get(name, "") for name in self._columns])
        self._file.seek(self._row_start)
        self._file.write(line.encode())
        self._file.truncate()
        self._file.flush()


def _csv_line(values: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def _read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a metrics.csv without their empty cells; a torn last line is left out."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    rows: list[dict[str, Any]] = []
    for row in csv.DictReader(io.StringIO(whole)):
        if row.get("step", "").isdigit() and None not in row.values():
            kept = {name: value for name, value in row.items() if value != ""}
            rows.append({**kept, "step": int(row["step"])})
    return rows


def _number(value: float | Tensor) -> float:
    return value.item() if isinstance(value, Tensor) else value


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
    """Optimizer steps of the whole training; None where it has no end or a stream's is unknown."""
    ends = [trainer.max_steps] if trainer.max_steps > 0 else []
    batches = trainer.num_training_batches
    if trainer.max_epochs and trainer.max_epochs > 0 and batches != float("inf"):
        per_epoch = -(-int(batches) // trainer.accumulate_grad_batches)
        ends.append(per_epoch * trainer.max_epochs)
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
    shown = {name: _number(value) for name, value in metrics.items() if name not in _SILENT}
    return "".join(f"  {name} {value:.4g}" for name, value in shown.items())


def write_final_metrics(run: RunDir, trainer: pl.Trainer) -> None:
    """Leave `metrics/final.json`: every metric's last value, of a fit with `step` and `epoch`."""
    document = {name: _number(value) for name, value in trainer.callback_metrics.items()}
    if trainer.state.fn == TrainerFn.FITTING:
        document |= {"step": trainer.global_step, "epoch": trainer.current_epoch}
    run.metrics.mkdir(parents=True, exist_ok=True)
    write_text(run.final_metrics, json.dumps(document, indent=2) + "\n")
