"""Loggers by the names that models call of them. Imports none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hpc_train.training.private.versions import LIGHTNING_PACKAGES


@dataclass(frozen=True)
class Logging:
    """A way to log.

    Attributes:
        service: Whose it is, in words.
        word: For `loggers` of a config.
        logger: Lightning's class.
        kinds: What its `experiment` is: a class behind the package that it is of.
        names: What models call of the two.
        images: Those of them that take an image.
    """

    service: str
    word: str
    logger: str
    kinds: tuple[str, ...]
    names: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


BOARD = Logging(
    service="TensorBoard",
    word="tensorboard",
    logger="TensorBoardLogger",
    kinds=("torch.SummaryWriter", "tensorboardX.SummaryWriter"),
    names=(
        *("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure"),
        *("add_text", "add_graph", "add_embedding", "add_video", "add_audio", "add_pr_curve"),
        *("add_mesh", "add_hparams", "add_custom_scalars"),
    ),
    images=("add_image", "add_images"),
)
WANDB = Logging(
    service="Weights & Biases",
    word="wandb",
    logger="WandbLogger",
    kinds=("wandb.Run",),
    names=(
        *("log", "watch", "unwatch", "config", "summary", "define_metric", "use_artifact"),
        *("log_image", "log_images", "log_table", "log_video", "log_audio", "log_code"),
    ),
    images=("log_image", "log_images"),
)
MLFLOW = Logging(
    service="MLflow",
    word="mlflow",
    logger="MLFlowLogger",
    kinds=("mlflow.MlflowClient",),
    names=(
        *("log_metric", "log_param", "log_params", "log_figure", "log_dict", "log_artifact"),
        *("log_artifacts", "log_text", "set_tag", "set_tags"),
    ),
)
CSV = Logging(
    service="metrics.csv",
    word="csv",
    logger="MetricsCsv",
    kinds=("hpc_train.MetricsCsv", "hpc_train.NoExperiment"),
)
_ALL = (BOARD, WANDB, MLFLOW, CSV)
_LIGHTNING = tuple(it.partition(".")[0] for it in LIGHTNING_PACKAGES)
# How names begin of what a service is asked for, where none has exactly that name.
_OF_SERVICES = ("log", "watch", "define_", "config", "summary", "use_", "set_")


def logging_by(owner: Any) -> Logging | None:
    """Which of them an object is; None of another object."""
    for kind in type(owner).__mro__:
        package = kind.__module__.partition(".")[0]
        for it in _ALL:
            is_lightnings = package in _LIGHTNING and kind.__name__ == it.logger
            if is_lightnings or f"{package}.{kind.__name__}" in it.kinds:
                return it
    return None


def wanted_by(name: str, *, of: Logging) -> Logging | None:
    """Which other one is meant by a name that one has not; None where that is not sure."""
    if found := next((it for it in _ALL if it is not of and name in it.names), None):
        return found
    if of is not CSV or name.startswith("_"):
        return None
    return WANDB if name.startswith(_OF_SERVICES) else BOARD
