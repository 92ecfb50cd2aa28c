"""What was logged of the epoch at hand, which Lightning's checkpoint leaves out.

Running means of `self.log`, states of torchmetrics, and the metrics that callbacks and plateau
schedulers look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat, dim_zero_max, dim_zero_min, dim_zero_sum

from hpc_train.training.private.lightning import _Metadata, _ResultMetric, _Sync, pl
from hpc_train.training.taken_over import TakenOver

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


def restore_logged(trainer: pl.Trainer, saved: dict[str, Any], taken_over: TakenOver) -> None:
    """Put everything back.

    A metric of torchmetrics whose states cannot be added up (`_add_up`) begins anew where the
    number of ranks is another.

    Args:
        saved: Of `capture_logged` on this rank, or on rank 0 where there was no such rank.
    """
    connector = trainer._logger_connector
    for name in _CONNECTOR_METRICS:
        setattr(connector, name, dict(saved["connector"][name]))
    for name in _CONNECTOR_PLACE:
        setattr(connector, name, saved["connector"][name.lstrip("_")])
    for name, metric in _metrics_of(trainer.lightning_module).items():
        found = [it["metrics"][name] for it in taken_over.ranks if name in it["metrics"]]
        if found and (together := _add_up(metric, found, taken_over)):
            _restore_metric(metric, together)
    for item in _added_results(taken_over):
        result = _result(trainer, item, _Metadata if taken_over.unchanged else _LaterSynced)
        trainer.fit_loop.epoch_loop._results[item["key"]] = result


def _add_up(
    metric: Metric, found: Sequence[dict[str, Any]], taken_over: TakenOver
) -> dict[str, Any] | None:
    """States of one metric on several ranks, as if one rank had seen all; None for none.

    Sums, maxima and minima are, and lists where each rank has one: an empty one says nothing of
    its type to the others as they gather.
    """
    if taken_over.unchanged:
        return found[0]
    kinds: dict[str, Any] = metric._reductions
    lists = [it for it, value in metric._defaults.items() if isinstance(value, list)]
    may_be_added = all(
        kinds[it] is dim_zero_cat and not taken_over.more
        if it in lists
        else kinds[it] in (dim_zero_sum, dim_zero_max, dim_zero_min)
        for it in kinds
    )
    if not may_be_added or not taken_over.first:
        return None
    states: dict[str, Any] = {}
    for name, reduction in kinds.items():
        values = [it["states"][name] for it in found]
        if name in lists:
            states[name] = [item for value in values for item in value]
        else:
            states[name] = reduction(torch.stack(values))
    return {"updates": sum(it["updates"] for it in found), "states": states}


def _added_results(taken_over: TakenOver) -> list[dict[str, Any]]:
    """Of `self.log`, one item for each key that any of the ranks has logged."""
    by_key: dict[str, list[dict[str, Any]]] = {}
    for item in (it for rank in taken_over.ranks for it in rank["results"]):
        by_key.setdefault(item["key"], []).append(item)
    return [_added(items, taken_over.share) for items in by_key.values()]


def _added(items: Sequence[dict[str, Any]], share: int) -> dict[str, Any]:
    item = dict(items[0])
    is_running = item["is_tensor"] and item["meta"]["on_epoch"]
    if not is_running or (len(items) == 1 and share == 1):
        return item
    values = torch.stack([it["value"] for it in items])
    if item["reduction"] in ("max", "min"):
        item["value"] = getattr(values, f"a{item['reduction']}")(0)
    else:
        item["value"] = values.sum(0) / share
    if item["samples"] is not None:
        item["samples"] = sum(torch.as_tensor(it["samples"]) for it in items) / share
    item["updates"] = max(it["updates"] for it in items)
    return item


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


class _LaterSynced(_Metadata):
    """Learns from the next `self.log` whether the ranks share it: one rank alone does not say.

    Lightning compares the two, and refuses a call whose `sync_dist` was another.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Metadata):
            return NotImplemented
        fields = (*_META_FIELDS, "reduce_fx")
        same = all(getattr(self, name) == getattr(other, name) for name in fields)
        if same:
            self.sync = other.sync
        return same


def _result(trainer: pl.Trainer, item: dict[str, Any], kind: type[_Metadata]) -> _ResultMetric:
    """One of `_capture_results`, as `self.log` would have made it."""
    device = trainer.strategy.root_device
    meta = kind(reduce_fx=_REDUCTIONS[item["reduction"]], **item["meta"])
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
