"""Faults on request, for tests: HPC_TRAIN_FAULTS="kill@step=7:rank=1,hang@step=9:attempt=0".

A fault is ACTION@POINT[=N][:rank=R][:attempt=A]; without rank or attempt it means each. Without
the variable, `at` does nothing.

Actions: kill (SIGKILL itself), stop (SIGTERM itself), hang (the main thread waits for ever), raise
(a RuntimeError, as a user's).
Points: start (nothing done yet), step=N (N optimizer steps are taken), validate=N (batch N of an
evaluation), sanity, save=N (the Nth save of this attempt: its files are written, not committed),
commit=N (just before the rename).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass

from hpc_train.plan import env_names

_ACTIONS = ("kill", "stop", "hang", "raise")
_POINTS = ("start", "step", "validate", "sanity", "save", "commit")


@dataclass(frozen=True)
class RehearsedFault:
    """What happens, where, and to whom."""

    action: str
    point: str
    number: int | None = None
    rank: int | None = None
    attempt: int | None = None


def parse_faults(text: str) -> tuple[RehearsedFault, ...]:
    """Read the variable.

    Raises:
        ValueError: for a word that means nothing.
    """
    return tuple(_parse(part.strip()) for part in text.split(",") if part.strip())


def _parse(text: str) -> RehearsedFault:
    action, _, rest = text.partition("@")
    place, *conditions = rest.split(":")
    point, _, number = place.partition("=")
    named = dict(condition.split("=", 1) for condition in conditions)
    if action not in _ACTIONS or point not in _POINTS or set(named) - {"rank", "attempt"}:
        raise ValueError(f"no fault: {text!r}")
    return RehearsedFault(
        action,
        point,
        int(number) if number else None,
        *(int(named[name]) if name in named else None for name in ("rank", "attempt")),
    )


class RehearsedFaults:
    """The faults that can happen to this rank in this attempt."""

    def __init__(self, faults: tuple[RehearsedFault, ...], *, rank: int, attempt: int) -> None:
        self._mine = tuple(
            fault
            for fault in faults
            if fault.rank in (None, rank) and fault.attempt in (None, attempt)
        )

    @classmethod
    def from_env(cls, environ: Mapping[str, str], *, rank: int, attempt: int) -> RehearsedFaults:
        """None at all unless a test asks for them."""
        faults = parse_faults(environ.get(env_names.FAULTS, ""))
        return cls(faults, rank=rank, attempt=attempt)

    def at(self, point: str, number: int = 0) -> None:
        """Let happen what was asked for here."""
        for fault in self._mine:
            if fault.point == point and fault.number in (None, number):
                self._happen(fault)

    def _happen(self, fault: RehearsedFault) -> None:
        if fault.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.action == "stop":
            os.kill(os.getpid(), signal.SIGTERM)
        while fault.action == "hang":
            time.sleep(60)
        if fault.action == "raise":
            raise RuntimeError(f"asked for by {env_names.FAULTS}: {fault.point} {fault.number}")
