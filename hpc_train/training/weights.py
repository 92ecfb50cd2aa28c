"""The weights that a model begins with: of another run, or of a file in Lightning's format."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from hpc_train.errors import CheckError
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import SUBMIT_AGAIN
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import code_changes
from hpc_train.runs.run_word import run_word
from hpc_train.runs.weights_arguments import OtherArgument, other_arguments, run_of_weights
from hpc_train.training.resume.rank_checkpoint import load_tensors
from hpc_train.training.weight_prefixes import with_own_names

# torch/nn/modules/module.py, `_load_from_state_dict` and `load_state_dict`.
_SHAPES = re.compile(
    r"with shape (?:torch\.Size\()?(\[[\d, ]*\])\)? from checkpoint, *the shape in current model is"
    r" (?:torch\.Size\()?(\[[\d, ]*\])"
)
_KEYS = re.compile(r"(?:Missing|Unexpected) key\(s\)|missing \[|unexpected \[")


def weights_path(run: RunDir, plan: Plan) -> Path:
    """The run's own link to the weights, or what the plan names where there can be no link."""
    named = Path(plan.weights)
    own = run.weights / named.name
    return own if own.exists() else named


def forget_weights(run: RunDir) -> None:
    """Take away the run's own link, once they have served: it would keep a deleted file's room."""
    shutil.rmtree(run.weights, ignore_errors=True)


def load_weights(model: nn.Module, path: Path, plan: Plan | None = None) -> None:
    """Put the weights in `path` into the model, and nothing else of it: all, and no others.

    Args:
        model: What is trained.
        path: Of the weights.
        plan: Of the run, where a fix is to name what the model of the weights had.

    Raises:
        CheckError: they do not fit, and which keys are missing or too many.
        CheckpointError: the file is damaged.
    """
    with told_in_one_line(model, path, plan):
        if path.is_dir():
            _load_shards(model, path)
            return
        state, said = with_own_names(_state_dict(path), model.state_dict().keys())
        if said:
            print(f"weights of {path}: {said}", flush=True)  # noqa: T201 - a rank's log
        model.load_state_dict(state)


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
def told_in_one_line(model: nn.Module, path: Path, plan: Plan | None = None) -> Iterator[None]:
    """Make one line of what torch says where a state_dict does not fit the model."""
    try:
        yield
    except RuntimeError as error:
        if "loading state_dict for" not in str(error):
            raise
        said = " ".join(str(error).split()).partition(": ")[2]
        more = f"{said[:400]} ..." if len(said) > 400 else said
        anew = "; without init_from it begins anew" if plan and plan.verb == "fit" else ""
        raise CheckError(
            f"the weights in {path} do not fit {type(model).__name__}: {more}",
            f"{_fix(said, plan)}{anew}",
        ) from error


def _fix(said: str, plan: Plan | None) -> str:
    """The arguments that the model of the weights had, to type; what to do where none is known."""
    run = run_of_weights(Path(plan.weights)) if plan else None
    model = plan.training.model if plan else None
    others = []
    if run and model:
        path = [str(Path.cwd()), *sys.path]
        others = other_arguments(run, model.class_path, model.init_args, path)
    needed = _of_shapes(said, others)
    if not run or not needed:
        had = "the init_args it had then"
        if run and (changed := code_changes(run)):
            had += f", or its code: {changed} (hpc-train diff {run_word(run.path)})"
        return f"they are of another model: name others, or give the model {had}"
    had = f"{run.name} ({run.run_id}) had"
    if not all(it.typed for it in needed):
        return f"they are of another model: name others; {had} {', '.join(it.had for it in needed)}"
    typed = " ".join(it.typed for it in needed)
    if plan and plan.verb != "fit":
        return f"hpc-train {plan.verb} {run_word(run.path)} {typed}, as {had}"
    return f"{SUBMIT_AGAIN} {typed} as {had}, or name the weights of such a model"


def _of_shapes(said: str, others: list[OtherArgument]) -> list[OtherArgument]:
    """Those that tell by their numbers each size that differs; all where they do not.

    A layer may have a multiple of such a number: 128 for 32 that is now 256 for 64.
    """
    sizes = [
        (int(was), int(now))
        for shapes in _SHAPES.findall(said)
        for was, now in zip(*(re.findall(r"\d+", it) for it in shapes), strict=False)
        if was != now
    ]
    found = {pair: [it for it in others if _is_scaled((it.was, it.now), pair)] for pair in sizes}
    if not found or not all(found.values()) or _KEYS.search(said):
        return others
    return [it for it in others if any(it in many for many in found.values())]


def _is_scaled(values: tuple[Any, Any], sizes: tuple[int, int]) -> bool:
    """Whether two sizes are the same multiple of two whole numbers."""
    was, now = values
    if type(was) is not int or type(now) is not int or min(was, now) < 1:
        return False
    return sizes[0] * now == sizes[1] * was and sizes[0] % was == 0


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
