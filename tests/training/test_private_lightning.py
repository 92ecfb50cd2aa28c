"""What hpc-train takes for granted of names that Lightning and torchmetrics keep to themselves.

Runs first, in seconds: an upgrade that breaks one of them is told at once. Each test says which
names it holds, and what breaks for the user without them; docs/versions.md has what passes.
"""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import CatMetric, MeanMetric, MetricCollection

from hpc_train.training.private import lightning_trainer as inner
from hpc_train.training.private.lightning import (
    Strategy,
    StrategyRegistry,
    _Metadata,
    _ResultMetric,
    _Sync,
    pl,
)
from hpc_train.training.private.lightning_logged import (
    average_exactly,
    capture_logged,
    numbers_of_progress_bar,
    restore_logged,
)
from hpc_train.training.rank_failure import before_teardown
from hpc_train.training.taken_over import TakenOver
from tests.training.told_steps import Hooks, Net, StopError

pytestmark = pytest.mark.filterwarnings("ignore")  # an old library warns; that breaks nothing


def test_the_loops_say_when_a_step_is_over_and_where_it_stands() -> None:
    # _FitLoop and _TrainingEpochLoop: on_advance_start, on_advance_end, on_run_start, setup_data,
    # _should_check_val_fx, _should_accumulate, _num_ready_batches_reached, epoch_progress,
    # batch_progress, val_loop.max_batches; loop._data_source.dataloader().
    # Without them no stop or save falls on a step's end: steps are lost or taken halves.
    hooks = Hooks(accumulate_grad_batches=2, num_sanity_val_steps=0)
    hooks.fit()
    epochs = [["begins", 1, 2, ("validation of", [3]), 3], [4, 5, ("validation of", [3]), 6]]
    assert hooks.said == [("epoch", 0), *epochs[0], ("epoch", 1), *epochs[1]]
    assert hooks.places == [
        (step, (step - 1) // 3, 2 * ((step - 1) % 3 + 1), False, step % 3 == 0)
        for step in range(1, 7)
    ]


@pytest.mark.parametrize("stop_at", [1, 3, 4, 6, 9])
def test_a_fit_goes_on_behind_any_step_as_if_nothing_had_happened(
    stop_at: int, tmp_path: Path
) -> None:
    # trainer._checkpoint_connector.dump_checkpoint, loop.restarting and fit_loop._restarting,
    # fit_loop.done; trainer._logger_connector's metrics, epoch_loop._results, _ResultMetric,
    # _Metadata, _Sync. Without them a resumed run repeats steps or hooks, or its means begin anew.
    halves: Any = {"val_check_interval": 0.5}
    whole = Hooks(**halves)
    net = whole.fit()
    first = Hooks(stop_at, **halves)
    with pytest.raises(StopError):
        first.fit()
    torch.save(first.saved["checkpoint"], tmp_path / "c.ckpt")
    second = Hooks(saved=first.saved, **halves)
    rest = second.fit(tmp_path / "c.ckpt")
    assert first.net.seen + rest.seen == net.seen
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), rest.parameters(), strict=True))
    means = {name: value.item() for name, value in whole.trainer.callback_metrics.items()}
    assert {name: it.item() for name, it in second.trainer.callback_metrics.items()} == means
    assert means.keys() == {"loss", "loss_step", "loss_epoch", "top", "mean", "val"}
    assert second.trainer.progress_bar_metrics == whole.trainer.progress_bar_metrics


def test_a_checkpoint_counts_micro_batches_where_a_new_shape_recounts_them() -> None:
    # checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]: "total", "current".
    # Without it a run on another number of GPUs trains an epoch too long or too short.
    hooks = Hooks(2, accumulate_grad_batches=2)
    with pytest.raises(StopError):
        hooks.fit()
    checkpoint = hooks.saved["checkpoint"]
    inner.rescale_batches(checkpoint, old=2, new=1)
    progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    counted = {"ready": 2, "started": 2, "processed": 2, "completed": 2}
    assert progress["total"] == progress["current"] == counted
    assert {"state_dict", "optimizer_states", "lr_schedulers", "callbacks"} <= checkpoint.keys()


def test_a_fit_that_is_over_is_opened_again_at_its_next_epoch_or_in_its_last_one() -> None:
    # checkpoint["loops"]["fit_loop"]: "epoch_progress", "epoch_loop.batch_progress",
    # "epoch_loop.val_loop.batch_progress". Without them a longer training leaves out an epoch.
    hooks = Hooks()
    hooks.fit()
    whole, middle = inner.dump_checkpoint(hooks.trainer), inner.dump_checkpoint(hooks.trainer)
    inner.reopen(whole, whole=True)
    loops = whole["loops"]["fit_loop"]
    assert set(loops["epoch_loop.batch_progress"]["current"].values()) == {0}
    assert set(loops["epoch_loop.val_loop.batch_progress"]["total"].values()) == {0}
    assert loops["epoch_loop.batch_progress"]["is_last_batch"] is False
    inner.reopen(middle, whole=False)
    epochs = {"ready": 2, "started": 2, "processed": 1, "completed": 1}
    assert middle["loops"]["fit_loop"]["epoch_progress"]["current"] == epochs
    assert inner.schedules(hooks.trainer) == []


