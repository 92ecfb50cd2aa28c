"""What was logged of the epoch at hand, which Lightning's checkpoint leaves out.

Running means of `self.log`, states of torchmetrics, and the metrics that callbacks and plateau
schedulers look at.
"""

from __future__ import annotations

from typing import Any

import torch
from torchmetrics import Metric

from hpc_train.training.private.lightning import _Metadata, _ResultMetric, _Sync, pl

_REDUCTIONS: dict[str, Any] = {
    "mean": torch.mean,
    "sum": torch.sum,
    "max": torch.max,
    "min": torch.min,
}
_META_FIELDS = (
    *("fx", "name", "prog_bar", "logger", "on_step", "on_epoch", "enable_graph"),
    *("add_dataloader_idx", "dataloader_idx", "metric_attribute"),
)
_CONNECTOR_METRICS = ("_callback_metrics", "_logged_metrics", "_progress_bar_metrics")
_CONNECTOR_PLACE = ("_first_loop_iter", "_current_fx")


def capture_logged(trainer: pl.Trainer) -> dict[str, Any]:
    """This rank's part, as plain values and tensors; tensors are copies."""
    connector = trainer._logger_connector
    return {
        "metrics": {
            name: {"updates": metric.update_count, "states": _copied(metric.metric_state)}
            for name, metric in _metrics_of(trainer.lightning_module).items()
        },
        "results": _capture_results(trainer.fit_loop.epoch_loop._results),
        "connector": {
            **{name.lstrip("_"): getattr(connector, name) for name in _CONNECTOR_PLACE},
            **{name: _copied(getattr(connector, name)) for name in _CONNECTOR_METRICS},
        },
    }


def restore_logged(trainer: pl.Trainer, saved: dict[str, Any], *, same_world: bool) -> None:
    """Put everything back.

    Args:
        same_world: Otherwise running means and metrics, which are sums over this rank's own
            samples, begin anew; the ranks' shares of the samples have changed.
    """
    connector = trainer._logger_connector
    for name in _CONNECTOR_METRICS:
        setattr(connector, name, dict(saved["connector"][name]))
    if not same_world:
        return
    for name in _CONNECTOR_PLACE:
        setattr(connector, name, saved["connector"][name.lstrip("_")])
    for name, metric in _metrics_of(trainer.lightning_module).items():
        if name in saved["metrics"]:
            _restore_metric(metric, saved["metrics"][name])
    for item in saved["results"]:
        trainer.fit_loop.epoch_loop._results[item["key"]] = _result(trainer, item)


def average_exactly() -> None:
    """Let the mean that `self.log(..., sync_dist=True)` takes over ranks be that of all samples.

    Lightning divides the number of samples by the number of ranks as an integer, and so is wrong
    where the ranks' shares differ (result.py, `_ResultMetric.compute`; its own sampler pads them).
    """
    _ResultMetric.compute = _compute  # type: ignore[method-assign]


def _compute(self: _ResultMetric) -> Any:
    if not self.is_tensor:
        return self.value.compute()
    value = self.meta.sync(self.value.clone())  # in place
    if not self.meta.is_mean_reduction:
        return value
    return value / self.meta.sync(self.cumulated_batch_size.to(value.dtype, copy=True))


def numbers_of_progress_bar(trainer: pl.Trainer) -> dict[str, float]:
    """What was last logged with `prog_bar=True`, from any thread.

    Lightning makes numbers of them after every batch. Its property of that name computes metrics
    anew, and at an epoch's end over all ranks, so it is for the training's own thread alone.
    """
    shown: dict[str, float] = dict(trainer._logger_connector._progress_bar_metrics)
    return shown


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _metrics_of(module: torch.nn.Module) -> dict[str, Metric]:
    return {name: item for name, item in module.named_modules() if isinstance(item, Metric)}


def _restore_metric(metric: Metric, saved: dict[str, Any]) -> None:
    metric._update_count = saved["updates"]
    metric._computed = None
    for key, value in saved["states"].items():
        setattr(metric, key, _on(metric.device, value))


def _on(device: torch.device, value: Any) -> Any:
    return [item.to(device) for item in value] if isinstance(value, list) else value.to(device)


def _capture_results(results: Any) -> list[dict[str, Any]]:
    captured = []
    for key, result in results.items():
        meta = result.meta
        reduction = next((name for name, fx in _REDUCTIONS.items() if meta.reduce_fx is fx), None)
        if reduction is None:  # python's own max or min: Lightning would not know it again
            continue
        captured.append(
            {
                "key": key,
                "meta": {name: getattr(meta, name) for name in _META_FIELDS},
                "reduction": reduction,
                "sync": [meta.sync._should, meta.sync.op, meta.sync.rank_zero_only],
                "is_tensor": result.is_tensor,
                "has_reset": result.has_reset,
                "updates": result._update_count,
                "value": _copied(result.value) if result.is_tensor else None,
                "samples": getattr(result, "cumulated_batch_size", None),
                "last": _last(result._forward_cache),
            }
        )
    return captured


def _last(value: Any) -> Any:
    return _copied(value) if isinstance(value, torch.Tensor) else None


def _result(trainer: pl.Trainer, item: dict[str, Any]) -> _ResultMetric:
    """One of `_capture_results`, as `self.log` would have made it."""
    device = trainer.strategy.root_device
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
    return result
