"""A metric typed behind `--best` of `checkpoints`, as `status SWEEP --best METRIC` takes it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from hpc_train.errors import HpcTrainError

_BEST = "--best"
_MODES = (":min", ":max")  # behind a metric of a sweep


def best_by_metric(context: click.Context, extra: Sequence[str]) -> str:
    """What to type for `RUN --best METRIC`; empty where something else was meant.

    Args:
        context: Of a command to which one word too many was given.
        extra: What it does not take.
    """
    values = context.params
    if context.info_name != "checkpoints" or not values.get("best") or len(extra) != 1:
        return ""
    run, metric = str(values.get("run")), extra[0]
    if _is_run(metric, values.get("runs_dir")) and not _is_run(run, values.get("runs_dir")):
        run, metric = metric, run  # typed as `--best METRIC RUN`
    if values.get("monitor"):
        return ""
    return f"{context.command_path} {shlex.quote(run)} {_with(metric)}"


def best_with_value(words: Sequence[str]) -> str:
    """The same of `--best=METRIC`, with all that was typed; empty where that was not."""
    typed = [it for it in words if it.startswith(f"{_BEST}=")]
    if words[:1] != ["checkpoints"] or not typed:
        return ""
    others = [shlex.quote(it) for it in words if it not in typed]
    return " ".join(["hpc-train", *others, _with(typed[0].partition("=")[2])])


def _with(metric: str) -> str:
    for mode in _MODES:
        metric = metric.removesuffix(mode)
    return f"{_BEST} --monitor {shlex.quote(metric)}"


def _is_run(word: str, runs_dir: Path | None) -> bool:
    from hpc_train import api  # reads the plan's modules: on the way to an error alone

    try:
        api.Run.find(word, runs_dir)
    except HpcTrainError:
        return False
    return True
