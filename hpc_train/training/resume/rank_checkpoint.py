"""Reading a checkpoint that was verified: weights_only where it can be, rank by rank."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hpc_train.errors import ConfigError
from hpc_train.runs.checkpoints import MODEL_FILE
from hpc_train.training.resume.manifest import Manifest, find_file_problem
from hpc_train.training.resume.rng import capture_rngs, restore_rngs
from hpc_train.training.resume.sample_order import mixed_seed
from hpc_train.training.resume.saving import SHARDS, rank_file, say_loudly
from hpc_train.training.resume.seeds import seed_everything
from hpc_train.training.taken_over import TakenOver

# torch/_weights_only_unpickler.py, inside of torch.load's advice.
_NOT_ALLOWED = re.compile(r"Unsupported global: GLOBAL ([\w.]+) was not an allowed global")


def load_tensors(path: Path) -> Any:
    """What torch.save wrote, on the CPU.

    A file with objects other than tensors and plain values (a user's hyperparameters, a callback's
    state) is read in full, which can run code: it is one of this run's own, and was verified.

    Raises:
        CheckpointError: it is damaged, or cannot be read on this node.
    """
    try:
        return _load(path)
    except Exception as error:  # whatever torch makes of a damaged file that nobody verified
        problem = find_file_problem(path)
        if problem is None:
            raise
        raise problem from error


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        say_loudly(f"{path.name} holds more than tensors and is read in full{_because(error)}")
        return torch.load(path, map_location="cpu", weights_only=False)


def _because(error: pickle.UnpicklingError) -> str:
    """What it holds, by torch's own words; without its advice and its colours."""
    found = _NOT_ALLOWED.search(str(error))
    return f": {found[1]}" if found else ""


@dataclass(frozen=True)
class RankCheckpoint:
    """A verified checkpoint, with what this rank saved of itself.

    Attributes:
        own: This rank's file; rank 0's, with fresh RNGs, where there was no such rank.
        taken_over: Whose running means this rank goes on with.
    """

    path: Path
    manifest: Manifest
    own: dict[str, Any]
    world_size: int
    taken_over: TakenOver

    @classmethod
    def read(cls, path: Path, manifest: Manifest, *, rank: int, world_size: int) -> RankCheckpoint:
        """Read what `rank` needs beside the model.

        Raises:
            OSError: as the file system says.
        """
        known = rank < manifest.world_size
        own = load_tensors(path / rank_file(rank if known else 0))
        if not known:
            own["inside"]["rng"] = reseeded(mixed_seed(own["seed"], rank, manifest.step))
        old = manifest.world_size
        place = rank % min(old, world_size)
        others = [
            own if it == rank else load_tensors(path / rank_file(it))
            for it in range(place, old, world_size)
        ]
        taken_over = TakenOver(
            ranks=tuple(it["inside"] for it in others),
            share=len(range(place, world_size, old)),
            first=known,
            more=world_size > old,
        )
        return cls(path, manifest, own, world_size, taken_over)

    @property
    def state_path(self) -> Path:
        """The file that rank 0 wrote."""
        return self.path / MODEL_FILE

    @property
    def shards_path(self) -> Path:
        """The folder that all ranks wrote into, where the state is sharded."""
        return self.path / SHARDS

    @property
    def model_path(self) -> Path:
        """What Lightning reads: the file, or the folder of shards."""
        return self.state_path if self.state_path.exists() else self.shards_path

    @property
    def samples(self) -> int | None:
        """Consumed by all ranks together in the epoch; None for a stream."""
        return self.manifest.samples

    @property
    def samples_in_set(self) -> int | None:
        """Of the train set, where it is map-style."""
        size: int | None = self.own["samples_in_set"]
        return size

    def stream(self, accumulate: int) -> dict[str, Any]:
        """This rank's state of an iterable train set.

        Args:
            accumulate: Micro batches a step now; a set without a state is read again by steps.

        Raises:
            ConfigError: the stream has a state per rank, and there are other ranks now.
        """
        state: dict[str, Any] | None = self.own["stream"]
        if state is None:
            raise ConfigError(
                "the train set was map-style when the checkpoint was saved, and is iterable now",
                "start a new run",
            )
        if self.manifest.world_size == self.world_size:
            return state
        if set(state) == {"batches"}:
            steps = -(-int(state["batches"]) // self.manifest.accumulate)
            return {"batches": steps * accumulate}
        raise ConfigError(
            f"each of {self.manifest.world_size} ranks saved its own position in the iterable "
            f"train set, and there are {self.world_size} ranks now",
            f"go on with {self.manifest.world_size} ranks, or use a map-style set",
        )


def reseeded(seed: int) -> dict[str, Any]:
    """RNG states that begin at `seed`, for a rank that was not there before."""
    outside = capture_rngs()
    seed_everything(seed >> 32)
    fresh = capture_rngs()
    restore_rngs(outside)
    return fresh
