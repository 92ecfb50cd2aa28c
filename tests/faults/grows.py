"""A model whose last rank takes more memory at each step."""

from __future__ import annotations

import time
from typing import Any

from tests.faults.tiny import Tiny


class Grows(Tiny):
    """Keeps 200 MiB a step."""

    def on_train_batch_start(self, _batch: Any, _batch_idx: int) -> None:
        kept = getattr(self, "kept", [])
        if self.global_rank == self.trainer.world_size - 1:
            kept.append(bytearray(b"x" * (200 << 20)))
        self.kept = kept
        time.sleep(0.2)
