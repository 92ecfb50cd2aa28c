"""Where a status has its metrics, for who looks for them on the status itself."""

from __future__ import annotations

from typing import ClassVar

from hpc_train.errors import Hinted
from hpc_train.runs.run_hints import ENDED, SAVED, is_metric, of_both

_SAID = {
    **dict.fromkeys(("result", "results", "output", "scores"), "status.metrics, a dict"),
    **of_both("run"),
    **dict.fromkeys(ENDED, "status.state.ended"),
    **SAVED,
    **dict.fromkeys(("best_model", "checkpoints"), "{run}.{name}()"),
    "newest": "status.newest_model",
    **dict.fromkeys(("exit_code", "returncode"), "status.outcome"),
    **dict.fromkeys(("log", "logs", "stdout"), "{run}.logs()"),
    **dict.fromkeys(("wait", "cancel", "resume", "evaluate", "models"), "{run}.{name}()"),
    **dict.fromkeys(("test", "validate", "predict"), "{run}.evaluate({name!r})"),
    **dict.fromkeys(("id", "run_id"), "status.run"),
    "global_step": "status.step",
}


class StatusHints(Hinted):
    """What a status of the Python interface has elsewhere."""

    instead: ClassVar[str] = "status.metrics['NAME'] for what was logged"

    def where(self, name: str) -> str:
        """`status.metrics['loss']` for `loss`; empty for what is nowhere."""
        # Not `self.metrics`: of a copy that is being made nothing is set yet.
        metrics = vars(self).get("metrics", {})
        if name in metrics:
            return f"status.metrics[{name!r}]"
        if name in vars(self) or hasattr(type(self), name):
            return f"status.{name}"
        if name in _SAID:
            run = f"hpc_train.Run.find({vars(self).get('run', 'RUN')!r})"
            return _SAID[name].format(name=name, run=run)
        if not is_metric(name):
            return ""
        had = (
            f" has {', '.join(map(repr, metrics))}" if metrics else " is empty: nothing was logged"
        )
        return f"status.metrics, which{had}"
