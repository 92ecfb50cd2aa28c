"""The fits of a script, one after another: each stops, saves and goes on by itself.

An attempt runs the script from its first line. Fits that were over take no step again; the one
that was interrupted goes on from its newest checkpoint; the rest of the script follows as ever.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch

from hpc_train.errors import CheckError, ConfigError, HpcTrainError
from hpc_train.plan.lr_scale import LrScale, lr_scale
from hpc_train.plan.plan import Batch, Plan, Shape
from hpc_train.plan.shape import BatchSplitError, split_batch
from hpc_train.plan.world import World
from hpc_train.training.failures.given_texts import as_number
from hpc_train.training.prepare import device_of_rank, meet
from hpc_train.training.rank import Rank
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.rank_failure import failure_of, users_line
from hpc_train.training.resume.rank_checkpoint import RankCheckpoint
from hpc_train.training.resume.resume_state import ResumeState
from hpc_train.training.resume.seeds import seed_everything, seed_of_rank
from hpc_train.training.resume.stop import Stopped
from hpc_train.training.scripts.script_ends import TrainerRuns

_ALL_RANKS = -1  # in place of a rank; a number that no script seeds with by chance comes of it


class ScriptFits:
    """What every Trainer of the script asks, see `TrainerHooks`."""

    def __init__(self, rank: Rank, plan: Plan, world: World, plan_hash: str) -> None:
        self._rank = rank
        self._plan = plan
        self._world = world
        self._plan_hash = plan_hash
        self._met = False
        self._begun = False
        self._fits = 0
        self._steps = 0  # that the fits so far took together
        self._fitted: WeakSet[Any] = WeakSet()  # Trainers that have our loops and loaders
        self.on_trainer: Callable[[], None] = lambda: None  # a Trainer is made
        self.runs = TrainerRuns()
        self._own_sampler: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
        self._made_at: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def arguments(self, trainer: Any, given: dict[str, Any]) -> dict[str, Any]:
        """What a Trainer is made with; all ranks meet before the first one."""
        self.on_trainer()
        self.runs.made()
        try:
            self._own_sampler[trainer] = bool(given.get("use_distributed_sampler", True))
            self._made_at[trainer] = users_line()
            return self._settle(given)
        except HpcTrainError as error:  # nothing of the script may catch it
            error.where = error.where or users_line()
            self._rank.end(error)
            raise

    def run(
        self, trainer: Any, name: str, method: Callable[..., Any], given: inspect.BoundArguments
    ) -> Any:
        """One of the Trainer's methods; a stop ends the process in it."""
        named, before = dict(given.arguments), trainer.global_step
        self.runs.called()
        is_tuned = name == "fit" and _is_tuning(trainer)
        try:
            if name == "fit" and not is_tuned:
                given_back = self._fit(trainer, method, named)
            else:
                given_back = self._evaluate(trainer, name, method, named)
        except (HpcTrainError, Stopped) as ending:
            if isinstance(ending, ConfigError):  # of what the script has given it
                ending.where = ending.where or users_line()
            self._rank.end(ending)
            raise
        except Exception as error:
            if failure_of(error).kind == "network":  # a peer is gone: no error of the script's
                self._rank.end(error)
            taken = trainer.global_step - before
            self.runs.raised("tuning" if is_tuned else name, error, steps=taken)
            raise
        self.runs.ended_well("tuning" if is_tuned else name)
        self._rank.heartbeat.phase = "start"  # the script's own code comes, as at its beginning
        return given_back

    def _settle(self, given: dict[str, Any]) -> dict[str, Any]:
        from hpc_train.training.scripts.script_shape import asked_accelerator
        from hpc_train.training.scripts.script_trainer import settled_arguments
        from hpc_train.training.trainer import quiet_lightning

        quiet_lightning()
        world, wanted = self._world, asked_accelerator(given, self._plan.shape)
        folder = self._rank.here.attempt_dir
        device = device_of_rank(wanted, given.get("precision"), world, folder, of_script=True)
        settled, told = settled_arguments(
            given, world=world, device=device, on_terminal=sys.stdout.isatty()
        )
        if world.rank == 0:
            print(told, flush=True)  # noqa: T201 - a rank's log
        if not self._met and not torch.distributed.is_initialized():
            meet(self._plan, world, device, self._plan_hash, self._rank.here.node)
        self._met = True
        return settled

    def _fit(self, trainer: Any, method: Callable[..., Any], named: dict[str, Any]) -> Any:
        from hpc_train.training.fit_notes.unlogged_monitors import note_unlogged
        from hpc_train.training.loggers import (
            ProgressLines,
            early_end,
            note_last_not_finite,
            write_final_metrics,
        )
        from hpc_train.training.private.lightning_trainer import check_tuners
        from hpc_train.training.resume.fit_with_resume import fit_with_resume

        check_tuners(trainer, is_script=True)
        _check_epochs(trainer, self._made_at.get(trainer, ""))
        rank = self._rank_config(trainer)
        state = ResumeState(rank, self._rank.heartbeat, self._rank.stop)
        start = state.load()
        state.lr_scale = self._lr_scale(start)
        if start is not None:
            self._go_on(state, start, trainer, named)
        if not self._begun and not (start is not None and start.own["over"]):
            self._begun = True
            self._rank.first_step = start.manifest.step if start is not None else rank.steps_before
        if trainer.progress_bar_callback is None and trainer not in self._fitted:
            trainer.callbacks.append(ProgressLines(1, unit="steps"))
        state.seed_apart = self._seed_apart
        self._fitted.add(trainer)
        fit_with_resume(state, trainer, fit=method, **named)
        self._fits += 1
        self._rank.early_end = early_end(trainer)
        self._rank.unsaved = state.controller.unsaved
        self._steps = rank.steps_before + trainer.global_step
        if rank.rank == 0 and self._rank.unsaved is None:
            write_final_metrics(rank.run, trainer)
            note_last_not_finite(rank.run, trainer, is_script=True)
            note_unlogged(self._rank.here.attempt_dir, trainer)

    def _rank_config(self, trainer: Any) -> RankConfig:
        here = self._rank.here
        rank = RankConfig.of_plan(
            self._plan,
            here.run,
            attempt=here.attempt,
            rank=self._world.rank,
            world_size=self._world.world_size,
        )
        return replace(
            rank,
            batch=Batch(0, 0, trainer.accumulate_grad_batches),  # the rest is the loader's
            seed=int(os.environ.get("PL_GLOBAL_SEED", rank.seed)),  # of Lightning's seed_everything
            is_script=True,
            fit=self._fits,
            steps_before=self._steps - trainer.global_step,
        )

    def _lr_scale(self, start: RankCheckpoint | None) -> LrScale | None:
        """As the first attempt had it: a run keeps its global batch in another shape."""
        if start is not None:
            kept = start.own["inside"]["lr_scale"]
            return LrScale(**kept) if kept else None
        script = self._plan.script
        scale = lr_scale(script, self._world.world_size) if script else None
        if scale is not None and self._world.rank == 0:
            print(f"learning rates: {scale}", flush=True)  # noqa: T201 - a rank's log
        return scale

    def seed(self) -> None:
        """Before the script begins: what it does not seed itself is the same in each attempt."""
        seed_everything(self._common_seed)

    @property
    def _common_seed(self) -> int:
        return seed_of_rank(self._plan.training.seed, _ALL_RANKS)

    def _seed_apart(self) -> None:
        """Where the script has seeded nothing, dropout shall differ between ranks all the same."""
        if torch.initial_seed() == self._common_seed:
            seed_everything(seed_of_rank(self._plan.training.seed, self._world.rank))

    def _go_on(
        self, state: ResumeState, start: RankCheckpoint, trainer: Any, named: Mapping[str, Any]
    ) -> None:
        """Keep the global batch, and say what is not as the script has it."""
        step, told = start.manifest.step, []
        if named.get("ckpt_path") is not None:
            told.append(f"the script's ckpt_path={named['ckpt_path']!r} was for the first attempt")
        kept = start.own.get("global_batch_size")
        if kept and start.samples is not None:
            before = start.manifest
            each = kept // before.world_size // before.accumulate
            batch = Batch(kept, each, before.accumulate)
            if before.world_size != self._world.world_size:
                automatic = named["model"].automatic_optimization
                batch = self._split(kept, each if automatic else None)
                now, size = self._world.world_size, batch.micro_batch_size
                told.append(
                    f"the global batch stays {kept}: {before.world_size} ranks x {each} x "
                    f"{before.accumulate} accumulated are now {now} x {size} x {batch.accumulate}"
                )
            state.use_batch(batch)
            trainer.accumulate_grad_batches = batch.accumulate
        if self._world.rank == 0:
            for text in told:
                print(f"step {step}: {text}", flush=True)  # noqa: T201 - a rank's log

    def _split(self, global_batch_size: int, most: int | None) -> Batch:
        world = self._world
        try:
            return split_batch(global_batch_size, most, Shape(world.nodes, world.ranks_per_node, 0))
        except BatchSplitError as error:
            raise CheckError(error.message, f"go on with other ranks; {error.shapes}") from error

    def _evaluate(
        self, trainer: Any, name: str, method: Callable[..., Any], named: Mapping[str, Any]
    ) -> Any:
        """After a fit, its loaders deal out the samples; else Lightning's sampler does."""
        from hpc_train.training.private.lightning_trainer import distributed_sampler

        ours = trainer in self._fitted and name in ("validate", "test")
        use = self._own_sampler.get(trainer, True)
        with nullcontext() if ours else distributed_sampler(trainer, use=use):
            return method(**named)


def _check_epochs(trainer: Any, made_at: str) -> None:
    """Refuse a number of epochs that is a text: Lightning fails at it without a word.

    Args:
        made_at: `file:line` of the Trainer.
    """
    if isinstance(epochs := trainer.max_epochs, str):
        fix = as_number("max_epochs", epochs, whole=True)
        error = ConfigError("the script's Trainer cannot count its epochs", fix)
        error.where = made_at
        raise error


def _is_tuning(trainer: Any) -> bool:
    from hpc_train.training.private.lightning_trainer import is_tuning

    return is_tuning(trainer)
