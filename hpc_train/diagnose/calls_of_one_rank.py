"""What the text of a run's classes has rank 0 alone call, where a hang has all ranks wait."""

from __future__ import annotations

import sys

from hpc_train.config.fit.rank_zero_calls import rank_zero_calls
from hpc_train.config.specs import callbacks_of, is_object, read_object
from hpc_train.errors import HpcTrainError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan


def calls_of_one_rank(run: RunDir) -> tuple[str, ...]:
    """Each with its line and what to write, as the text stands now; none of a script's."""
    try:
        plan = read_plan(run)
        if plan.script is not None:
            return ()
        callbacks = [spec for _, spec in callbacks_of(plan.training.trainer) if is_object(spec)]
        own = [read_object(spec, "trainer.callbacks")[0] for spec in callbacks]
        classes = [plan.training.model.class_path, *own]
        return tuple(rank_zero_calls(classes, [plan.workdir, *sys.path]))
    except (HpcTrainError, OSError, ValueError):  # the project is no more where it was
        return ()
