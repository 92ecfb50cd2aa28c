"""Which names Lightning's LearningRateMonitor may log."""

from __future__ import annotations

import re

from hpc_train.config.fit.monitor_modes import wants_the_highest, wants_the_lowest
from hpc_train.config.fit.near_metrics import step_of

_OF_RATES = re.compile(r"lrs?|rates?|momentum|decay|wd|pg\d+")


def may_be_a_rate(metric: str) -> bool:
    """Whether a schedule's rate may have this name.

    Without a name of its own it is `lr-Adam`, with `/pg1` and `-momentum` behind it
    (pytorch_lightning/callbacks/lr_monitor.py). A name of its own may be any text; none is one
    of a stage or of a score: val_iou.
    """
    if any(map(_OF_RATES.fullmatch, re.split(r"[\W_]+", metric.lower()))):
        return True
    return not (step_of(metric) or wants_the_highest(metric) or wants_the_lowest(metric))
