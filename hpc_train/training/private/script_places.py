"""Where the callbacks and loggers of a script's Trainer write, kept over the attempts of a run."""

from __future__ import annotations

import csv
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpc_train.training.private.lightning import PACKAGE, TensorBoardLogger, pl

_CSV, _WANDB = pl.loggers.CSVLogger, pl.loggers.WandbLogger
# What makes a logger's folder, or names its run at a service.
_PLACE: dict[Any, tuple[str, ...]] = {
    TensorBoardLogger: ("_root_dir", "_name", "_version"),
    _CSV: ("_root_dir", "_save_dir", "_name", "_version"),
    _WANDB: ("_id",),
}


def places(trainer: pl.Trainer) -> dict[str, list[Any]]:
    """Where ModelCheckpoints and loggers write, and how much of a CSV file is written by now."""
    return {
        "folders": [getattr(item, "dirpath", None) for item in trainer.checkpoint_callbacks],
        "loggers": [_place(item) for item in trainer.loggers],
    }


def _place(logger: Any) -> dict[str, Any] | None:
    kind = _kind(logger)
    if kind is None:
        return None
    place = {name: getattr(logger, name) for name in _PLACE[kind]}
    if kind is _WANDB:  # its service gives the id when the run begins
        place["_id"] = logger.version
    if kind is _CSV and logger._experiment is not None:
        with suppress(OSError):  # a full disk costs lines of metrics, not the training
            logger.save()
            place["rows"] = len(_lines(_csv_file(logger))[1:])
    return place


def keep_places(trainer: pl.Trainer, saved: dict[str, list[Any]], *, whole: bool = False) -> None:
    """Let them go on where they were, though the script would have them begin somewhere new.

    A ModelCheckpoint that changes its folder forgets which of its files is the best
    (ModelCheckpoint.load_state_dict).

    Args:
        whole: What came after the checkpoint counts, too: a later fit has written it.
    """
    for keeper, folder in zip(trainer.checkpoint_callbacks, saved["folders"], strict=False):
        if folder is not None and hasattr(keeper, "dirpath"):
            keeper.dirpath = folder
    for logger, place in zip(trainer.loggers, saved["loggers"], strict=False):
        if place is not None and _kind(logger) is not None:
            _go_on(logger, dict(place), whole=whole)


def _go_on(logger: Any, place: dict[str, Any], *, whole: bool) -> None:
    rows = place.pop("rows", None)
    names = {name: value for name, value in place.items() if value is not None}
    if isinstance(logger, _WANDB):
        if names and logger._experiment is None:
            logger._wandb_init.update(id=names["_id"], resume="allow")
            logger._id = names["_id"]
        return
    if all(getattr(logger, name, None) == value for name, value in names.items()):
        if logger._experiment is not None:
            return  # a second fit of the same Trainer
    elif logger._experiment is not None and hasattr(logger._experiment, "close"):
        logger._experiment.close()
    vars(logger).update(names, _experiment=None)
    if rows is not None and "://" not in logger.log_dir:
        _go_on_csv(logger, None if whole else rows)


def _go_on_csv(logger: Any, rows: int | None) -> None:
    """Its writer deletes the file that it finds (fabric/loggers/csv_logs.py), so it finds none."""
    path = _csv_file(logger)
    aside = path.with_name(f".{path.name}")
    if path.exists() and not aside.exists():  # else an attempt was killed between the two
        path.rename(aside)
    lines = _lines(aside)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*exists and is not empty.*")
        writer = logger.experiment
    if lines:
        writer.metrics_keys = next(csv.reader(lines[:1]))
        path.write_text("".join(lines if rows is None else lines[: rows + 1]), encoding="utf-8")
    aside.unlink(missing_ok=True)


def _csv_file(logger: Any) -> Path:
    return Path(logger.log_dir, "metrics.csv")


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return stream.readlines()


def _kind(logger: Any) -> Any:
    return next((kind for kind in _PLACE if isinstance(logger, kind)), None)


def write_config_again(trainer: pl.Trainer) -> None:
    """LightningCLI refuses a folder in which an earlier attempt has left the config."""
    cli: Any = sys.modules.get(f"{PACKAGE}.cli")
    for item in trainer.callbacks:  # type: ignore[attr-defined]
        if cli is not None and isinstance(item, cli.SaveConfigCallback):
            item.overwrite = True


def resume_averaging(trainer: pl.Trainer) -> None:
    """Let StochasticWeightAveraging have its schedule in an epoch that is entered in its middle.

    It makes it at an epoch's begin alone, and making it changes the learning rates
    (stochastic_weight_avg.py, `on_train_epoch_start`).
    """
    for item in trainer.callbacks:  # type: ignore[attr-defined]
        if not isinstance(item, pl.callbacks.StochasticWeightAveraging):
            continue
        if item._scheduler_state is not None and not item._initialized:
            groups = trainer.optimizers[0].param_groups
            kept = [{k: v for k, v in group.items() if k != "params"} for group in groups]
            item.on_train_epoch_start(trainer, trainer.lightning_module)
            for group, values in zip(groups, kept, strict=True):
                group.update(values)
