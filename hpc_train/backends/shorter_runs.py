"""A run that trains the same as a new one, and is over sooner: it could be made longer."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hpc_train.backends.lengthen import LENGTH_KEYS, length_changes, schedule_notes
from hpc_train.backends.observe import observe
from hpc_train.codec import read_object
from hpc_train.errors import ConfigError
from hpc_train.plan.from_config import result_hash
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.layout import RunDir

_ENDS = ("max_epochs", "max_steps")


@dataclass(frozen=True)
class ShorterRun:
    """A run that has ended and left a checkpoint, of a config with a smaller end.

    Attributes:
        run: Where it is.
        reached: `finished at epoch 2`, or `is cancelled at step 40`.
        before: Its ends that are others now, by their names.
        now: The same of the new run.
    """

    run: RunDir
    reached: str
    before: dict[str, int]
    now: dict[str, int]


def shorter_run(others: Iterable[tuple[RunDir, Plan]], plan: Plan) -> ShorterRun | None:
    """The first of these that goes on to the ends of the plan, as it would from its beginning.

    Args:
        others: Runs with their plans, the newest first.
        plan: Of the new run.
    """
    own = _but_for_its_length(plan)
    for run, other in others:
        if other.verb == plan.verb == "fit" and _but_for_its_length(other) == own:
            return _made_longer(run, other, plan)
    return None


def _made_longer(run: RunDir, other: Plan, plan: Plan) -> ShorterRun | None:
    changes = length_changes(other, plan)
    if not changes or not all(_is_later(key, *changes[key]) for key in changes):
        return None
    step = newest_step(run)
    reached = _reached(run, step) if step else ""
    if not reached or not _is_taken(run, plan):
        return None
    before, now = ({key: pair[at] for key, pair in changes.items()} for at in (0, 1))
    return ShorterRun(run, reached, before, now)


def _is_later(key: str, old: Any, new: Any) -> bool:
    are_counts = all(type(it) is int and it > 0 for it in (old, new))
    return key in _ENDS and are_counts and bool(new > old)


def _reached(run: RunDir, step: int) -> str:
    """Where it is over; empty where it is not. Slurm is asked only where it is not complete."""
    if run.done.exists():
        epoch = read_object(run.final_metrics).get("epoch")
        return f"finished at epoch {epoch}" if epoch else f"finished at step {step}"
    (status,) = observe([run], time.time())
    is_over = status.state.ended and status.state is not RunState.COMPLETED
    return f"is {status.state.value} at step {step}" if is_over else ""


def _is_taken(run: RunDir, plan: Plan) -> bool:
    """Whether no schedule of its learning rate ends with an error behind its length."""
    try:
        list(schedule_notes(run, plan))
    except ConfigError:
        return False
    return True


def _but_for_its_length(plan: Plan) -> str:
    trainer = {key: it for key, it in plan.training.trainer.items() if key not in LENGTH_KEYS}
    training = dataclasses.replace(plan.training, trainer=trainer)
    return result_hash(
        training,
        plan.batch.global_batch_size,
        script=plan.script,
        weights=plan.weights,
        left_out=plan.weights_left_out,
    )
