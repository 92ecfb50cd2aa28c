"""An epoch that a share of its batches cuts within a step: its length is known in the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpc_train.plan.cut_epochs import CUTS, cut_steps, whole_steps
from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.rank_config import RankConfig

if TYPE_CHECKING:
    from hpc_train.training.private.lightning import pl


def note_cut_steps(trainer: pl.Trainer, rank: RankConfig) -> None:
    """Leave a note of it at the fit's begin; a whole number was noted at submission."""
    batches = trainer.num_training_batches
    shares = ((name, getattr(trainer, name)) for name in CUTS)
    cut = [(name, it) for name, it in shares if isinstance(it, float) and 0 < it < 1]
    if rank.rank != 0 or rank.is_script or not cut or batches == float("inf"):
        return
    name, share = cut[0]
    if said := cut_steps(int(batches), rank.batch):
        write = " or ".join(f"trainer.{name}={it}" for it in whole_steps(int(batches), rank.batch))
        note = (
            f"trainer.{name} {share:g} is {batches:.0f} batches of each rank, {said}; write {write}"
        )
        attempt = rank.run.attempt(rank.attempt)
        if note not in read_notes(attempt):
            leave_note(attempt, note)
