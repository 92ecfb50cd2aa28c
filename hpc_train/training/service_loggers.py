"""W&B's and MLflow's loggers: all attempts are one run there, and an outage ends no training."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import ObjectSpec
from hpc_train.runs.atomic import write_text
from hpc_train.training.build import build
from hpc_train.training.private.lightning import rank_zero_only
from hpc_train.training.private.versions import LIGHTNING_PACKAGES
from hpc_train.training.service_outages import (
    be_brief,
    is_mlflow_outage,
    is_wandb_outage,
    why_of,
)

_OWN_CLASS = "hpc_train.training.private.mlflow_logger.OutageTolerantMlflow"
_LIGHTNINGS_MLFLOW = {
    f"{package}.loggers{module}.MLFlowLogger"
    for package in LIGHTNING_PACKAGES
    for module in ("", ".mlflow")
}


def wandb_logger(
    spec: ObjectSpec,
    *,
    key: str,
    defaults: Mapping[str, Any],
    run_id: str,
    goes_on: bool,
    note: Callable[[str], None],
) -> Any:
    """One W&B run for all attempts (docs.wandb.ai/guides/runs/resuming).

    Args:
        spec: The class and its arguments.
        key: The config key, for errors.
        defaults: Arguments that the spec does not set.
        run_id: The run's id here, and there.
        goes_on: The run has taken steps: where W&B is away now, it logs into files.
        note: Says a line in the log and in the run's history.

    Raises:
        ConfigError: W&B is not reached in a run's first attempt.
    """
    arguments = {"id": run_id, "resume": "allow", **spec.init_args}
    logger = build(ObjectSpec(spec.class_path, arguments), key=key, defaults=defaults)
    if not _is_rank_zero():
        return logger
    try:
        _ = logger.experiment
    except Exception as error:
        if not is_wandb_outage(error):
            raise
        if not goes_on:
            raise ConfigError(
                f"{key}: W&B is not reached: {why_of(error)}",
                "does this node reach it (curl -I https://api.wandb.ai), or only by the"
                " https_proxy of the site? env.variables.WANDB_MODE=offline writes into files,"
                " for `wandb sync` later",
            ) from error
        import_module("wandb").teardown()  # its service process holds the id of what failed
        arguments["offline"] = True
        logger = build(ObjectSpec(spec.class_path, arguments), key=key, defaults=defaults)
        note(
            f"W&B is not reached ({why_of(error)}): this attempt logs into files;"
            f" later: wandb sync {defaults['save_dir']}/wandb/offline-run-*"
        )
    return logger


def mlflow_logger(
    spec: ObjectSpec,
    *,
    key: str,
    defaults: Mapping[str, Any],
    kept: Path,
    note: Callable[[str], None],
) -> Any:
    """One MLflow run for all attempts.

    Args:
        spec: The class and its arguments; a class of the user's own is taken as it is.
        key: The config key, for errors.
        defaults: Arguments that the spec does not set.
        kept: The file with the ids that the server gave the run and its experiment, a line each.
        note: Says a line in the log and in the run's history.

    Raises:
        ConfigError: the server is not reached in a run's first attempt.
    """
    be_brief(os.environ)
    is_lightnings = spec.class_path in _LIGHTNINGS_MLFLOW
    ids = kept.read_text(encoding="utf-8").split() if kept.exists() else []
    arguments = {**({"run_id": ids[0]} if ids else {}), **spec.init_args}
    class_path = _OWN_CLASS if is_lightnings else spec.class_path
    logger = build(ObjectSpec(class_path, arguments), key=key, defaults=defaults)
    if not _is_rank_zero():
        return logger
    if is_lightnings and ids[1:] and "run_id" not in spec.init_args:
        logger.go_on_as(*ids)
    else:
        where = spec.init_args.get("tracking_uri") or os.environ.get("MLFLOW_TRACKING_URI", "")
        _keep_ids(logger, kept, key, where)
    if is_lightnings:
        logger.be_tolerant(note)
    return logger


def _keep_ids(logger: Any, kept: Path, key: str, where: str) -> None:
    """Write down what the server calls this run: the next attempt goes on in it."""
    try:
        run_id = logger.run_id
    except Exception as error:
        if not is_mlflow_outage(error):
            raise
        raise ConfigError(
            f"{key}: MLflow's server {where} does not answer: {why_of(error)}",
            f"is it up, and reached from this node (curl -I {where})? tracking_uri of its"
            " init_args or MLFLOW_TRACKING_URI names it; without it:"
            " loggers: [csv, tensorboard]",
        ) from error
    if run_id:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_text(kept, f"{run_id}\n{logger.experiment_id or ''}\n")


def _is_rank_zero() -> bool:
    return getattr(rank_zero_only, "rank", 0) == 0
