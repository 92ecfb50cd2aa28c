"""Weights that have become NaN: what of the run is worth keeping, and what to change."""

from __future__ import annotations

from hpc_train.errors import RunFailedError
from hpc_train.plan.states import SUBMIT_AGAIN
from hpc_train.runs.not_finite import first_not_finite
from hpc_train.training.fit_notes.data_not_finite import LOOK, not_finite_in_data
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.resume.checkpoint import list_checkpoints


class DivergedError(RunFailedError):
    """A parameter is NaN where a checkpoint was to be written; nothing is saved of it.

    Args:
        name: Of the parameter.
        step: Optimizer steps at which it was found, which is when something was to be saved.
    """

    def __init__(self, name: str, step: int, rank: RankConfig) -> None:
        first = first_not_finite(rank.run.metrics_csv)
        earlier = f", and {first.text} (metrics.csv)" if first and first.step <= step else ""
        found = list_checkpoints(rank.checkpoints, verify=False)
        saved = [one.step for one in found if one.reason is None]
        kept = (
            f"the checkpoint of step {max(saved)} is from before"
            if saved
            else "no checkpoint is from before"
        )
        look = "look at the data"
        if earlier and first:
            log_all = "" if rank.is_script else " (trainer.log_every_n_steps=1 tells which step)"
            look += f" up to step {first.step}{log_all}"
        clip = "trainer.gradient_clip_val=1.0"
        # A script has no such key; it sets what clips by itself.
        change = "clip gradients" if rank.is_script else f"{SUBMIT_AGAIN} {clip} or so"
        rate = f" ({rank.rate})" if rank.rate else ""
        advice = f"lower the learning rate{rate}, or {change}, and {look}"
        if of_data := not_finite_in_data():
            advice = f"{of_data}: {LOOK}"
        super().__init__(
            f"{name} is NaN after step {step}: the training has diverged{earlier}",
            f"{advice}; {kept}",
        )
