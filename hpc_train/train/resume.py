"""The facade over exactly-once training: what a rank calls, in this order.

stop = StopFlag(run_dir.stop).install()         # first thing; `train.stop` imports no torch
resumer = Resumer(plan=plan, run_dir=run_dir, attempt=attempt, rank=rank,
                  world_size=world_size, node=node, stop=stop)
resumer.begin()                                 # heartbeat from here on, phase "start"
... torch.distributed.init_process_group(...)   # world_size > 1: before `choose`
chosen = resumer.choose()                       # rank 0 verifies and picks, all ranks are told
... loggers: if rank == 0: prune_logs(run_dir.metrics, chosen.step if chosen else 0)
... model, datamodule, seeds as on a first start
trainer = Trainer(**resumer.trainer_kwargs(kwargs))
try:
    resumer.fit(trainer, model, datamodule)     # restores `chosen`, trains, saves, watches the flag
    code = resumer.finish()                     # waits for the writer; 0
except BaseException as error:
    code = resumer.fail(error)                  # 75, 76 or 1; says why on the log
... write the ExitRecord with code, resumer.step, resumer.phase, then
leave(code)                                     # kills data workers, flushes, os._exit
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hpc_train.plan.plan import Plan
from hpc_train.store.layout import RunDir
from hpc_train.train.stop import StopFlag

if TYPE_CHECKING:
    from pytorch_lightning import LightningDataModule, LightningModule, Trainer

__all__ = ["Chosen", "Resumer", "leave", "prune_logs"]


@dataclass(frozen=True)
class Chosen:
    """The checkpoint this attempt goes on from.

    Attributes:
        path: Folder of the checkpoint.
        step: Optimizer steps taken when it was saved.
        skipped: Checkpoints that were newer and broken, each with the reason.
    """

    path: Path
    step: int
    skipped: tuple[tuple[str, str], ...] = ()


class Resumer:
    """Everything a rank needs to stop, save and go on without losing or repeating a step.

    Not thread-safe; one per process. Signals, the stop file, checkpoints, RNGs, the position in
    the data and the heartbeat are its business; device, strategy, loggers and model are not.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        run_dir: RunDir,
        attempt: int,
        rank: int,
        world_size: int,
        node: str,
        stop: StopFlag,
    ) -> None:
        """Only takes its arguments; `begin` has the first effect."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start the heartbeat thread, the dump of stacks on request, and fault injection."""
        raise NotImplementedError

    def choose(self) -> Chosen | None:
        """Pick the newest checkpoint that verifies; collective if world_size > 1.

        Rank 0 looks and hashes; the others are told, since NFS clients may see different files.
        Broken ones are renamed aside and named on the log.

        Raises:
            CheckError: the run's config hash is not that of the checkpoint.
        """
        raise NotImplementedError

    def trainer_kwargs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Add what exact resuming needs to the Trainer's arguments (a new dict).

        Sets `accumulate_grad_batches` from the plan, `use_distributed_sampler=False`, appends our
        callback to `callbacks`, and `enable_checkpointing=False` where the user named none
        and has no ModelCheckpoint. Everything else is left as it came.
        """
        raise NotImplementedError

    def fit(
        self,
        trainer: Trainer,
        model: LightningModule,
        datamodule: LightningDataModule | None = None,
        **dataloaders: Any,
    ) -> None:
        """`trainer.fit` from the chosen checkpoint (or from the start).

        Raises:
            Stopped: all ranks saved the same step and want to go on (exit code 75).
            ConfigError: the train loader cannot be continued exactly, and why.
            Exception: the user's own.
        """
        raise NotImplementedError

    def finish(self) -> int:
        """After a fit that completed: commit what is being written; returns 0."""
        raise NotImplementedError

    def fail(self, error: BaseException) -> int:
        """The exit code for what `fit` (or anything before it) raised; phase becomes "end".

        75 for Stopped, 76 for a collective that lost its peer, 1 for anything else. (77 never comes
        this way: the heartbeat thread ends the process when the supervisor asks for it.)
        """
        raise NotImplementedError

    @property
    def step(self) -> int | None:
        """Optimizer steps taken since the run's first attempt; None before training began."""
        raise NotImplementedError

    @property
    def phase(self) -> str:
        """start, train, validate, save or end; also for the ExitRecord."""
        raise NotImplementedError


def prune_logs(metrics_dir: Path, step: int) -> None:
    """Drop points at or after `step` optimizer steps from CSV and TensorBoard files. Rank 0 only.

    Call it before the loggers are made, so that the attempt that goes on from step `step` writes
    each point once. With step 0 everything goes.
    """
    raise NotImplementedError


def leave(code: int) -> NoReturn:
    """End the process now: data workers are killed, streams flushed, nothing joins forever."""
    raise NotImplementedError
