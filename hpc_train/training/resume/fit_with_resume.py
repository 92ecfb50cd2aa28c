"""The facade over exactly-once training: what a rank calls, in this order.

::

    stop = StopFlag(run_dir.stop).install()         # first thing; `train.stop` imports no torch
    resumer = Resumer(plan=plan, run_dir=run_dir, attempt=attempt, rank=rank,
                      world_size=world_size, node=node, stop=stop)
    resumer.begin()                                 # heartbeat from here on, phase "start"
    ...                                             # torch.distributed, if world_size > 1
    chosen = resumer.choose()                       # rank 0 verifies and picks, all are told
    ...                                             # seeds, model, data and loggers as at first
    trainer = Trainer(**resumer.trainer_kwargs(kwargs))
    try:
        resumer.fit(trainer, model, datamodule)     # restores, trains, saves, watches the flag
        code = resumer.finish()                     # 0
    except BaseException as error:
        code = resumer.fail(error)                  # 75, 76 or the user's
    ...                                             # exit record: resumer.step, resumer.phase
    leave(code)
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hpc_train.config.schema import CheckpointConfig
from hpc_train.errors import CheckError
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RankExit
from hpc_train.runs.layout import RunDir, checkpoint_name
from hpc_train.runs.ranks import Beginning, Damaged, write_beginning
from hpc_train.training.faults import RehearsedFaults
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.private.versions import untried_versions
from hpc_train.training.rank_failure import failure_of
from hpc_train.training.resume.checkpoint import discard_partials, find_newest_valid
from hpc_train.training.resume.manifest import Manifest, read_manifest
from hpc_train.training.resume.stop import StopFlag

if TYPE_CHECKING:
    import torch.distributed as dist

    from hpc_train.training.private.lightning import pl
    from hpc_train.training.resume.lightning_adapter import LightningAdapter
    from hpc_train.training.resume.saving import Identity
    from hpc_train.training.resume.step_controller import StepController

__all__ = [
    "Chosen",
    "FitWithResume",
    "check_same_config",
    "choose_checkpoint",
    "leave",
    "make_guard",
]


@dataclass(frozen=True)
class Chosen:
    """The checkpoint this attempt goes on from.

    Attributes:
        path: Folder of the checkpoint.
        step: Optimizer steps taken when it was saved.
    """

    path: Path
    step: int


def choose_checkpoint(
    run: RunDir, attempt: int, *, verify: bool, rank: int, group: dist.ProcessGroup | None
) -> Chosen | None:
    """Pick the newest checkpoint that verifies. Collective; rank 0 looks, the others are told.

    Rank 0 also leaves word for the supervisor where the ranks begin, and what was passed over, and
    says which libraries are of versions that nobody tried.
    """
    import torch.distributed as dist

    told: list[Chosen | None] = [None]
    if rank == 0:
        if untried := untried_versions():
            _warn(untried)
        told = [_look_for_checkpoint(run, attempt, verify=verify)]
    if group is not None:
        dist.broadcast_object_list(told, src=0, group=group)
    return told[0]


def _look_for_checkpoint(run: RunDir, attempt: int, *, verify: bool) -> Chosen | None:
    discard_partials(run.checkpoints)
    path, broken = find_newest_valid(run.checkpoints, verify=verify)
    for item in broken:
        _warn(f"checkpoint {item.path.name} is passed over: {item.reason}")
    chosen = Chosen(path, read_manifest(path).step) if path is not None else None
    damaged = tuple(
        Damaged(item.step, item.reason or "", item.path.name != checkpoint_name(item.step))
        for item in broken
    )
    try:
        write_beginning(run.attempt(attempt), Beginning(chosen.step if chosen else 0, damaged))
    except OSError as error:  # a full disk costs this word, not the training
        _warn(f"where the ranks begin cannot be written: {error}")
    return chosen


def _warn(text: str) -> None:
    print(f"WARNING: {text}", file=sys.stderr)  # noqa: T201 - a rank's log


def make_guard(
    folder: Path,
    config: CheckpointConfig,
    identity: Identity,
    *,
    rank: int,
    group: dist.ProcessGroup | None,
    stop: StopFlag,
    heartbeat: HeartbeatThread,
    faults: RehearsedFaults,
) -> StepController:
    """What watches the steps of one rank; `folder` is that of the checkpoints."""
    from hpc_train.training.resume.agreement import Agreement
    from hpc_train.training.resume.saving import Saver
    from hpc_train.training.resume.step_controller import StepController

    return StepController(
        config,
        agreement=Agreement(group, stop, rank=rank),
        evaluation=Agreement(group, stop, rank=rank),
        saver=Saver(folder, config, identity, rank=rank, group=group, faults=faults),
        heartbeat=heartbeat,
        faults=faults,
    )


class FitWithResume:
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
        self._plan = plan
        self._run_dir = run_dir
        self._attempt = attempt
        self._rank = rank
        self._world_size = world_size
        self._stop = stop
        self._heartbeat = HeartbeatThread(
            run_dir.attempt(attempt),
            rank=rank,
            node=node,
            every_s=plan.watchdog.heartbeat_s,
            stop=stop,
        )
        self._faults = RehearsedFaults.from_env(os.environ, rank=rank, attempt=attempt)
        self._group: dist.ProcessGroup | None = None
        self._chosen: Chosen | None = None
        self._training: LightningAdapter | None = None

    def begin(self) -> None:
        """Start the heartbeat thread, which also watches for stop, dump and abort requests."""
        self._heartbeat.start()

    def choose(self) -> Chosen | None:
        """Pick the newest checkpoint that verifies; collective if world_size > 1.

        Rank 0 looks and hashes; the others are told, since NFS clients may see different files.
        Broken ones are renamed aside and named on the log. torch.distributed must be initialised.

        Raises:
            CheckError: the run's config hash is not that of the checkpoint.
        """
        from hpc_train.training.resume.agreement import cpu_group

        self._group = cpu_group(self._world_size)
        self._chosen = choose_checkpoint(
            self._run_dir,
            self._attempt,
            verify=self._plan.checkpoint.verify_on_load,
            rank=self._rank,
            group=self._group,
        )
        if self._chosen is not None:
            check_same_config(self._chosen, self._plan.config_hash)
        return self._chosen

    def trainer_kwargs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Add what exact resuming needs to the Trainer's arguments (a new dict).

        Sets `accumulate_grad_batches` from the plan and `use_distributed_sampler=False`, and
        `enable_checkpointing=False` where the user has no ModelCheckpoint and says nothing.
        """
        from hpc_train.training.private.lightning import Checkpoint

        callbacks = list(kwargs.get("callbacks") or [])
        has_own = any(isinstance(callback, Checkpoint) for callback in callbacks)
        return {
            "enable_checkpointing": has_own,
            **kwargs,
            "accumulate_grad_batches": self._plan.batch.accumulate,
            "use_distributed_sampler": False,
        }

    def fit(
        self,
        trainer: pl.Trainer,
        model: pl.LightningModule,
        datamodule: pl.LightningDataModule | None = None,
        **dataloaders: Any,
    ) -> None:
        """`trainer.fit` from the chosen checkpoint (or from the start).

        Raises:
            Stopped: all ranks saved the same step and want to go on (exit code 75).
            ConfigError: the train loader cannot be continued exactly, and why.
            RunFailedError: the weights became NaN.
            Exception: the user's own.
        """
        from hpc_train.training.resume.lightning_adapter import LightningAdapter
        from hpc_train.training.resume.rank_checkpoint import RankCheckpoint
        from hpc_train.training.resume.saving import Identity

        loaded = None
        if self._chosen is not None:
            path = self._chosen.path
            manifest = read_manifest(path)
            loaded = RankCheckpoint.read(
                path, manifest, rank=self._rank, world_size=self._world_size
            )
        plan = self._plan
        controller = make_guard(
            self._run_dir.checkpoints,
            plan.checkpoint,
            Identity(
                config_hash=plan.config_hash,
                attempt=self._attempt,
                world_size=self._world_size,
                accumulate=plan.batch.accumulate,
            ),
            rank=self._rank,
            group=self._group,
            stop=self._stop,
            heartbeat=self._heartbeat,
            faults=self._faults,
        )
        self._training = LightningAdapter(
            controller,
            batch=plan.batch,
            rank=self._rank,
            world_size=self._world_size,
            seed=plan.training.seed,
            loaded=loaded,
        )
        self._training.attach(trainer)
        resume_from = str(loaded.model_path) if loaded is not None else None
        trainer.fit(model, datamodule=datamodule, ckpt_path=resume_from, **dataloaders)

    def finish(self) -> int:
        """After a fit that completed: everything is committed, the heartbeat ends; returns 0."""
        self._heartbeat.end()
        return int(RankExit.FINISHED)

    def fail(self, error: BaseException) -> int:
        """The exit code for what `fit` (or anything before it) raised; phase becomes "end".

        75 for Stopped, 76 for a collective that lost its peer, anything else is the user's. (77
        never comes this way: the heartbeat thread ends the process when it is told to.)
        """
        from hpc_train.training.resume.step_controller import Stopped

        if isinstance(error, Stopped):
            print(error, flush=True)  # noqa: T201 - a rank's log
            self._heartbeat.end()
            return int(RankExit.SAVED)
        return failure_of(error).code

    @property
    def step(self) -> int | None:
        """Optimizer steps taken since the run's first attempt; None before training began."""
        return self._heartbeat.step

    @property
    def phase(self) -> str:
        """start, train, validate, save or end; where an exception was raised, not "end"."""
        return self._heartbeat.phase


def check_same_config(chosen: Chosen, config_hash: str) -> None:
    """Refuse the checkpoint of a training that makes another result.

    Raises:
        CheckError: with what may have changed.
    """
    manifest: Manifest = read_manifest(chosen.path)
    if manifest.config_hash != config_hash:
        raise CheckError(
            f"{chosen.path.name} was saved by another config (hash {manifest.config_hash}, this "
            f"one's is {config_hash})",
            "model, data, trainer, seed or global batch have changed: submit a new run",
        )


def leave(code: int) -> NoReturn:
    """End the process now: data workers are killed, streams flushed, nothing joins forever.

    Data workers have the stop signals blocked, so the SIGTERM by which multiprocessing ends them
    at exit would be waited for without end.
    """
    import multiprocessing

    for child in multiprocessing.active_children():
        child.kill()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
