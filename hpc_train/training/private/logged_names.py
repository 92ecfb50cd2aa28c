"""The names that Lightning has logged; read also where an error is explained, without torch."""

from __future__ import annotations

from typing import Any


def logged_names(trainer: Any) -> set[str]:
    """What a `Trainer` has logged so far, by name; nothing is computed, which may be collective."""
    connector = trainer._logger_connector
    return {*connector._callback_metrics, *connector._logged_metrics}
