"""A batch that one rank of several left out by returning None from training_step."""

from __future__ import annotations

import traceback

from hpc_train.config.fit.skipped_batches import WHY, blank_returns
from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.users_method import OWNERS, lines_of, own_method, parsed

_SKIPPED = "Skipping the `training_step` by returning None in distributed training"


def skipped_batch(error: BaseException) -> PlacedFix:
    """Where it returned None; nothing of a step that never gives a loss, and of another error."""
    if not isinstance(error, RuntimeError) or _SKIPPED not in str(error):
        return PlacedFix()
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    owners = (frame.f_locals.get(name) for frame in frames for name in OWNERS)
    for owner in owners:
        method = own_method(owner, "training_step")
        code = getattr(method, "__code__", None)
        lines, first = lines_of(method)
        node = parsed(lines)
        if code is None or node is None:
            continue
        for line, hint in blank_returns(node)[:1]:
            where = f"{code.co_filename}:{first + line - 1}"
            return PlacedFix(
                where, f"{shown_file(code.co_filename)}:{first + line - 1} {WHY}: {hint}"
            )
    return PlacedFix()
