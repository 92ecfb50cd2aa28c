"""Imports of Lightning 1 that the installed one has elsewhere: the line to write today."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.meant_words.moved_names import moved_import
from tests.config.test_script_starts import folder, said_of

__all__ = ["folder"]

FIT = "from pytorch_lightning import Trainer\nfrom nets import Net\nTrainer().fit(Net())\n"


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("from pytorch_lightning.metrics import Accuracy", "write from torchmetrics import Accu"),
        ("from pytorch_lightning import metrics", "write import torchmetrics as metrics"),
        ("import pytorch_lightning.metrics", "what pytorch_lightning.metrics had is in torchme"),
        (
            "from pytorch_lightning.metrics import Accuracy, NoSuchMetric",
            "what pytorch_lightning.metrics had is in torchmetrics today",
        ),
        (
            "from pytorch_lightning.metrics.functional import accuracy",
            "write from torchmetrics.functional import accuracy",
        ),
        (
            "from pytorch_lightning.core.lightning import LightningModule",
            "write from pytorch_lightning import LightningModule",
        ),
        (
            "from pytorch_lightning.utilities.cli import LightningCLI",
            "write from pytorch_lightning.cli import LightningCLI",
        ),
        (
            "from pytorch_lightning.utilities.distributed import rank_zero_only",
            "write from pytorch_lightning.utilities import rank_zero_only",
        ),
        (
            "from pytorch_lightning.trainer.supporters import CombinedLoader",
            "write from pytorch_lightning.utilities.combined_loader import CombinedLoader",
        ),
        (
            "from pytorch_lightning.profiler import SimpleProfiler",
            "write from pytorch_lightning.profilers import SimpleProfiler",
        ),
        (
            "from pytorch_lightning.plugins import DDPPlugin",
            "write from pytorch_lightning.strategies import DDPStrategy",
        ),
        (
            "from pytorch_lightning.callbacks import GPUStatsMonitor",
            "write from pytorch_lightning.callbacks import DeviceStatsMonitor",
        ),
        (
            "from pytorch_lightning.loggers.base import LightningLoggerBase",
            "write from pytorch_lightning.loggers import Logger",
        ),
        ("from pytorch_lightning.callbacks import EarlyStoping", ""),
        ("from pytorch_lightning.nothing import Mine", ""),
        ("from pytorch_lightning.metricsystem import Mine", ""),
        ("from torchmetrics.metrics import Accuracy", ""),
    ],
)
def test_an_import_of_lightning_1_is_told_as_it_is_today(line: str, fix: str) -> None:
    first, _, names = line.partition(" import ")
    module = first.removeprefix("from ").removeprefix("import ")
    said = moved_import(module, names.split(", ") if names else [], sys.path)
    assert said.startswith(fix) if fix else said == ""


def test_the_refusal_of_a_script_names_it(folder: Path) -> None:
    said = said_of(folder, f"from pytorch_lightning.metrics import Accuracy\n{FIT}")
    assert said.endswith("has no 'metrics' -> write from torchmetrics import Accuracy")


@pytest.mark.parametrize(
    ("names", "write"),
    [
        ("inf", "write from math import inf in its place"),
        (
            "container_abcs, string_classes, int_classes",
            (
                "write import collections.abc as container_abcs; and string_classes = (str, bytes);"
                " and int_classes = int in its place"
            ),
        ),
        ("PY3", "leave it out: it was for Python 2"),
    ],
)
def test_what_torch_has_no_more_is_refused_with_the_line_to_write(
    folder: Path, names: str, write: str
) -> None:
    line = f"from torch._six import {names}"
    said = said_of(folder, f"{line}\nimport torch\nprint(1)\n")
    assert said.endswith(f"imports 'torch._six', which torch has no more since 2.0 -> {write}")


def test_one_that_an_older_torch_alone_takes_is_not(folder: Path) -> None:
    text = "try:\n    from torch._six import inf\nexcept ImportError:\n    from math import inf\n"
    assert said_of(folder, f"{text}import torch\nprint(inf)\n") == ""