class Predicts(pl.Callback):
    def on_predict_start(self, trainer: Any, *_: Any) -> None:
        self.batches = inner.evaluation_batches(trainer)


def test_a_prediction_takes_other_loaders_than_the_users() -> None:
    # trainer.predict_loop._data_source, max_batches.
    # Without them Lightning builds the loader anew, and each rank predicts everything.
    class Net(pl.LightningModule):
        def predict_step(self, batch: Any, *_: Any) -> Any:
            return batch

    predicts = Predicts()
    hooks = Hooks(callbacks=[predicts])
    changed: Any = {"train": hooks.train, "evaluation": hooks.evaluation}
    inner.change_loaders(hooks.trainer, **changed, prediction=lambda _: [[5.0, 6.0]])
    assert hooks.trainer.predict(Net(), dataloaders=DataLoader([0.0])) == [5.0, 6.0]
    assert predicts.batches == [2]


def test_a_mean_over_ranks_with_uneven_shares_is_that_of_all_samples() -> None:
    # _ResultMetric.compute, cumulated_batch_size, meta.sync, meta.is_mean_reduction (Lightning 2.6
    # divides the sum of the shares by the ranks as integers). Without it a metric that is logged
    # with sync_dist is wrong where the ranks evaluate different numbers of samples.
    average_exactly()
    of_the_other = [torch.tensor(8.0), torch.tensor(4.0)]  # 4 samples of 2.0 beside 3 of 1.0

    def mean_over_ranks(tensor: Any, *_: Any, **__: Any) -> Any:
        return tensor.copy_((tensor + of_the_other.pop(0)) / 2)

    meta = _Metadata("validation_step", "x", reduce_fx=torch.mean)
    meta.sync = _Sync(_should=True, fn=mean_over_ranks)
    metric = _ResultMetric(meta, True)
    metric.update(torch.tensor(1.0), 3)
    assert metric.compute().item() == pytest.approx(11 / 7)


class Signals(pl.Callback):
    def on_train_start(self, *_: Any) -> None:
        self.during = signal.getsignal(signal.SIGTERM)


def test_lightning_registers_no_signal_handler_and_broadcasts_none() -> None:
    # trainer._signal_connector.register_signal_handlers,
    # _TrainingEpochLoop._broadcast_sigterm_tensor (since 2.6).
    # Without them a SIGTERM in a step can hang all ranks, and each step waits for a broadcast.
    before = signal.getsignal(signal.SIGTERM)
    ours, plain = Signals(), Signals()
    Hooks(callbacks=[ours], max_epochs=1).fit()
    assert ours.during is before
    hooks = Hooks(callbacks=[plain], max_epochs=1)
    hooks.trainer.fit(Net(), hooks.train([0.0])[0], hooks.evaluation([0])[0])
    assert plain.during is not before, "Lightning's own is what is left out"
    loop = type(Hooks().trainer.fit_loop.epoch_loop)
    collectives = {"broadcast", "all_reduce", "barrier", "received_sigterm"}
    assert not collectives & set(loop.advance.__code__.co_names)


def test_strategies_say_whether_they_save_in_shards() -> None:
    # FSDPStrategy._state_dict_type, ModelParallelStrategy._save_distributed_checkpoint.
    # Without them the weights of a sharded model are saved in part, or gathered in one rank.
    made = pl.strategies
    assert not inner.saves_shards(made.DDPStrategy())
    assert not inner.saves_shards(made.SingleDeviceStrategy())
    assert inner.saves_shards(made.FSDPStrategy(state_dict_type="sharded"))
    assert not inner.saves_shards(made.FSDPStrategy(state_dict_type="full"))
    assert inner.saves_shards(made.ModelParallelStrategy(1, 1))
    assert not inner.saves_shards(
        made.ModelParallelStrategy(1, 1, save_distributed_checkpoint=False)
    )


def test_a_registered_strategy_has_a_class_and_its_arguments() -> None:
    # StrategyRegistry[name]["strategy"], ["init_params"]: `strategy: {name: ddp, ...}` in a config.
    entry = StrategyRegistry["ddp_find_unused_parameters_true"]
    assert issubclass(entry["strategy"], Strategy)
    assert entry["init_params"]["find_unused_parameters"] is True


