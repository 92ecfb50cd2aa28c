"""`loggers: [wandb]`: the short words for loggers, and the package that each class needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LIGHTNINGS = "pytorch_lightning.loggers"
# Argument that names the project; the run's own id is given by the rank.
_WRITTEN_OUT: Mapping[str, tuple[str, str]] = {
    "wandb": ("WandbLogger", "project"),
    "mlflow": ("MLFlowLogger", "experiment_name"),
}
OWN_LOGGERS = ("csv", "tensorboard")  # hpc-train writes these itself, over all attempts
LOGGER_WORDS = (*OWN_LOGGERS, *_WRITTEN_OUT)
# Lightning's class of each word.
CLASSES: Mapping[str, str] = {
    "csv": f"{_LIGHTNINGS}.CSVLogger",
    "tensorboard": f"{_LIGHTNINGS}.TensorBoardLogger",
    **{word: f"{_LIGHTNINGS}.{name}" for word, (name, _) in _WRITTEN_OUT.items()},
}
# Lightning's logger classes import these when they are made, so not before the job runs.
PACKAGES: Mapping[str, str] = {
    "WandbLogger": "wandb",
    "MLFlowLogger": "mlflow",
    "CometLogger": "comet_ml",
    "NeptuneLogger": "neptune",
}

MLFLOW_REFUSES_FILES = (3, 13)  # since then, unless one of these says where it writes
MLFLOW_STORES = ("tracking_uri", "MLFLOW_TRACKING_URI", "MLFLOW_ALLOW_FILE_STORE")


def write_out_loggers(loggers: Any) -> Any:
    """`wandb` as the class it stands for, with the run's name as its project."""
    if not isinstance(loggers, list):
        return loggers  # told apart by the types of the schema
    return [_written_out(logger) for logger in loggers]


def _written_out(logger: Any) -> Any:
    if not isinstance(logger, str) or logger not in _WRITTEN_OUT:
        return logger
    name, project = _WRITTEN_OUT[logger]
    return {"class_path": f"{_LIGHTNINGS}.{name}", "init_args": {project: "${name}"}}
