"""What a rank holds to stop, save and go on: one object for Lightning's loops and for raw ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset

from hpc_train.errors import CheckError, HpcTrainError
from hpc_train.plan.lr_scale import LrScale
from hpc_train.plan.plan import Batch
from hpc_train.runs.checkpoints import fit_checkpoints
from hpc_train.runs.layout import checkpoint_name
from hpc_train.runs.ranks import Beginning, Damaged, write_beginning
from hpc_train.training.environment_record import write_environment
from hpc_train.training.faults import RehearsedFaults
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.private.versions import untried_versions
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.resume.agreement import Agreement, cpu_group
from hpc_train.training.resume.buckets import GradientBuckets
from hpc_train.training.resume.checkpoint import discard_partials, find_newest_valid
from hpc_train.training.resume.iterable_resume import StreamPosition, enter_epoch, stream_loader
from hpc_train.training.resume.manifest import read_manifest
from hpc_train.training.resume.rank_checkpoint import RankCheckpoint
from hpc_train.training.resume.sample_order import DataPosition, mixed_seed
from hpc_train.training.resume.sampling import evaluation_loader, loader_at
from hpc_train.training.resume.saving import Saver, say_loudly
from hpc_train.training.resume.seeds import seed_everything, seed_of_rank
from hpc_train.training.resume.step_controller import StepController
from hpc_train.training.resume.stop import StopFlag

_READ_AGAIN = (
    "the train set is iterable and has no state_dict(): after an interruption it is read again "
    "from its beginning and what was seen is thrown away, which is exact only if it gives the same "
    "samples each time (give it state_dict() and load_state_dict(), see docs/resuming.md)"
)


class ResumeState:
    """Made by all ranks, once torch.distributed is initialised. Collective.

    Attributes:
        start: The checkpoint that this attempt goes on from; None for a fresh start, and before
            `load`.
        buckets: DDP's order of sums.
        stream: The position in an iterable train set; None for a map-style one.
        lr_scale: Of a script's learning rates.
        seed_apart: Called before the first step of a training that begins: dropout is to differ
            between ranks, and what `setup` draws is not.
    """

    def __init__(self, rank: RankConfig, heartbeat: HeartbeatThread, stop: StopFlag) -> None:
        self.rank = rank
        self.group = cpu_group(rank.world_size)
        faults = RehearsedFaults.from_env(os.environ, rank=rank.rank, attempt=rank.attempt)
        self.controller = StepController(
            rank.checkpoint,
            agreement=Agreement(self.group, stop, rank=rank.rank),
            evaluation=Agreement(self.group, stop, rank=rank.rank),
            saver=Saver(rank, group=self.group, faults=faults),
            heartbeat=heartbeat,
            faults=faults,
        )
        self.start: RankCheckpoint | None = None
        self.buckets = GradientBuckets(None)
        self.stream: StreamPosition | None = None
        self.lr_scale: LrScale | None = None
        self.seed_apart: Callable[[], None] = lambda: seed_everything(
            seed_of_rank(rank.seed, rank.rank)
        )
        self._streaming: Any = None
        self._samples_in_set: int | None = None
        self._loader_start: RankCheckpoint | None = None

    def _seed_apart(self) -> None:
        seed_everything(seed_of_rank(self.rank.seed, self.rank.rank))

    def load(self) -> RankCheckpoint | None:
        """Pick the newest checkpoint that verifies, and read this rank's part. Collective.

        Rank 0 looks and hashes; the others are told, since NFS clients may see different files.

        Raises:
            CheckError: it is one of another config.
            CheckpointError: it cannot be read on this node, or is of a later hpc-train.
        """
        rank = self.rank
        path = newest_for_all(rank, self.group)
        if path is not None:
            manifest = read_manifest(path)
            if manifest.config_hash != rank.config_hash:
                raise CheckError(
                    f"{path.name} was saved by another config (hash {manifest.config_hash}, this "
                    f"one's is {rank.config_hash})",
                    "model, data, trainer, seed or global batch have changed: submit a new run",
                )
            self.start = self._loader_start = RankCheckpoint.read(
                path, manifest, rank=rank.rank, world_size=rank.world_size
            )
            self.buckets = GradientBuckets(self.start.own.get("buckets"))
        return self.start

    @property
    def reopens(self) -> bool | None:
        """Whether the run was over after a whole epoch, and goes on; None where it was not over."""
        start = self.start
        if start is None or not start.own["over"]:
            return None
        if start.manifest.step != self.rank.reopened_step:
            return None
        whole = start.own.get("whole_epoch")
        if whole is None:  # saved before this was noted
            left = (start.samples_in_set or 0) - (start.samples or 0)
            whole = left < self.rank.batch.global_batch_size
        return bool(whole)

    def train_loader(
        self, loader: Any, *, epoch: int, samples: int = 0, may_shuffle: bool = True
    ) -> Any:
        """The user's train loader, made to go on where the training stands.

        The first one goes on where the checkpoint stood: Lightning asks for it before it has
        restored its loops (`estimated_stepping_batches`).

        Args:
            samples: Consumed by all ranks together in `epoch`.

        Raises:
            ConfigError: the order of its samples cannot be continued, and why.
        """
        if not self.rank.batch.micro_batch_size:
            self.use_batch(self._batch_of(loader))
        rank = self.rank
        start, self._loader_start = self._loader_start, None
        if start is not None:
            epoch, samples = start.manifest.epoch, start.manifest.samples or 0
        is_map = isinstance(loader, DataLoader) and not isinstance(loader.dataset, IterableDataset)
        if start is not None and self.reopens is not None:  # the epoch at hand was counted as done
            epoch, samples = (epoch, 0) if self.reopens and is_map else (epoch - 1, samples)
        if is_map:
            self._samples_in_set = len(loader.dataset)
            return loader_at(
                loader,
                DataPosition(epoch, samples, rank.seed),
                rank.batch,
                rank=rank.rank,
                world_size=rank.world_size,
                saved_size=start.samples_in_set if start is not None else None,
                may_shuffle=may_shuffle,
                is_script=rank.is_script,
            )
        is_first = self.stream is None
        self._streaming, self.stream = stream_loader(
            loader,
            micro_batch_size=rank.batch.micro_batch_size,
            start=start.stream(rank.batch.accumulate) if start is not None else None,
        )
        self.epoch_begins(epoch)  # already now: some are asked for a batch before
        if is_first and not self.stream.exact and rank.rank == 0:
            say_loudly(_READ_AGAIN)
        return self._streaming

    def use_batch(self, batch: Batch) -> None:
        """What a script alone can tell, once it has made its Trainer and its loader."""
        self.rank = self.controller.saver.rank = replace(self.rank, batch=batch)

    def _batch_of(self, loader: Any) -> Batch:
        """What a script's own loader makes of the global batch."""
        size = getattr(loader, "batch_size", None)
        micro = int(
            size or getattr(getattr(loader, "batch_sampler", None), "batch_size", None) or 1
        )
        each, world = self.rank.batch.accumulate, self.rank.world_size
        if self.rank.rank == 0:
            accumulated = f" x {each} accumulated" if each > 1 else ""
            told = f"global batch: {micro} samples a rank x {world} ranks{accumulated}"
            print(f"{told} = {micro * each * world}", flush=True)  # noqa: T201 - a rank's log
        return Batch(micro * each * world, micro, each)

    def epoch_begins(self, epoch: int, *, cut: bool = False) -> None:
        """The next iteration of the train data is `epoch`; map-style sets learn it by sampler.

        Args:
            cut: Epochs end at a number of batches that is known before, as of `enter_epoch`.
        """
        if self.stream is not None:
            seed = mixed_seed(self.rank.seed, self.rank.rank)
            enter_epoch(self._streaming, self.stream, epoch=epoch, seed=seed, cut=cut)

    def evaluation_loader(self, loader: DataLoader[Any]) -> DataLoader[Any]:
        """The user's evaluation loader, dealt out over the ranks."""
        rank = self.rank
        return evaluation_loader(loader, rank=rank.rank, world_size=rank.world_size, seed=rank.seed)

    def samples(self, micro_batches: int) -> int | None:
        """What all ranks consumed together in this many of each; None for a stream."""
        if self.stream is not None:
            return None
        batch = self.rank.batch
        return -(-micro_batches // batch.accumulate) * batch.global_batch_size

    def own(self, inside: dict[str, Any], micro_batches: int, *, over: bool) -> dict[str, Any]:
        """What this rank alone writes into a checkpoint; `RankCheckpoint` reads it."""
        return {
            "inside": inside,
            "buckets": self.buckets.capture(),
            "stream": self.stream.after(micro_batches) if self.stream is not None else None,
            "samples_in_set": self._samples_in_set,
            "global_batch_size": self.rank.batch.global_batch_size,
            "seed": self.rank.seed,
            "over": over,
        }


def newest_for_all(rank: RankConfig, group: dist.ProcessGroup | None) -> Path | None:
    """The newest checkpoint that verifies, as rank 0 finds it. Collective."""
    told: list[Path | HpcTrainError | None] = [None]
    if rank.rank == 0:
        try:
            told = [_newest_checkpoint(rank)]
        except HpcTrainError as error:  # all ranks end with these words
            told = [error]
    if group is not None:
        dist.broadcast_object_list(told, src=0, group=group)
    if isinstance(told[0], HpcTrainError):
        raise told[0]
    return told[0]


def _newest_checkpoint(rank: RankConfig) -> Path | None:
    """Find it, and leave word for the supervisor where the ranks begin and what was damaged."""
    if untried := untried_versions():
        _warn(untried)
    discard_partials(rank.checkpoints)
    verify = rank.checkpoint.verify_on_load
    path, broken = find_newest_valid(rank.checkpoints, verify=verify)
    for item in broken:
        _warn(f"checkpoint {item.path.name} is passed over: {item.reason}")
    damaged = tuple(
        Damaged(item.step, item.reason or "", item.path.name != checkpoint_name(item.step))
        for item in broken
    )
    step = read_manifest(path).step if path is not None else rank.steps_before
    attempt = rank.run.attempt(rank.attempt)
    if fit_checkpoints(rank.run, rank.fit + 1).is_dir() or attempt.beginning.exists():
        return path  # the first fit of an attempt that is not over yet says it
    try:
        write_beginning(attempt, Beginning(step, damaged))
        write_environment(attempt)
    except OSError as error:  # a full disk costs this word, not the training
        _warn(f"where the ranks begin cannot be written: {error}")
    return path


def _warn(text: str) -> None:
    print(f"WARNING: {text}", file=sys.stderr)  # noqa: T201 - a rank's log
