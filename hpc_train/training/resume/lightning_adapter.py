"""Ties Lightning's Trainer to the controller: its data, its steps, its evaluations, its state."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from torch.utils.data import DataLoader
from typing_extensions import override

from hpc_train.errors import ConfigError
from hpc_train.runs.checkpoints import fit_checkpoints
from hpc_train.training.fit_notes.cut_steps import note_cut_steps
from hpc_train.training.fit_notes.data_notes import tell_of_data
from hpc_train.training.fit_notes.evaluation_notes import tell_of_evaluation
from hpc_train.training.fit_notes.no_batches import check_batches
from hpc_train.training.fit_notes.short_schedule import check_schedules, keep_schedules
from hpc_train.training.fit_notes.unlogged_monitors import note_unlogged
from hpc_train.training.loggers import newest_numbers, steps_in_all
from hpc_train.training.model_files import ModelFiles, check_folders
from hpc_train.training.private import lightning_trainer as inner
from hpc_train.training.private import script_places
from hpc_train.training.private.lightning import TorchCheckpointIO, TrainerFn, pl
from hpc_train.training.private.lightning_logged import (
    average_exactly,
    capture_logged,
    restore_logged,
)
from hpc_train.training.private.lightning_loops import replace_loops
from hpc_train.training.resume.checkpoint_authors import author_in_trainer
from hpc_train.training.resume.loss_watch import LossWatch
from hpc_train.training.resume.module_state import capture_module, restore_module
from hpc_train.training.resume.rank_checkpoint import RankCheckpoint, load_tensors
from hpc_train.training.resume.resume_state import ResumeState
from hpc_train.training.resume.rng import capture_rngs, kept_rngs, restore_rngs
from hpc_train.training.resume.sampling import PlainLoader, indices_of
from hpc_train.training.resume.saving import Snapshot, say_loudly
from hpc_train.training.scaled_lr import scale_rates

NOT_DEALT = (
    "evaluation loader {number} cannot be dealt out (it is iterable, has a sampler of its own, or "
    "fewer samples than ranks): each of the {ranks} ranks evaluates all that it gives"
)


class LightningAdapter(pl.Callback):
    """The hooks of one Trainer; made before its fit, used once."""

    def __init__(self, state: ResumeState) -> None:
        self.state = state
        self.controller = state.controller
        self.predicted: list[list[list[int]] | None] = []  # batches of samples, by loader
        self._loaded = state.start
        self._evaluated = 0
        self._losses = LossWatch(self.controller.ask_to_save, state.rank)
        self._validated = self._epoch_ended = self._monitors_judged = False

    def attach(self, trainer: pl.Trainer) -> None:
        """Put our loops, data sources and reader in place of Lightning's."""
        self._trainer = trainer
        callbacks = cast("Any", trainer).callbacks
        callbacks[:] = [item for item in callbacks if not isinstance(item, LightningAdapter)]
        replace_loops(trainer, self)
        inner.change_loaders(
            trainer,
            train=self._train_loaders,
            evaluation=self._evaluation,
            prediction=None if self.state.rank.is_script else self._prediction,
        )
        inner.leave_signals_alone(trainer)
        inner.around_prepare_data(trainer, kept_rngs)
        average_exactly()
        is_script = self.state.rank.is_script  # whose models stay where it has them
        self._models = ModelFiles(self.state.rank.run, trainer, stay=is_script)
        if is_script:
            self._keep_places()
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = _CarefulReader()
        # Last: what other callbacks do at a step's end belongs to the step.
        callbacks.append(self)
        self.controller.heartbeat.metrics = lambda: newest_numbers(trainer)

    def _keep_places(self) -> None:
        """What a script's callbacks and loggers write goes on where the first attempt had it."""
        rank, loaded = self.state.rank, self._loaded
        if rank.attempt:
            script_places.write_config_again(self._trainer)
        if loaded is not None:
            later = loaded.own["over"] and fit_checkpoints(rank.run, rank.fit + 1).is_dir()
            saved = loaded.own["inside"]["places"]
            script_places.keep_places(self._trainer, saved, whole=later)

    @override
    def setup(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        """All callbacks are known now, those of the model's `configure_callbacks` included."""
        if stage == "fit" and not inner.is_tuning(trainer):
            inner.check_tuners(trainer, is_script=self.state.rank.is_script)
        inner.widen(trainer, pl_module)
        self._models.place()
        if stage == "fit" and self._loaded is None:
            self._models.begin(0)
        if stage == "fit" and not inner.is_tuning(trainer):
            check_folders(trainer, self.state.rank.run)

    # -- data ---------------------------------------------------------------------------------

    def _train_loaders(self, loaders: list[Any]) -> list[Any]:
        """What `train_dataloader` returned, made to go on at the position."""
        if len(loaders) != 1:
            raise ConfigError(
                f"train_dataloader returned {len(loaders)} loaders, and only the position of one "
                "can be kept",
                "return one loader, over a torch.utils.data.ConcatDataset or StackDataset",
            )
        epoch = inner.current_epoch(self._trainer)
        may_shuffle = not cast("Any", self._trainer).overfit_batches
        maker = cast("Any", self._trainer).datamodule or self._trainer.lightning_module
        check_batches(loaders[0], maker)
        loader = self.state.train_loader(loaders[0], epoch=epoch, may_shuffle=may_shuffle)
        tell_of_data(self.state.rank, loaders[0], maker, self._trainer.max_epochs)
        return [loader]

    def epoch_begins(self, epoch: int) -> None:
        """The next iteration of the train data is `epoch`."""
        beat, epochs = self.controller.heartbeat, self._trainer.max_epochs
        beat.epoch, beat.steps = epoch + 1, steps_in_all(self._trainer)
        beat.epochs = epochs if epochs and epochs > 0 else None
        self._judge_monitors(epoch)
        if self._loaded is not None and self.state.reopens:
            # As if this process had trained on: everything an epoch's begin does comes after it.
            self._restore(self._loaded)
            self._loaded = None
        self.state.epoch_begins(epoch, cut=inner.knows_length(self._trainer))

    def _judge_monitors(self, epoch: int) -> None:
        """Once an epoch has been validated: days before the end, where nothing would be saved."""
        whole = self._epoch_ended and (self._validated or not self._trainer.enable_validation)
        if whole and not self._monitors_judged and self._trainer.is_global_zero:
            self._monitors_judged = True
            here = self.state.rank.run.attempt(self.state.rank.attempt)
            note_unlogged(here, self._trainer, f"not logged by the end of epoch {epoch}")

    def _evaluation(self, loaders: list[Any]) -> list[Any]:
        """What `val_dataloader` or `test_dataloader` returned, dealt out over the ranks."""
        dealt = [
            self.state.evaluation_loader(loader) if isinstance(loader, DataLoader) else loader
            for loader in loaders
        ]
        rank = self.state.rank
        tell_of_evaluation(rank, self._trainer, loaders, dealt)
        if rank.rank == 0 and rank.world_size > 1 and self._trainer.state.fn != TrainerFn.FITTING:
            for number in [n for n, loader in enumerate(dealt) if indices_of(loader) is None]:
                say_loudly(NOT_DEALT.format(number=number, ranks=rank.world_size))
        return dealt

    def _prediction(self, loaders: list[Any]) -> list[Any]:
        """What `predict_dataloader` returned, dealt out, with the samples noted."""
        dealt = self._evaluation(loaders)
        self.predicted = [indices_of(loader) for loader in dealt]
        if self.state.rank.world_size > 1 and None in self.predicted:
            raise ConfigError(
                f"predict_dataloader: loader {self.predicted.index(None)} cannot be dealt out over "
                f"{self.state.rank.world_size} ranks: it is iterable, has a sampler of its own, or "
                "fewer samples than ranks",
                "predict with one rank: --nodes 1 --gpus 1",
            )
        # Not a DataLoader: Lightning would build one anew, with batches of its own.
        return [PlainLoader(loader) for loader in dealt]

    # -- steps --------------------------------------------------------------------------------

    def was_over(self) -> bool | None:
        """Whether the checkpoint that waits is of a finished training; None if none waits."""
        if self._loaded is None:
            return None
        return bool(self._loaded.own["over"]) and self.state.reopens is None

    @override
    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        """Before loops and optimizers are restored from it."""
        if self._loaded is not None:
            self._models.begin(self._loaded.manifest.step, checkpoint)
            if self.state.reopens is not None:
                inner.reopen(checkpoint, whole=self.state.reopens)
            old, new = self._loaded.manifest.accumulate, self.state.rank.batch.accumulate
            if old != new:
                inner.rescale_batches(checkpoint, old=old, new=new)

    def reads_again(self) -> bool:
        """A stream is at the end of an epoch that is over, and has to draw its next one's first."""
        return bool(self.state.reopens) and self.state.stream is not None

    @property
    def _step(self) -> int:
        """Optimizer steps of the run, those of a script's earlier fits included."""
        return self._trainer.global_step + self.state.rank.steps_before

    def begins(self) -> bool:
        """The first step comes; returns whether a validation is still to be done before it."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            script_places.resume_averaging(self._trainer)
            self._restore(loaded)
        elif self.state.start is None:
            self.state.seed_apart()
        if self.state.lr_scale is not None:
            scale_rates(self._trainer, self.state.lr_scale)
        keep_schedules(self._trainer, self.state.rank.run)
        check_schedules(self._trainer, self.state)
        note_cut_steps(self._trainer, self.state.rank)
        self._losses.begin(self._trainer.lightning_module, resumed=loaded is not None)
        self.state.buckets.begin(model=cast("Any", self._trainer.strategy.model))
        self.controller.begin(self._step)
        return loaded is not None and bool(loaded.own["validation_pending"])

    def _restore(self, loaded: RankCheckpoint) -> None:
        """Put back what Lightning does not; the RNGs last."""
        trainer, saved = self._trainer, loaded.own["inside"]
        same_world = loaded.manifest.world_size == self.state.rank.world_size
        trainer.should_stop = saved["should_stop"] and self.state.reopens is None
        restore_module(trainer.lightning_module, saved, same_world=same_world)
        restore_logged(trainer, saved, loaded.taken_over)
        restore_rngs(saved["rng"])

    def validation_begins(self) -> None:
        """Ready to leave a long validation with the state from before it."""
        trainer = self._trainer
        batches = inner.validation_batches(trainer)
        at_boundary = not inner.is_accumulating(trainer)
        if batches:
            may_leave = at_boundary and not inner.saves_shards(trainer.strategy)
            self._evaluation_begins(batches, snapshot=at_boundary, may_leave=may_leave)

    def boundary(self) -> None:
        """The optimizer stepped, and everything that belongs to that step is done."""
        self.controller.boundary(self._step, self.snapshot, over=self._is_over())

    def _is_over(self) -> bool:
        trainer = self._trainer
        if trainer.max_steps != -1 and trainer.global_step >= trainer.max_steps:
            return True
        epochs = trainer.max_epochs
        if epochs in (None, -1) or not inner.is_last_batch(trainer):
            return False
        return inner.current_epoch(trainer) + 1 >= epochs

    @override
    def on_before_backward(self, *_: Any) -> None:
        """This rank's own part of a step is done."""
        self.controller.heartbeat.computed()
        self._losses.loss_came()

    @override
    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        """A sign of life within an accumulation."""
        self.controller.heartbeat.batch = inner.train_batches(self._trainer)
        self._losses.batch_ended()

    @override
    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Was there anything to learn from in it?"""
        self._epoch_ended = True
        self._losses.epoch_ended(pl_module)

    def ends(self) -> None:
        """The last state is saved, while all ranks are here, as a longer training goes on from."""
        self.controller.meet_at_end()
        if not self.state.rank.is_script:
            self.controller.end(lambda: self.snapshot(over=True))

    def ends_again(self) -> bool:
        """Whether a config's fit had ended, and not surely its callbacks; what it left is back."""
        if again := bool(self.was_over()) and not self.state.rank.is_script:
            self.restore_ended()
        return again

    def restore_ended(self) -> None:
        """Put back what a fit left that had ended: with no step to take, it has not been so far."""
        if self._loaded is not None:
            self._restore(self._loaded)
            self._loaded = None

    @override
    def on_train_end(self, *_: Any) -> None:
        """All callbacks have ended, so that the files of the user's ModelCheckpoints are there.

        A script goes on with what they have made of the model, averages for example, also in an
        attempt in which this fit takes no step; so its last state is saved now.
        """
        self._models.end()
        if not self.state.rank.is_script:
            self._losses.fit_ended(self._trainer)
        if self.state.rank.is_script and self._loaded is None:  # else it is the one begun with
            self.controller.end(lambda: self.snapshot(over=True))

    def snapshot(self, *, validation_pending: bool = False, over: bool = False) -> Snapshot:
        """The whole state now; on all ranks, since a strategy may gather."""
        trainer, module, state = self._trainer, self._trainer.lightning_module, self.state
        batches = inner.train_batches(trainer)
        model = inner.dump_checkpoint(trainer)
        sharded = inner.saves_shards(trainer.strategy)
        inside = {
            "rng": capture_rngs(),
            **capture_module(module),
            **capture_logged(trainer),
            "should_stop": trainer.should_stop,
        }
        if state.rank.is_script:
            inside["lr_scale"] = asdict(self.state.lr_scale) if self.state.lr_scale else None
            inside["places"] = script_places.places(trainer)
        own = state.own(inside, batches, over=over)
        return Snapshot(
            step=self._step,
            epoch=inner.current_epoch(trainer),
            samples=state.samples(batches),
            model=model if state.rank.rank == 0 and not sharded else None,
            own={
                **own,
                "validation_pending": validation_pending,
                "whole_epoch": inner.is_last_batch(trainer),
            },
            shards=inner.shard_writer(trainer.strategy, model) if sharded else None,
            beside_shards=model if sharded else None,
            authors=lambda keys: author_in_trainer(trainer, keys),
            parameters=frozenset(name for name, _ in module.named_parameters()),
        )

    # -- evaluations --------------------------------------------------------------------------

    @override
    def on_sanity_check_start(self, *_: Any) -> None:
        """The first evaluation, of a few batches."""
        self.controller.faults.at("sanity")
        batches = inner.validation_batches(self._trainer)
        self._evaluation_begins(batches, snapshot=False, may_leave=True)

    @override
    def on_sanity_check_end(self, *_: Any) -> None:
        """Training comes."""
        self.controller.evaluation_ends(whole=False)

    @override
    def on_validation_start(self, trainer: pl.Trainer, *_: Any) -> None:
        """Only `trainer.validate`; inside a fit the epoch loop is asked earlier."""
        if trainer.state.fn == TrainerFn.VALIDATING:
            self.on_test_start(trainer)

    @override
    def on_test_start(self, trainer: pl.Trainer, *_: Any) -> None:
        """`trainer.test`."""
        batches = inner.evaluation_batches(trainer)
        self._evaluation_begins(batches, snapshot=False, may_leave=True)

    def _evaluation_begins(
        self, batches: list[int | float], *, snapshot: bool, may_leave: bool
    ) -> None:
        total = sum(batches)
        self._evaluated = 0
        self.controller.evaluation_begins(
            self._step,
            snapshot=(lambda: self.snapshot(validation_pending=True)) if snapshot else None,
            may_leave=may_leave,
            batches=0 if total == float("inf") else int(total),
        )

    @override
    def on_predict_start(self, trainer: pl.Trainer, *_: Any) -> None:
        """`trainer.predict`."""
        self.on_test_start(trainer)

    @override
    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        """A stop may come here."""
        self._evaluated += 1
        self.controller.evaluation_batch(self._step, self._evaluated)

    on_test_batch_end = on_predict_batch_end = on_validation_batch_end

    @override
    def on_validation_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Back to training."""
        if not trainer.sanity_checking:
            self._validated = True
            self.controller.evaluation_ends()
            self._losses.look_at_weights(trainer)


class _CarefulReader(TorchCheckpointIO):
    """Reads with weights_only where the file lets it."""

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> dict[str, Any]:
        loaded: dict[str, Any] = load_tensors(Path(path))
        return loaded
