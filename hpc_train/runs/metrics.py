"""The metrics of a run, which say why one is not among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from hpc_train.errors import NoMetricError


class Metrics(dict[str, Any]):
    """Values by name.

    Args:
        values: What the run has logged, the newest of each.
        stands: What the run is, and its state, for an error.
        reason: Why it stands there.
    """

    def __init__(self, values: Mapping[str, Any], stands: str = "", reason: str = "") -> None:
        super().__init__(values)
        self._stands, self._reason = stands, reason

    def __missing__(self, name: object) -> NoReturn:
        """Raise NoMetricError, which is a KeyError."""
        from hpc_train.config.words import did_you_mean

        why = f"{self._stands}{f': {self._reason}' if self._reason else ''}"
        message = f"there is no metric {name!r}{f'; {why}' if why else ''}"
        known = f"it has logged {', '.join(self)}" if self else "look at the status's state first"
        raise NoMetricError(message, did_you_mean(str(name), self) or known)
