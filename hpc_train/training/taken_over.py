"""Whose share of an epoch a rank goes on with, where the number of ranks may be another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TakenOver:
    """The ranks of the attempt before whose running means one rank goes on with.

    Each of them is taken over by one rank, or by several that share it; so a mean or a sum over
    all ranks stays that of all samples.

    Attributes:
        ranks: What each of them saved, as `capture_logged` gives it.
        share: How many ranks share what these have.
        first: This rank has what cannot be shared; the others of them begin with nothing.
        more: There are more ranks than there were, so that some begin with nothing.
    """

    ranks: tuple[dict[str, Any], ...]
    share: int = 1
    first: bool = True
    more: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether this rank goes on with what it had itself, as all others do."""
        return len(self.ranks) == 1 and self.share == 1 and not self.more
