"""A run's plan, read; what cannot be read is told with its path."""

from __future__ import annotations

from hpc_train.errors import HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import RunDir


def read_plan(run: RunDir) -> Plan:
    """The plan of a run.

    Raises:
        HpcTrainError: it is not there, not readable, damaged, or of a newer hpc-train.
    """
    try:
        text = run.plan.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise HpcTrainError(f"{run.plan} cannot be read: {why}", "submit again") from error
    return Plan.from_json(text, str(run.plan))