def test_lightnings_hints_come_from_the_logger_that_is_filtered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The logger PACKAGE.utilities.rank_zero: without it each log begins with "GPU available ...".
    with caplog.at_level(logging.INFO, logger=inner.LOGGER_OF_HINTS):
        pl.Trainer(accelerator="cpu", devices=1, logger=False, enable_checkpointing=False)
    assert {name for name, _, text in caplog.record_tuples if text.startswith("GPU avail")} == {
        inner.LOGGER_OF_HINTS
    }


@pytest.mark.parametrize("last", ["on_exception", "teardown_of_loops", "teardown_of_strategy"])
def test_what_fails_after_a_fit_has_failed_is_seen_to_be_its_tear_down(
    monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    # trainer.call._interrupt, Trainer._teardown. Without them a tear-down's error, such as "Please
    # call `iter(combined_loader)` first.", hides the one that began it.
    def fail(*_: Any) -> None:
        raise RuntimeError("of the tear-down")

    class Failing(Net):
        def training_step(self, batch: Any, index: int) -> Any:
            raise KeyError("of the training")

    off = {"logger": False, "enable_checkpointing": False, "limit_val_batches": 0}
    trainer = pl.Trainer(accelerator="cpu", devices=1, **off)
    if last == "on_exception":
        trainer.callbacks.append(type("Told", (pl.Callback,), {"on_exception": fail})())
    elif last == "teardown_of_loops":
        monkeypatch.setattr(type(trainer.fit_loop), "teardown", fail)
    else:
        monkeypatch.setattr(type(trainer.strategy), "teardown", fail)
    with pytest.raises(RuntimeError, match="of the tear-down") as caught:
        trainer.fit(Failing(), DataLoader(TensorDataset(torch.ones(3, 1))))
    assert isinstance(before_teardown(caught.value), KeyError)


# -- torchmetrics -----------------------------------------------------------------------------


def test_a_metric_goes_on_with_the_state_of_another() -> None:
    # Metric._update_count, Metric._computed; metric_state and update_count are public.
    # Without them a metric of an interrupted epoch is that of its second part alone.
    def trainer(*values: float) -> Any:
        net = pl.LightningModule()
        net.metrics = MetricCollection({"mean": MeanMetric(), "cat": CatMetric()})
        net.metrics.update(torch.tensor(values))
        names = ("_callback_metrics", "_logged_metrics", "_progress_bar_metrics")
        connector: dict[str, Any] = {name: {} for name in names}
        place = SimpleNamespace(_first_loop_iter=None, _current_fx=None, **connector)
        loop = SimpleNamespace(epoch_loop=SimpleNamespace(_results={}))
        return SimpleNamespace(lightning_module=net, _logger_connector=place, fit_loop=loop)

    first, second = trainer(1.0, 2.0), trainer(7.0)
    assert second.lightning_module.metrics["mean"].compute() == 7
    saved = capture_logged(first)
    restore_logged(second, saved, TakenOver((saved,)))
    for one in (first, second):
        one.lightning_module.metrics.update(torch.tensor([6.0]))
        assert one.lightning_module.metrics["mean"].compute() == 3
        assert one.lightning_module.metrics["cat"].compute().tolist() == [1, 2, 6]
        assert one.lightning_module.metrics["mean"].update_count == 2


def test_what_the_progress_bar_shows_is_there_as_numbers_after_every_batch() -> None:
    # trainer._logger_connector._progress_bar_metrics, read by the heartbeat's thread. Without it
    # `status` has no loss; were these tensors, reading them would wait for the GPU.
    class Watched(Net):
        def training_step(self, batch: Any, index: int) -> Any:
            loss = super().training_step(batch, index)
            self.log("shown", loss.detach(), prog_bar=True)
            return loss

    seen: list[dict[str, float]] = []

    class Reads(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            seen.append(numbers_of_progress_bar(trainer))

    batches = DataLoader(TensorDataset(torch.ones(6, 1)), batch_size=2)
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[Reads()],
        limit_val_batches=0,
    )  # fmt: skip
    trainer.fit(Watched(), batches)
    first, *later = seen  # a callback is called before, so it sees the batch before
    assert first == {}
    assert [{name: type(it) for name, it in told.items()} for told in later] == [
        {"shown": float}
    ] * 2


def test_logged_several_reads_the_results_of_the_loops_and_names_of_two_functions() -> None:
    """Without them a logged metric of several elements is told without its name and its line."""
    from pytorch_lightning.loops.evaluation_loop import _EvaluationLoop
    from pytorch_lightning.trainer.connectors.logger_connector import logger_connector, result

    assert {"result_metric", "value"} <= {*result._ResultCollection.metrics.__code__.co_varnames}
    assert "metrics" in logger_connector._LoggerConnector.log_metrics.__code__.co_varnames
    assert "_results" in _EvaluationLoop.__init__.__code__.co_names
    assert {"name", "fx", "metric_attribute"} <= {*result._Metadata.__dataclass_fields__}
