"""What a training knows in its middle beyond Lightning's own checkpoint, rank by rank.

Lightning saves rank 0's model, optimizers, schedulers, loops and callbacks. In the middle of an
epoch there is more: running means of `self.log`, states of torchmetrics, the metrics that callbacks
and plateau schedulers look at, buffers that differ between ranks, RNGs, a wish to stop early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.trainer.connectors.logger_connector.result import (
    _Metadata,
    _ResultCollection,
    _ResultMetric,
    _Sync,
)
from torchmetrics import Metric

from hpc_train.training.resume.module_state import capture_module, restore_module
from hpc_train.training.resume.rng import capture_rngs, restore_rngs

__all__ = ["capture_inside", "restore_inside"]

_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "mean": torch.mean,
    "sum": torch.sum,
    "max": torch.max,
    "min": torch.min,
}
_META_FIELDS = (
    "fx",
    "name",
    "prog_bar",
    "logger",
    "on_step",
    "on_epoch",
    "enable_graph",
    "add_dataloader_idx",
    "dataloader_idx",
    "metric_attribute",
)
_CONNECTOR_METRICS = ("_callback_metrics", "_logged_metrics", "_progress_bar_metrics")


def capture_inside(trainer: pl.Trainer) -> dict[str, Any]:
    """The state of this rank, as plain values and tensors; tensors are copies."""
    connector = trainer._logger_connector
    return {
        "rng": capture_rngs(),
        **capture_module(trainer.lightning_module),
        "metrics": _capture_metrics(trainer.lightning_module),
        "results": _capture_results(trainer.fit_loop.epoch_loop._results),
        "connector": {
            "first_loop_iter": connector._first_loop_iter,
            "current_fx": connector._current_fx,
            **{name: _cloned(getattr(connector, name)) for name in _CONNECTOR_METRICS},
        },
        "should_stop": trainer.should_stop,
    }


def restore_inside(trainer: pl.Trainer, state: dict[str, Any], *, same_world: bool) -> None:
    """Put everything back; the RNGs last.

    Args:
        same_world: Otherwise running means and metrics, which are sums over this rank's own
            samples, begin anew; the ranks' shares of the samples have changed.
    """
    trainer.should_stop = state["should_stop"]
    restore_module(trainer.lightning_module, state, same_world=same_world)
    connector = trainer._logger_connector
    for name in _CONNECTOR_METRICS:
        setattr(connector, name, dict(state["connector"][name]))
    if same_world:
        connector._first_loop_iter = state["connector"]["first_loop_iter"]
        connector._current_fx = state["connector"]["current_fx"]
        _restore_metrics(trainer.lightning_module, state["metrics"])
        _restore_results(trainer, state["results"])
    restore_rngs(state["rng"])


def _cloned(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.detach().clone() if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }


def _metrics_of(module: torch.nn.Module) -> dict[str, Metric]:
    return {name: item for name, item in module.named_modules() if isinstance(item, Metric)}


def _capture_metrics(module: torch.nn.Module) -> dict[str, Any]:
    captured = {}
    for name, metric in _metrics_of(module).items():
        states = {key: getattr(metric, key) for key in metric._defaults}
        captured[name] = {
            "updates": metric._update_count,
            "states": {
                key: [item.detach().clone() for item in value]
                if isinstance(value, list)
                else value.detach().clone()
                for key, value in states.items()
                if isinstance(value, (list, torch.Tensor))
            },
        }
    return captured


def _restore_metrics(module: torch.nn.Module, saved: dict[str, Any]) -> None:
    for name, metric in _metrics_of(module).items():
        if name not in saved:
            continue
        metric._update_count = saved[name]["updates"]
        metric._computed = None
        for key, value in saved[name]["states"].items():
            if isinstance(value, list):
                setattr(metric, key, [item.to(metric.device) for item in value])
            else:
                setattr(metric, key, value.to(metric.device))


def _capture_results(results: _ResultCollection) -> list[dict[str, Any]]:
    captured = []
    for key, result in results.items():
        reduction = next(
            (name for name, fx in _REDUCTIONS.items() if result.meta.reduce_fx is fx), None
        )
        if reduction is None:  # python's own max or min: Lightning would not know it again
            continue
        sync = result.meta.sync
        captured.append(
            {
                "key": key,
                "meta": {name: getattr(result.meta, name) for name in _META_FIELDS},
                "reduction": reduction,
                "sync": [sync._should, sync.op, sync.rank_zero_only],
                "is_tensor": result.is_tensor,
                "has_reset": result.has_reset,
                "updates": result._update_count,
                "value": result.value.detach().clone() if result.is_tensor else None,
                "samples": getattr(result, "cumulated_batch_size", None),
                "last": _detached(result._forward_cache),
            }
        )
    return captured


def _detached(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else None


def _restore_results(trainer: pl.Trainer, saved: list[dict[str, Any]]) -> None:
    results = trainer.fit_loop.epoch_loop._results
    device = trainer.strategy.root_device
    for item in saved:
        meta = _Metadata(reduce_fx=_REDUCTIONS[item["reduction"]], **item["meta"])
        should, operation, rank_zero_only = item["sync"]
        meta.sync = _Sync(_should=should, fn=trainer.strategy.reduce, rank_zero_only=rank_zero_only)
        meta.sync.op = operation
        result = _ResultMetric(meta, item["is_tensor"])
        if item["is_tensor"]:
            result.value = item["value"].to(device)
            if item["samples"] is not None:
                result.cumulated_batch_size = torch.as_tensor(item["samples"]).to(device)
        else:
            result.value = trainer.lightning_module.get_submodule(str(meta.metric_attribute))
        result.has_reset = item["has_reset"]
        result._update_count = item["updates"]
        result._forward_cache = item["last"]
        results[item["key"]] = result
