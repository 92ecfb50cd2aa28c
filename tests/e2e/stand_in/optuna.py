"""Stands in for Optuna: two trials side by side in threads, as `Study.optimize(n_jobs=...)` has.

It has what docs/sweeps.md calls, and no more; what came of each trial is in study.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


class TrialPruned(Exception):  # noqa: N818 - the name is Optuna's
    """A trial without a value."""


class Trial:
    """One set of values."""

    def __init__(self, number: int) -> None:
        self.told: dict[str, Any] = {"number": number, "value": None, "pruned": ""}

    def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
        """The least value, then the greatest one."""
        assert log
        self.told[name] = (low, high)[self.told["number"]]
        return float(self.told[name])

    def set_user_attr(self, key: str, value: Any) -> None:
        """Kept with the trial."""
        self.told[key] = value


class Study:
    """The trials."""

    def optimize(self, objective: Callable[[Trial], float], *, n_trials: int, n_jobs: int) -> None:
        """Two of them; what else is raised than TrialPruned ends the study."""
        assert min(n_trials, n_jobs) > 1
        trials = [Trial(number) for number in range(2)]

        def run(trial: Trial) -> None:
            try:
                trial.told["value"] = objective(trial)
            except TrialPruned as pruned:
                trial.told["pruned"] = str(pruned)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, trials))
        Path("study.json").write_text(json.dumps([trial.told for trial in trials]))


def create_study(*, direction: str, storage: str, load_if_exists: bool, study_name: str) -> Study:
    """A study with a name in a database."""
    assert (direction, study_name, load_if_exists) == ("maximize", "lr", True)
    assert storage.startswith("sqlite:///")
    return Study()
