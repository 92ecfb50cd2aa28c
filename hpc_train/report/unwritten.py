"""Metrics that a run has logged and that no logger has written, as it took too few steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from hpc_train.report.series import Series
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus

LIGHTNINGS_DEFAULT = 50  # pytorch_lightning.Trainer(log_every_n_steps)
_NO_METRICS = ("step", "epoch")


def unwritten(run: RunDir, status: RunStatus, metrics: Sequence[Series]) -> str:
    """Why metrics have no series; empty where they have one, or the reason is another one."""
    config = _config(run)
    if not config.get("loggers"):
        return ""
    every = (config.get("trainer") or {}).get("log_every_n_steps") or LIGHTNINGS_DEFAULT
    # self.log(on_step=True, on_epoch=True) writes NAME_step and NAME_epoch.
    written = {series.name.removesuffix("_step").removesuffix("_epoch") for series in metrics}
    absent = [
        name
        for name in status.metrics
        if name not in _NO_METRICS
        and name.removesuffix("_step").removesuffix("_epoch") not in written
    ]
    if not absent or not isinstance(every, int) or status.step >= every:
        return ""
    return (
        f"no series of {', '.join(absent)}: loggers write it every {every} steps "
        f"(trainer.log_every_n_steps), and the run took {status.step}"
    )


def _config(run: RunDir) -> dict[str, Any]:
    """That of the run; empty where it is a script's, or cannot be read."""
    try:
        read = yaml.safe_load(run.config.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return read if isinstance(read, dict) else {}
