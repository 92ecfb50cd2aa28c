"""The means of an epoch that is gone on with by another number of ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torchmetrics import CatMetric, MaxMetric, Metric, SumMetric

from hpc_train.training.private.lightning_logged import restore_logged
from hpc_train.training.taken_over import TakenOver
from tests.ledger import compare_samples
from tests.training.ranks import Run
from tests.training.test_exactly_once import FINISHED, SAVED
from tests.training.test_trainer_options import validations

ACCUMULATE = {1: 4, 2: 2, 3: 1, 4: 1, 6: 1}  # for 12 samples a step
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "validation twice an epoch": {"trainer": {"val_check_interval": 0.5}, "samples": 96},
    "early stopping": {"early_stopping": True, "epochs": 9},
    "averaged weights": {"ema": True},
    "half of an epoch": {"trainer": {"limit_train_batches": 0.5}, "samples": 96},
}


def epochs_of(run: Run) -> dict[int, float]:
    """`loss_epoch` of each epoch on rank 0, or what a metric of torchmetrics has seen."""
    return {int(epoch): float(value) for epoch, value in map(str.split, run.epochs())}


def stopped_and_finished(path: Path, worlds: tuple[int, ...], stops: list[int], **spec: Any) -> Run:
    run = Run(path, **spec)
    for world_size, step in zip(worlds[:2], stops, strict=True):
        codes = run.run(world_size, f"stop@step={step}", accumulate=ACCUMULATE[world_size])
        assert codes == [SAVED] * world_size, run.log(run.attempt - 1, 0)
    last = worlds[2]
    assert run.run(last, accumulate=ACCUMULATE[last]) == [FINISHED] * last, run.log(2, 0)
    return run


@pytest.mark.parametrize("worlds", [(2, 1, 4), (1, 4, 2), (4, 2, 1), (2, 4, 1)])
@pytest.mark.parametrize("spec", OPTIONS.values(), ids=OPTIONS.keys())
def test_a_stop_at_the_end_of_an_epoch_leaves_its_means_to_another_number_of_ranks(
    spec: dict[str, Any], worlds: tuple[int, ...], tmp_path: Path
) -> None:
    """They were gone: who asked for them, as callbacks do, failed."""
    spec = {"plateau": False, "epochs": 3, "samples": 77, **spec}
    quiet = Run(tmp_path / "quiet", accumulate=2, **spec)
    assert quiet.run(2) == [FINISHED] * 2, quiet.log(0, 0)
    first = max(entry.step for entry in quiet.ledger if entry.epoch == 0)
    run = stopped_and_finished(tmp_path / "run", worlds, [first, first + 2], **spec)
    comparison = compare_samples(quiet.ledger, run.ledger)
    assert (comparison.problems, comparison.retaken) == ([], 0)
    assert validations(run) == validations(quiet)
    assert epochs_of(run).keys() == epochs_of(quiet).keys()


@pytest.mark.parametrize("still", ["logged", "seen"])
@pytest.mark.parametrize("worlds", [(3, 1, 2), (1, 3, 6), (2, 3, 4), (6, 4, 1)])
def test_means_are_those_of_all_samples_of_the_epoch(
    worlds: tuple[int, ...], still: str, tmp_path: Path
) -> None:
    """Not of those behind the last stop alone."""
    spec: dict[str, Any] = {
        "plateau": False,
        "epochs": 2,
        "samples": 72,
        "still": still,
        "global_batch": 12,
    }
    quiet = Run(tmp_path / "quiet", **spec)
    assert quiet.run(1, accumulate=ACCUMULATE[1]) == [FINISHED], quiet.log(0, 0)
    run = stopped_and_finished(tmp_path / "run", worlds, [2, 5], **spec)
    expected, got = epochs_of(quiet), epochs_of(run)
    assert got.keys() == expected.keys()
    for epoch, value in expected.items():
        assert got[epoch] == pytest.approx(value, rel=1e-5), epoch


def seen_by(kind: type[Metric], values: list[float]) -> dict[str, Any]:
    metric = kind()
    for value in values:
        metric.update(torch.tensor(value))
    return {"updates": metric.update_count, "states": metric.metric_state}


@pytest.mark.parametrize(
    ("kind", "fewer", "more"),
    [(SumMetric, 10.0, 6.0), (MaxMetric, 4.0, 3.0), (CatMetric, [1.0, 2.0, 3.0, 4.0], None)],
)
def test_a_metric_of_torchmetrics_is_added_up_where_its_states_can_be(
    kind: type[Metric], fewer: Any, more: Any
) -> None:
    """With more ranks the first has what one had, and an empty list is for none of them."""
    both = [seen_by(kind, [1.0, 2.0]), seen_by(kind, [3.0, 4.0])]
    metric = kind()
    assert restored(metric, both, TakenOver(())) == fewer
    alone = [seen_by(kind, [1.0, 2.0, 3.0])]
    assert restored(kind(), alone, TakenOver((), share=2, more=True)) == more
    assert restored(kind(), alone, TakenOver((), share=2, first=False, more=True)) is None


def restored(metric: Metric, found: list[dict[str, Any]], taken_over: TakenOver) -> Any:
    """What the metric tells then; None where it begins anew."""
    module = torch.nn.Module()
    module.metric = metric
    ranks = tuple({"metrics": {"metric": it}, "results": []} for it in found)
    connector = SimpleNamespace()
    saved = {"connector": {**dict.fromkeys(("first_loop_iter", "current_fx"))}}
    saved["connector"] |= {
        name: {} for name in ("_callback_metrics", "_logged_metrics", "_progress_bar_metrics")
    }
    trainer: Any = SimpleNamespace(_logger_connector=connector, lightning_module=module)
    restore_logged(trainer, saved, replace(taken_over, ranks=ranks))
    return metric.compute().tolist() if metric.update_count else None
