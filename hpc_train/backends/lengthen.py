"""A run that is made longer: what may change, what it finds of itself, what must not be lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

from hpc_train.codec import read_object
from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Plan
from hpc_train.runs.checkpoints import KEEP, MANIFEST, checkpoint_steps, newest_step
from hpc_train.runs.layout import RunDir

# Trainer arguments that say when a training ends, and nothing else of it.
LENGTH_KEYS = ("max_epochs", "max_steps", "max_time", "min_epochs", "min_steps")
_REPEATS = ("CosineAnnealingLR",)  # whose rate rises again behind its length
_OWN = ("LambdaLR", "MultiplicativeLR")


def length_changes(before: Plan, plan: Plan) -> dict[str, tuple[Any, Any]]:
    """Those of LENGTH_KEYS that differ, with the values before and now."""
    old, new = before.training.trainer, plan.training.trainer
    return {
        key: (old.get(key), new.get(key)) for key in LENGTH_KEYS if old.get(key) != new.get(key)
    }


def is_of_length(override: str) -> bool:
    """Whether `key=value` is of when the training ends."""
    section, _, name = override.partition("=")[0].strip().rpartition(".")
    return section == "trainer" and name in LENGTH_KEYS


def reached_ends(run: RunDir, plan: Plan) -> dict[str, int]:
    """Each end of a complete run's plan that it has reached, and where."""
    reached = read_object(run.final_metrics)
    ends = {"max_epochs": reached.get("epoch"), "max_steps": reached.get("step")}
    given = {it: plan.training.trainer.get(it) for it in ends}
    return {it: at for it, at in ends.items() if at and given[it] == at}


def check_longer(run: RunDir, plan: Plan) -> None:
    """Refuse an end that a completed run has reached already.

    Raises:
        ConfigError: with where it stands.
    """
    reached = read_object(run.final_metrics)
    done = {"max_epochs": reached.get("epoch"), "max_steps": reached.get("step")}
    ends = {name: plan.training.trainer.get(name) for name in done}
    ahead = [it for it, at in done.items() if at is not None and _is_end(ends[it], above=at)]
    for name, at in done.items():
        if at is None or name in ahead or not _is_end(ends[name]):
            continue
        hint = f"write trainer.{name}={2 * at}, or another larger number"
        if ahead:
            beside = f"trainer.{ahead[0]}={ends[ahead[0]]}"
            hint = f"write trainer.{name}=-1 beside {beside}; or {hint.removeprefix('write ')}"
        raise ConfigError(
            f"the run is complete, at {name.removeprefix('max_')[:-1]} {at}, and"
            f" trainer.{name} is {ends[name]}",
            hint,
        )


def _is_end(value: Any, above: int = -1) -> bool:
    return value not in (None, -1) and bool(value > above)


def refuse_end_behind(run: RunDir, plan: Plan) -> None:
    """Refuse an end that its newest checkpoint lies behind: Lightning would not begin with it.

    An end that it has just reached is none: the training ends there.

    Raises:
        ConfigError: with where it stands.
    """
    whole = checkpoint_steps(run)
    reached = read_object(whole[max(whole)] / MANIFEST) if whole else {}
    for unit in ("epoch", "step"):
        at, end = reached.get(unit), plan.training.trainer.get(f"max_{unit}s")
        if at is not None and end not in (None, -1) and end < at:
            raise ConfigError(
                f"trainer.max_{unit}s is {end}, and {at} {unit}s are done",
                f"write trainer.max_{unit}s=N, with N above {at}",
            )


def schedule_notes(run: RunDir, plan: Plan) -> Iterator[str]:
    """A line for each schedule of the learning rate that was built for the length before.

    Raises:
        ConfigError: for one that ends with an error behind its length.
    """
    for schedule in _read(run.schedules) or []:
        name, length, unit = schedule["name"], schedule["length"], schedule["interval"]
        built = f"{name} was built for {length} {unit}s"
        if name in _OWN:
            yield (
                f"the rates of {name} are your function's: if it knows the training's length, they"
                " change from here"
            )
        elif name == "OneCycleLR" and length is not None and _end(run, plan, unit) > length:
            raise ConfigError(
                f"{built} and cannot go on behind them",
                f"start a new run from these weights: init_from={run.path}",
            )
        elif length is not None:
            then = "its rate rises again" if name in _REPEATS else "it has no more to say"
            yield f"{built} and stays as it is: behind them {then}"


def keep_finished(run: RunDir) -> None:
    """Keep what the finished run gave: its last checkpoint for good, its metrics under a name."""
    step = newest_step(run)
    if step:
        (checkpoint_steps(run)[step] / KEEP).touch()
    if run.final_metrics.exists():
        shutil.copy(run.final_metrics, run.metrics / f"final-at-{step}.json")
    run.done.unlink(missing_ok=True)


def _end(run: RunDir, plan: Plan, unit: str) -> float:
    """Steps or epochs of the whole training, as far as can be told; 0 where it cannot."""
    trainer, final = plan.training.trainer, read_object(run.final_metrics)
    epochs, steps = trainer.get("max_epochs") or -1, trainer.get("max_steps") or -1
    if unit == "epoch":
        return float(epochs)
    if final.get("epoch") and epochs > 0:
        of_epochs = epochs * float(final["step"]) / float(final["epoch"])
        return min(of_epochs, steps) if steps > 0 else of_epochs
    return float(steps)


def _read(path: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
