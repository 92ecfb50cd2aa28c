"""Where a run's metrics, state and folder are, for who looks for them on the run itself."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from hpc_train.errors import Hinted
from hpc_train.runs.layout import RunDir


def _at_end(name: str) -> str:
    """Where a field of a status is that a run has at its end alone: it may be just submitted."""
    are = "are those" if name.endswith("s") else "is that"
    return f"run.wait().{name} (it waits for the end; run.status().{name} {are} of now)"


ENDED = ("done", "is_done", "finished", "ended", "completed")  # as others call it


def of_both(name: str) -> dict[str, str]:
    """What others call the acts and the end that a run has, and a sweep as well.

    Args:
        name: What it is called in the hint: `run` or `sweep`.
    """
    return {
        **dict.fromkeys(ENDED, f"{name}.status().state.ended"),
        **dict.fromkeys(("kill", "stop", "abort"), f"{name}.cancel()"),
        **dict.fromkeys(("restart", "requeue", "rerun"), f"{name}.resume()"),
    }


# Fields of RunStatus that say nothing of a run that waits in the queue.
_OF_THE_END = ("metrics", "outcome", "best_models", "newest_model")
_NEWEST = "run.checkpoints(), the newest first, and none before the first is saved"
_BEST = "run.best_model().path, once one is saved: run.wait() waits for the end"
SAVED = {
    **dict.fromkeys(("checkpoint", "ckpt", "ckpts", "ckpt_path", "last_checkpoint"), _NEWEST),
    **dict.fromkeys(
        ("best", "best_checkpoint", "best_ckpt", "best_model_path", "best_path", "model"), _BEST
    ),
}
# What others call it, or what is looked for.
_SAID = {
    **dict.fromkeys(
        ("result", "results", "get", "get_result", "output", "scores"), _at_end("metrics")
    ),
    **of_both("run"),
    **dict.fromkeys(("id", "run_id"), "run.directory.run_id"),
    **dict.fromkeys(("log", "stdout", "print_logs"), "run.logs()"),
    **dict.fromkeys(("exit_code", "returncode"), _at_end("outcome")),
    "state": "run.status().state, of now; run.wait().state waits for the end",
    **SAVED,
}


def is_metric(name: str) -> bool:
    """Whether it reads like one that a training logs: `val_loss`."""
    return bool({*name.split("_")} & {"loss", "acc", "accuracy", "metric", "score", "epoch"})


class RunHints(Hinted):
    """What a run of the Python interface has elsewhere."""

    instead: ClassVar[str] = "run.wait().metrics['NAME'] for what was logged"

    @staticmethod
    def where(name: str) -> str:
        """`run.status().step` for `step`; empty for what is nowhere."""
        if name in ("test", "validate", "predict"):
            return f"run.evaluate({name!r})"
        if name in _SAID:
            return _SAID[name]
        if name in _OF_THE_END:
            return _at_end(name)
        from hpc_train.runs.status import RunStatus

        if name in {field.name for field in dataclasses.fields(RunStatus)}:
            return f"run.status().{name}"
        if hasattr(RunDir, name) or name == "path":
            return f"run.directory.{name}"
        said = "run.wait().metrics, which has what was logged; of now: run.status().metrics"
        return said if is_metric(name) else ""
