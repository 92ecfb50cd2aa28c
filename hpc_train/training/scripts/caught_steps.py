"""A step of a script's own loop that failed, and an `except` that lets the script end with 0.

What torch does in a step is followed: the next batch, the forward pass through what shares the
gradients, the backward pass. Of an exception only words are kept, as in `script_ends`.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from hpc_train.training.failures.frame_text import is_users
from hpc_train.training.private.torch_data import follow_batches
from hpc_train.training.rank_failure import CaughtError, RankFailure, failure_of, users_line
from hpc_train.training.scripts.plain_script import PlainScript
from hpc_train.training.scripts.script_ends import IF_RIGHT, LET_THROUGH, short_place


class CaughtSteps:
    """The last of them that one rank of a script has not gone on from."""

    def __init__(self, plain: PlainScript) -> None:
        self._plain = plain
        self._told: RankFailure | None = None
        self._at = -1  # steps that were taken before
        self._place = ""
        self._is_meant = False  # or may be: a note, and no failure
        self._is_last_batch = False

    @classmethod
    def followed(cls, plain: PlainScript) -> CaughtSteps:
        """From now on; before the script begins."""
        steps = cls(plain)
        tensor, shared = _any(torch.Tensor), _any(DistributedDataParallel)
        tensor.backward = steps._around(tensor.backward)
        shared.forward = steps._around(shared.forward)
        follow_batches(steps._drawn, steps.raised)
        return steps

    def raised(self, error: Exception) -> None:
        """A part of a step failed, and the script may catch that."""
        if not torch.is_grad_enabled() or not self._plain.is_plain:
            return
        if self._told is not None and self._plain.step == self._at:
            return  # the first says why
        went_on = self._told is not None  # it has caught one before, and trained on
        self._told, self._at = failure_of(error), self._plain.step
        place = self._told.where or users_line()
        self._told = dataclasses.replace(self._told, where=place)
        self._place = short_place(place)
        is_own = self._plain.stepped and _is_own(type(error))
        self._is_meant = is_own or went_on or self._is_last_batch

    def check_end(self) -> str:
        """The script has come to its end, or left with 0.

        Returns:
            What the run's history should say; empty where all went well.

        Raises:
            CaughtError: its training was left at a step that failed.
        """
        told, step = self._told, self._plain.step
        if told is None or step > self._at or not self._plain.is_plain:
            return ""
        error = told.error.removesuffix(f"; {told.fix}")
        at = f" ({self._place})" if self._place else ""
        said = f"step {step + 1}{at} ended with {error}, which the script caught"
        if self._is_meant:
            return f"its last {said}"
        why = f"the script ended with exit code 0, and {said}; {LET_THROUGH}; {IF_RIGHT}"
        raise CaughtError(why, told)

    def _drawn(self, *, is_last: bool) -> None:
        if torch.is_grad_enabled():
            self._is_last_batch = is_last

    def _around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def call(*given: Any, **named: Any) -> Any:
            if torch.compiler.is_compiling():
                return real(*given, **named)
            try:
                return real(*given, **named)
            except Exception as error:
                self.raised(error)
                raise

        return call


def _any(kind: Any) -> Any:
    return kind


def _is_own(kind: type[BaseException]) -> bool:
    """Whether an exception's class is the user's own, by which a training may end early."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return bool(file) and is_users(str(file))
