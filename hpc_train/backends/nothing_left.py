"""The refusal to go on with a run that is complete, with what makes it longer."""

from __future__ import annotations

from typing import Any

from hpc_train.backends.early_stops import early_stop, with_more_patience
from hpc_train.backends.kept_in_a_run import (
    changes_of_the_file,
    of_a_complete_evaluation,
    what_evaluates,
)
from hpc_train.backends.lengthen import reached_ends
from hpc_train.backends.submit_again import as_typed_here
from hpc_train.errors import HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus


def nothing_left(status: RunStatus, run: RunDir, plan: Plan) -> HpcTrainError:
    """The error of a resume that changes nothing of a complete run's length."""
    if plan.verb not in ("fit", "bench"):
        what = f"{what_evaluates(plan, status)}; it is complete"
        return HpcTrainError(what, of_a_complete_evaluation(plan))
    if plan.script is not None:
        longer = "how long it trains is the script's: submit it again"
    elif not run.config.is_file():
        longer = render_again(status)
    else:
        longer = _how_to_lengthen(run, plan)
    return HpcTrainError(
        f"{status.name} ({status.run}) is complete; there is nothing to go on with", longer
    )


def render_again(status: RunStatus) -> str:
    """What makes a rendered script's training longer."""
    return (
        "its length is the script's: hpc-train render CFG trainer.max_epochs=N makes another;"
        f" with init_from={run_word(status.run_dir)} that begins with these weights"
    )


def _how_to_lengthen(run: RunDir, plan: Plan) -> str:
    """The command for a complete run, with each end that it has reached."""
    resume = f"hpc-train resume {run_word(run.path)}"
    ends = reached_ends(run, plan)
    if not ends and (ended := early_stop(run, plan)):
        return f"{ended}; {with_more_patience(run, plan)}"
    if not ends:
        return f"to train longer: {resume} trainer.max_epochs=N (or max_steps)"
    if written := _by_the_file(run, plan, ends):
        file, ahead = written
        has = " and ".join(f"trainer.{it} {value}" for it, value in ahead.items())
        words = " ".join(f"trainer.{it}={value}" for it, value in ahead.items())
        return f"{file} has {has} by now: {resume} {words}"
    words = " ".join(f"trainer.{it}=N" for it in ends)
    above = " and ".join(f"N above {at}" for at in ends.values())
    return f"to train longer: {resume} {words}, with {above}"


def _by_the_file(
    run: RunDir, plan: Plan, ends: dict[str, Any]
) -> tuple[str, dict[str, int]] | None:
    """The config's file, and its own ends where each lies behind what is trained."""
    try:
        now = changes_of_the_file(run, plan)
    except HpcTrainError:
        return None
    if now is None:
        return None
    new = {it: now.pairs.get(f"trainer.{it}", (None, None))[1] for it in ends}
    ahead = {it: to for it, to in new.items() if isinstance(to, int) and to > ends[it]}
    if len(ahead) < len(ends):
        return None
    file = now.fresh.origins.of(f"trainer.{next(iter(ahead))}").partition(":")[0]
    return as_typed_here(file), ahead
