"""The weights that a model begins with: of another run, or of a file in Lightning's format."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from hpc_train.errors import CheckError
from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import RunDir
from hpc_train.training.resume.rank_checkpoint import load_tensors


def weights_path(run: RunDir, plan: Plan) -> Path:
    """The run's own link to the weights, or what the plan names where there can be no link."""
    named = Path(plan.weights)
    own = run.weights / named.name
    return own if own.exists() else named


def forget_weights(run: RunDir) -> None:
    """Take away the run's own link, once they have served: it would keep a deleted file's room."""
    shutil.rmtree(run.weights, ignore_errors=True)


def load_weights(model: nn.Module, path: Path) -> None:
    """Put the weights in `path` into the model, and nothing else of it: all, and no others.

    Raises:
        CheckError: they do not fit, and which keys are missing or too many.
        CheckpointError: the file is damaged.
    """
    with told_in_one_line(model, path):
        if path.is_dir():
            _load_shards(model, path)
            return
        model.load_state_dict(_state_dict(path))


def _state_dict(path: Path) -> Mapping[str, Any]:
    """That of a checkpoint of Lightning's, or what `torch.save(model.state_dict(), PATH)` wrote."""
    held = load_tensors(path)
    if isinstance(held, Mapping):
        if isinstance(held.get("state_dict"), Mapping):
            return cast("Mapping[str, Any]", held["state_dict"])
        if held and all(isinstance(value, Tensor) for value in held.values()):
            return held
    what = f"has {', '.join(map(str, held))}" if isinstance(held, Mapping) else type(held).__name__
    raise CheckError(
        f"{path} holds no state_dict: {what[:300]}",
        "torch.save(model.state_dict(), PATH) makes one",
    )


@contextlib.contextmanager
def told_in_one_line(model: nn.Module, path: Path) -> Iterator[None]:
    """Make one line of what torch says where a state_dict does not fit the model."""
    try:
        yield
    except RuntimeError as error:
        if "loading state_dict for" not in str(error):
            raise
        said = " ".join(str(error).split()).partition(": ")[2]
        more = f"{said[:400]} ..." if len(said) > 400 else said
        raise CheckError(
            f"the weights in {path} do not fit {type(model).__name__}: {more}",
            "they are of another model: name others, or give the model the init_args it had then",
        ) from error


def _load_shards(model: nn.Module, folder: Path) -> None:
    """Lightning's sharded strategies write the weights below `model` (FSDPStrategy)."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.state_dict_loader import load

    own = model.state_dict()
    saved = FileSystemReader(folder).read_metadata().state_dict_metadata
    names = {name.removeprefix("model.") for name in saved if name.startswith("model.")}
    if names != own.keys():
        missing, others = sorted(own.keys() - names), sorted(names - own.keys())
        raise RuntimeError(f"loading state_dict for: missing {missing}, unexpected {others}")
    load({"model": own}, checkpoint_id=str(folder), no_dist=True)
    model.load_state_dict(own)
