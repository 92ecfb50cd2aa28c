"""Where a run's metrics, state and folder are, for who looks for them on the run itself."""

from __future__ import annotations

import dataclasses

from hpc_train.errors import Hinted
from hpc_train.runs.layout import RunDir

_LAST = "run.wait().metrics; before its end run.status().metrics"
# What others call it, or what is looked for.
_SAID = {
    **dict.fromkeys(("result", "results", "get", "get_result", "output", "scores"), _LAST),
    **dict.fromkeys(
        ("done", "is_done", "finished", "ended", "completed"), "run.status().state.ended"
    ),
    **dict.fromkeys(("id", "run_id"), "run.directory.run_id"),
    **dict.fromkeys(("log", "stdout", "print_logs"), "run.logs()"),
    **dict.fromkeys(("kill", "stop", "abort"), "run.cancel()"),
    **dict.fromkeys(("restart", "requeue", "rerun"), "run.resume()"),
    **dict.fromkeys(("exit_code", "returncode"), "run.status().outcome"),
}


class RunHints(Hinted):
    """What a run of the Python interface has elsewhere."""

    @staticmethod
    def where(name: str) -> str:
        """`run.status().metrics` for `metrics`; empty for what is nowhere."""
        if name in ("test", "validate", "predict"):
            return f"run.evaluate({name!r})"
        if name in _SAID:
            return _SAID[name]
        from hpc_train.runs.status import RunStatus

        if name in {field.name for field in dataclasses.fields(RunStatus)}:
            return f"run.status().{name}"
        if hasattr(RunDir, name) or name == "path":
            return f"run.directory.{name}"
        is_metric = {*name.split("_")} & {"loss", "acc", "accuracy", "metric", "score", "epoch"}
        return "run.status().metrics, which has what was logged" if is_metric else ""
