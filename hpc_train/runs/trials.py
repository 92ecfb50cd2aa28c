"""Runs of `trainer.fast_dev_run`, a trial of a few batches, which keep no model."""

from __future__ import annotations

import os
import shlex

from hpc_train.codec import read_object
from hpc_train.config.submission_words import typed_anew
from hpc_train.errors import HpcTrainError
from hpc_train.runs.events import read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.status import FOREGROUND


def trial_without_models(run: RunDir) -> tuple[str, str] | None:
    """Why a trial of a few batches saves no model, and what to write; None of other runs."""
    try:
        trainer = read_plan(run).training.trainer
    except (TypeError, HpcTrainError):
        return None
    if not trainer.get("fast_dev_run"):
        return None
    why = "trainer.fast_dev_run switches every ModelCheckpoint off"
    off = "trainer.fast_dev_run=false"
    kept = read_object(run.environment).get("config") or {}
    words = [str(it) for it in kept.get("words") or ()]
    if not words:
        return why, f"train again with {off}"
    if kept.get("file") != os.path.abspath(words[0]):  # noqa: PTH100 - `..` of a link stays
        words[0] = str(kept.get("file") or words[0])
    begun = next(iter(read_events(run.events)), None)
    command = "run" if begun is not None and begun.get("backend") == FOREGROUND else "submit"
    return why, f"without it: {shlex.join(['hpc-train', command, *typed_anew(words, off)])}"
