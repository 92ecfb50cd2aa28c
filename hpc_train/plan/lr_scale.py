"""A script's learning rate when its global batch grows with the ranks (`script.scale_lr`). Pure.

Each rank keeps the script's own batch, so that N ranks take N times as many samples a step as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hpc_train.plan.plan import ScriptPlan


@dataclass(frozen=True)
class LrScale:
    """What every learning rate of the script is multiplied by."""

    factor: float
    warmup_steps: int  # optimizer steps from the script's own rate to the whole factor

    def at(self, step: int) -> float:
        """At the optimizer step number `step`, from 0."""
        reached = min(1.0, (step + 1) / self.warmup_steps) if self.warmup_steps else 1.0
        return 1.0 + (self.factor - 1.0) * reached

    def __str__(self) -> str:
        over = f", reached over {self.warmup_steps} steps" if self.warmup_steps else ""
        return f"{self.factor:.4g} x the script's{over}"


def lr_scale(script: ScriptPlan, ranks: int) -> LrScale | None:
    """For so many ranks; None where the script's rate stays as it is."""
    grown = ranks / script.lr_ranks
    factor = {"none": 1.0, "linear": grown, "sqrt": math.sqrt(grown)}[script.scale_lr]
    return None if factor == 1.0 else LrScale(factor, script.warmup_steps)
