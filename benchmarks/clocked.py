"""The digits classifier with a clock in it, the same for ours and for the bare Trainer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from torch import Tensor

from hpc_train.examples.digits import DigitsClassifier

__all__ = ["ClockedDigits"]


class ClockedDigits(DigitsClassifier):
    """Notes when each training step begins; rank 0 writes it down at the end of the training.

    Args:
        clock: The file: `steps`, a list of seconds since the epoch and of the rank's CPU seconds.
    """

    def __init__(self, clock: str, lr: float = 2e-3, width: int = 32) -> None:
        super().__init__(lr, width)
        self.clock = clock
        self.steps: list[tuple[float, float]] = []

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """As the example's."""
        self.steps.append((time.time(), time.process_time()))
        return super().training_step(batch, batch_idx)

    def on_train_end(self) -> None:
        """Write whole or not at all: somebody waits for the file."""
        if self.global_rank == 0:
            document: dict[str, Any] = {"steps": self.steps}
            temporary = Path(self.clock + ".part")
            temporary.write_text(json.dumps(document), encoding="utf-8")
            temporary.rename(self.clock)
