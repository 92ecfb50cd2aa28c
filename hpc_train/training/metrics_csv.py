"""metrics.csv: hpc-train's own logger, one file over all attempts of a run."""

from __future__ import annotations

import csv
import io
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor
from typing_extensions import override

from hpc_train.runs.atomic import write_text
from hpc_train.runs.not_finite import NotFinite, tells_divergence
from hpc_train.training.known_loggers import CSV, wanted_by
from hpc_train.training.private.lightning import Logger, pl, rank_zero_only


class MetricsCsv(Logger):
    """metrics.csv: a row a step that logged anything, a column a metric, `step` first.

    Lightning's own CSVLogger deletes the file of an earlier attempt. This one goes on in it: rows
    of steps that are taken again are dropped, and what is logged twice for one step is merged,
    so that a step has one row whatever happened.

    Args:
        path: The file.
        first_step: Optimizer steps taken before this attempt.
        note: Is told of the first value that tells of a training that diverges.
    """

    def __init__(
        self, path: Path, first_step: int = 0, note: Callable[[NotFinite], None] | None = None
    ) -> None:
        super().__init__()
        self._note = note
        self._path = path
        self._first_step = first_step
        self._columns = ["step"]
        self._row: dict[str, Any] = {}  # the last one in the file; it may still get more metrics
        self._row_start = 0  # its offset in bytes
        self._file: io.BufferedRandom | None = None
        self.experiment: Any = NoExperiment()

    def __getattr__(self, name: str) -> Any:
        # `self.logger.log_image(...)` is as common in models as `self.logger.experiment`.
        if name.startswith("_") or name == "experiment":
            raise AttributeError(name)
        return getattr(self.experiment, name)

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

    @property
    def log_dir(self) -> str:
        """The same: where models put files of their own beside the metrics."""
        return self.save_dir

    def take_everything(self) -> None:
        """Let what a model calls of other loggers do nothing, as Lightning's do on ranks > 0."""
        self.experiment = pl.loggers.logger.DummyLogger().experiment

    @override
    @rank_zero_only
    def save(self) -> None:
        """Make the folder: Lightning calls this before it trains, and at each logged step."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)

    @override
    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Nothing: the run directory has the whole config."""

    @override
    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float | Tensor], step: int | None = None) -> None:
        """Write one row, or add to the last one where it is of the same step."""
        file = self._file or self._open()
        values = {name: number(value) for name, value in metrics.items() if name != "step"}
        if step is None:
            step = self._row.get("step", -1) + 1
        if self._note is not None:
            self._look(values, step)
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

    def _look(self, values: Mapping[str, Any], step: int) -> None:
        for name, value in values.items():
            if self._note is not None and tells_divergence(name, value):
                self._note(NotFinite(name, step, value))
                self._note = None

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


class NoExperiment:
    """What `self.logger.experiment` is where metrics.csv is the only logger."""

    def __getattr__(self, name: str) -> Any:
        raise _no_such(name, self)


def _no_such(name: str, asked: NoExperiment) -> AttributeError:
    """Says what a model expects of its logger; what to write is told where it ends the rank."""
    wanted = wanted_by(name, of=CSV)
    if wanted is None:
        return AttributeError(name)
    said = f"the csv logger has no {name}, and no {wanted.service} logger is configured"
    return AttributeError(said, name=name, obj=asked)


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


def number(value: float | Tensor) -> float:
    """A metric as a number; one on a GPU is waited for."""
    return value.item() if isinstance(value, Tensor) else value
