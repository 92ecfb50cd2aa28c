"""Where a sweep's runs, states and folder are, for who looks for them on the sweep itself."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from hpc_train.errors import Hinted
from hpc_train.runs.run_hints import of_both
from hpc_train.runs.sweep_dir import SweepDir
from hpc_train.runs.sweep_status import SweepStatus

_POINTS = "sweep.status().points"
_EACH = f"for point in {_POINTS}: sweep.run(point.number)"
_AT_END = f"[sweep.run(it.number).wait() for it in {_POINTS}]; each waits for the end of its point"
_BEST = f"max({_POINTS}, key=lambda it: it.run.metrics['val_acc']), with your metric"
# What others call it, or what a run has.
_SAID = {
    **dict.fromkeys(("wait", "result", "results", "metrics", "join", "scores"), _AT_END),
    **dict.fromkeys(("trials", "jobs"), _POINTS),
    **dict.fromkeys(("logs", "log", "checkpoints", "best_model", "evaluate", "load_module"), _EACH),
    **dict.fromkeys(("best", "best_run", "best_point", "best_trial", "best_params"), _BEST),
    **of_both("sweep"),
    **dict.fromkeys(("id", "run_id"), "sweep.directory.sweep_id"),
    "runs": f"[sweep.run(it.number) for it in {_POINTS}]",
    "run_dir": "sweep.directory.path",
}


class SweepHints(Hinted):
    """What a sweep lacks is told with where it is."""

    instead: ClassVar[str] = "sweep.run(NUMBER)"

    @staticmethod
    def where(name: str) -> str:
        """`sweep.status().points` for `points`; empty for what is nowhere."""
        if name in _SAID:
            return _SAID[name]
        of_status = {field.name for field in dataclasses.fields(SweepStatus)}
        if name in of_status or hasattr(SweepStatus, name):
            return f"sweep.status().{name}"
        if hasattr(SweepDir, name) or name == "path":
            return f"sweep.directory.{name}"
        return ""
