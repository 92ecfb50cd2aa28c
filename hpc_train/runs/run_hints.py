"""Where a run's metrics, state and folder are, for who looks for them on the run itself."""

from __future__ import annotations

import dataclasses

from hpc_train.errors import Hinted
from hpc_train.runs.layout import RunDir


class RunHints(Hinted):
    """What a run of the Python interface has elsewhere."""

    @staticmethod
    def where(name: str) -> str:
        """`run.status().metrics` for `metrics`; empty for what is nowhere."""
        if name in ("test", "validate", "predict"):
            return f"run.evaluate({name!r})"
        from hpc_train.runs.status import RunStatus

        if name in {field.name for field in dataclasses.fields(RunStatus)}:
            return f"run.status().{name}"
        return f"run.directory.{name}" if hasattr(RunDir, name) or name == "path" else ""
