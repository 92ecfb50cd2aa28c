"""What a loop with a Session may do without meaning it, noted at its first two steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hpc_train.training.private.exchanges import exchanges_so_far
from hpc_train.training.scripts.unshared_steps import said_of_unshared, users_place
from hpc_train.training.sessions.unkept_optimizers import UnkeptOptimizers


class SessionNotes:
    """Looks at the first two steps of an attempt.

    Args:
        note: Takes each text; None where another rank tells them.
        ranks: How many there are.
    """

    def __init__(self, note: Callable[[str], None] | None, *, ranks: int) -> None:
        self._note = note
        self._ranks = ranks
        self._steps = 0
        self._drew = False
        self._exchanges: int | None = None
        self._unkept = UnkeptOptimizers()

    def restored(self, objects: Mapping[str, Any]) -> None:
        """`restore` was given these."""
        if self._note is not None:
            self._unkept.restored(objects)

    def drew(self) -> None:
        """The session's own batches are asked for."""
        self._drew = True

    def before_step(self) -> None:
        """A step was taken, and is not counted yet."""
        self._steps += 1
        if self._note is None:
            return
        if self._steps == 1 and not self._drew:
            self._note(self._undrawn())
        said = ""
        if self._steps == 2 and self._exchanges is not None:
            said = said_of_unshared(ranks=self._ranks, known=self._exchanges)
        if said:
            self._note(said)
        if self._steps == 2 and (said := self._unkept.said()):
            self._note(said)
        if self._steps > 1:
            self._unkept.end()
        self._unkept.stepped()

    def after_step(self) -> None:
        """It is counted: what the ranks have exchanged for it is done."""
        if self._steps == 1:
            self._exchanges = exchanges_so_far()

    def _undrawn(self) -> str:
        each = f"each of the {self._ranks} ranks takes all of them, and " if self._ranks > 1 else ""
        return (
            f"the first step took no samples of session.batches{users_place()}: {each}an attempt"
            " that goes on does not know which it has had; write for batch in"
            " session.batches(loader):, unless the data itself tells the ranks and attempts apart"
        )
