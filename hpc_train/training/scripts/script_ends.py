"""What a script did with its Trainers, told at its end: whether its exit code 0 means a training.

Of an exception that the script caught only words are kept: its traceback would hold the tensors
of a fit that the script may try again with smaller batches.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.errors import RunFailedError
from hpc_train.training.rank_failure import (
    CaughtError,
    RankFailure,
    before_teardown,
    failure_of,
    users_line,
)

_OF_LIBRARIES = ("builtins", "torch", "lightning", "pytorch_lightning", "lightning_fabric")
LET_THROUGH = "to let it through, write `raise` at the end of the except block"
IF_RIGHT = "if that is right: script.may_take_no_steps=true"


@dataclass(frozen=True, kw_only=True)
class _FitCall:
    """A call of `fit`, `validate`, `test` or `predict`, or of `fit` by a tuner.

    Attributes:
        caught: None where it ended well.
        place: `file:line` of the script's that called it.
        is_meant: The exception may be the script's own way to end a training that has begun.
    """

    name: str
    caught: RankFailure | None = None
    place: str = ""
    is_meant: bool = False


class TrainerRuns:
    """What the Trainers of a script were made for."""

    def __init__(self) -> None:
        self._made = ""  # where the first one was
        self._is_any = False
        self._runs: list[_FitCall] = []
        self._called = False

    def made(self) -> None:
        """A Trainer is being made."""
        if not self._is_any:
            self._is_any, self._made = True, short_place(users_line())

    def called(self) -> None:
        """One of the Trainers was told to do something."""
        self._called = True

    def ended_well(self, name: str) -> None:
        """That is over."""
        self._runs.append(_FitCall(name=name))

    def raised(self, name: str, error: Exception, *, steps: int) -> None:
        """It failed, and the script may catch that.

        Args:
            steps: Optimizer steps that it had taken.
        """
        home = type(error).__module__.partition(".")[0]
        told = failure_of(before_teardown(error))
        is_meant = steps > 0 and home not in _OF_LIBRARIES
        place = short_place(users_line())
        self._runs.append(_FitCall(name=name, caught=told, place=place, is_meant=is_meant))

    def check_end(self, *, stepped: bool) -> str:
        """The script has come to its end, or left with 0.

        Args:
            stepped: Whether any optimizer took a step in this process.

        Returns:
            What the run's history should say; empty where all went well.

        Raises:
            RunFailedError: nothing was trained, or what was to be trained is not complete.
        """
        if self._is_any and not self._called and not stepped:
            at = f" ({self._made})" if self._made else ""
            raise RunFailedError(
                f"the script ended with exit code 0 and took no optimizer step: it made a"
                f" Trainer{at} and called none of fit, test, validate, predict",
                f"write trainer.fit(model, data) at its end; {IF_RIGHT}",
            )
        fits = [it for it in self._runs if it.name == "fit"] or self._runs
        last = fits[-1] if fits else None
        if last is None or last.caught is None:
            return ""
        at = f" of {last.place}" if last.place else ""
        error = last.caught.error.removesuffix(f"; {last.caught.fix}")
        said = f"{last.name}{at} ended with {error}, which the script caught"
        if last.is_meant or any(it.caught is None for it in fits):  # it tries several
            return f"its last {said}"
        why = f"the script ended with exit code 0, and its {said}; {LET_THROUGH}"
        raise CaughtError(why, last.caught)


def short_place(place: str) -> str:
    """Relative to the script's folder, where it is in it."""
    file, _, line = place.rpartition(":")
    main: Any = sys.modules.get("__main__")
    folder = Path(getattr(main, "__file__", None) or ".").parent
    path = Path(file)
    return f"{path.relative_to(folder)}:{line}" if path.is_relative_to(folder) else place
