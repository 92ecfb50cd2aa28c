"""The weights that a model begins with: of another run, or of a file in Lightning's format."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from hpc_train.config.fit.left_out_layers import KEY, is_left_out
from hpc_train.errors import CheckError, HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import SUBMIT_AGAIN
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import code_changes
from hpc_train.runs.run_word import run_word
from hpc_train.runs.weights_arguments import OtherArgument, other_arguments, run_of_weights
from hpc_train.training.failures.weight_prefixes import with_own_names
from hpc_train.training.fresh_layers import FreshLayers, misfits
from hpc_train.training.resume.rank_checkpoint import load_tensors

# torch/nn/modules/module.py, `_load_from_state_dict` and `load_state_dict`.
_SHAPES = re.compile(
    r"with shape (?:torch\.Size\()?(\[[\d, ]*\])\)? from checkpoint, *the shape in current model is"
    r" (?:torch\.Size\()?(\[[\d, ]*\])"
)
_MOST_LAYERS = 8  # in a line to type
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

    Layers of the plan's `weights_left_out` are left as they are.

    Args:
        model: What is trained.
        path: Of the weights.
        plan: Of the run, where a fix is to name what the model of the weights had.

    Raises:
        CheckError: they do not fit, and which keys are missing or too many.
        CheckpointError: the file is damaged.
    """
    patterns = plan.weights_left_out if plan else []
    named = Path(plan.weights) if plan and plan.weights else path  # as the user has it
    with told_in_one_line(model, named, plan) as layers:
        if path.is_dir():
            _load_shards(model, path, patterns, layers)
            return
        own = model.state_dict()
        kept = [name for name in own if not is_left_out(name, patterns)]
        state, said = with_own_names(_state_dict(path, named), own.keys(), kept)
        _say(named, said)
        fresh = FreshLayers.of(own.keys(), state.keys(), patterns, named)
        _say(named, fresh.said)
        layers += misfits(fresh.kept(own), fresh.kept(state))
        model.load_state_dict({**fresh.kept(state), **fresh.fresh(own)})


def _say(path: Path, said: str) -> None:
    if said:
        print(f"weights of {path}: {said}", flush=True)  # noqa: T201 - a rank's log


def _state_dict(path: Path, named: Path) -> Mapping[str, Any]:
    """That of a checkpoint of Lightning's, or what `torch.save(model.state_dict(), PATH)` wrote.

    Args:
        path: What is read.
        named: As the user has it.
    """
    held = load_tensors(path)
    if isinstance(held, Mapping):
        if isinstance(held.get("state_dict"), Mapping):
            return cast("Mapping[str, Any]", held["state_dict"])
        if held and all(isinstance(value, Tensor) for value in held.values()):
            return held
    what = f"has {', '.join(map(str, held))}" if isinstance(held, Mapping) else type(held).__name__
    raise CheckError(
        f"{named} holds no state_dict: {what[:300]}",
        "torch.save(model.state_dict(), PATH) makes one",
    )


@contextlib.contextmanager
def told_in_one_line(model: nn.Module, path: Path, plan: Plan | None = None) -> Iterator[list[str]]:
    """Make one line of what torch says where a state_dict does not fit the model.

    Yields:
        A list for the layers without which the rest would fit.
    """
    layers: list[str] = []
    try:
        yield layers
    except RuntimeError as error:
        if "loading state_dict for" not in str(error):
            raise
        said = " ".join(str(error).split()).partition(": ")[2]
        more = f"{said[:400]} ..." if len(said) > 400 else said
        anew = "; without init_from it begins anew" if plan and plan.verb == "fit" else ""
        raise CheckError(
            f"the weights in {path} do not fit {type(model).__name__}: {more}",
            f"{_without(layers, plan)}{_fix(said, plan)}{anew}",
        ) from error


def _without(layers: list[str], plan: Plan | None) -> str:
    """`submit again with init_leave_out=[head], ...; or `, in front of what else may be done."""
    if not layers or len(layers) > _MOST_LAYERS or plan is None or plan.verb != "fit":
        return ""
    typed = f"{KEY}=[{','.join([*plan.weights_left_out, *layers])}]"
    they = "this layer begins" if len(layers) == 1 else "these layers begin"
    return f"{SUBMIT_AGAIN} {typed}, and {they} fresh; or "


def _fix(said: str, plan: Plan | None) -> str:
    """The arguments that the model of the weights had, to type; what to do where none is known."""
    run = run_of_weights(Path(plan.weights)) if plan else None
    model = plan.training.model if plan else None
    others = []
    if run and model:
        path = [str(Path.cwd()), *sys.path]
        saved = _saved_arguments(Path(plan.weights)) if plan else {}
        others = other_arguments(run, model.class_path, model.init_args, path, saved)
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


def _saved_arguments(path: Path) -> Mapping[str, Any]:
    """What `self.save_hyperparameters()` has put beside the weights; empty without it."""
    try:
        held = load_tensors(path) if path.is_file() else {}
    except HpcTrainError:
        return {}
    saved = held.get("hyper_parameters") if isinstance(held, Mapping) else None
    return saved if isinstance(saved, Mapping) else {}


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


def _load_shards(
    model: nn.Module, folder: Path, patterns: Sequence[str], layers: list[str]
) -> None:
    """Lightning's sharded strategies write the weights below `model` (FSDPStrategy)."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.state_dict_loader import load

    own = model.state_dict()
    saved = FileSystemReader(folder).read_metadata().state_dict_metadata
    held = {it.removeprefix("model."): saved[it] for it in saved if it.startswith("model.")}
    fresh = FreshLayers.of(own.keys(), held.keys(), patterns, folder)
    _say(folder, fresh.said)
    needed, names = fresh.kept(own), fresh.kept(held).keys()
    layers += misfits(needed, fresh.kept(held))
    if names != needed.keys():
        missing, others = sorted(needed.keys() - names), sorted(names - needed.keys())
        raise RuntimeError(f"loading state_dict for: missing {missing}, unexpected {others}")
    load({"model": needed}, checkpoint_id=str(folder), no_dist=True)
    model.load_state_dict(own)
