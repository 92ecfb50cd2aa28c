"""What tests, validates or predicts with the model of a run: a run of its own, beside it."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.backends.find_weights import FoundWeights, choose_and_hold
from hpc_train.backends.moved_run import at_its_place
from hpc_train.backends.not_saved_yet import RUN
from hpc_train.backends.replan import python_of
from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.load import LoadedConfig, load
from hpc_train.config.modules import UNREADABLE
from hpc_train.config.validate import check, check_methods
from hpc_train.errors import ConfigError, HpcTrainError, UsageError
from hpc_train.plan.evaluations import NEEDED
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan, Verb
from hpc_train.plan.shape import shape_of
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import code_changes
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import find_run, folders
from hpc_train.runs.run_word import run_word
from hpc_train.runs.weights_arguments import run_of_weights

_KEY = re.compile(r"\b(?:model|data)\.class_path\b")
_MEANT = re.compile(r"did you mean '(\w+(?:\.\w+)+)'")


@dataclass(frozen=True)
class PlannedEvaluation:
    """The parts of its submission; the plan's folders are relative to `workdir`."""

    loaded: LoadedConfig
    plan: Plan
    workdir: Path
    weights: FoundWeights
    held: Path  # a folder with links to them, to move or to remove


def _forget_what_has_passed(loaded: LoadedConfig) -> None:
    """The training has begun: what it was to wait for says nothing of its evaluation."""
    for key in ("begin", "dependency"):
        if loaded.origins.of(f"slurm.{key}") != COMMAND_LINE:
            setattr(loaded.config.slurm, key, None)


def _check_that_it_fits(loaded: LoadedConfig, run: RunDir, workdir: Path, verb: Verb) -> None:
    """Refuse what the classes of today do not take; the run's own file is not to be edited.

    Raises:
        ConfigError: as `check` says it, with the files that have changed since the run.
    """
    try:
        check(loaded, workdir=workdir)
    except ConfigError as error:
        changed = code_changes(run) if str(run.config) in error.message else ""
        if not changed or error.hint.startswith(UNREADABLE):
            raise
        word = run_word(run.path)
        back = f"take that back (hpc-train diff {word} shows it)"
        key, meant = _KEY.search(error.message), _MEANT.search(error.hint)
        if key and meant:  # it has another name by now, which the key takes
            back += f", or hpc-train {verb} {word} {key[0]}={meant[1]}"
        hint = f"the run was trained with another code: {changed}; {back}"
        raise ConfigError(error.message, hint) from error


_ARE = {"test": "a test", "validate": "a validation", "predict": "a prediction"}


def _no_training(run: RunDir, before: Plan, verb: Verb) -> UsageError:
    """The refusal of what is an evaluation itself, with the training whose model it takes."""
    what = f"{run.name} ({run.run_id}) is {_ARE.get(before.verb, 'a bench')}"
    name = before.name.removesuffix(f"-{before.verb}")
    try:
        training = find_run(name, folders(Path(before.runs_dir))) if name != before.name else None
    except HpcTrainError:
        training = None
    its = run_of_weights(Path(before.weights or ""))
    if training and its and its.run_id != training.run_id and its.name == training.name:
        name = its.run_id  # a newer one has its name
    if training is None:
        return UsageError(f"{what}, and no training", "name the training's run")
    return UsageError(f"{what} of {training.name}", f"hpc-train {verb} {shlex.quote(name)}")


def plan_evaluation(
    run: RunDir, verb: Verb, choice: str, overrides: Sequence[str], flags: Mapping[str, object]
) -> PlannedEvaluation:
    """Decide it from the run's config: its shape and micro batch, unless they are changed.

    Args:
        choice: Which weights, see `weights_of_run`.

    Raises:
        HpcTrainError: there are no weights.
        ConfigError: the classes lack a method, or the run carries no config.
    """
    if verb not in NEEDED:
        raise UsageError(f"{verb!r} is no evaluation", f"write one of {', '.join(NEEDED)}")
    before = read_plan(run)
    if before.verb != "fit":
        raise _no_training(run, before, verb)
    if before.script is not None:
        raise UsageError(
            f"{run.name} ({run.run_id}) is a script, which makes the model and the data itself",
            f"call trainer.{verb} in {before.script.path}",
        )
    if not run.config.is_file():
        raise ConfigError(
            f"{run.path} was made by a rendered script, which carries no config",
            "submit the training with hpc-train submit, or call trainer.test yourself",
        )
    loaded = load(run.config, overrides, flags=flags)
    placed, _ = at_its_place(run, before, lambda folder: check(loaded, workdir=folder))
    config, workdir, runs = loaded.config, Path(placed.workdir), Path(before.runs_dir)
    config.name = f"{before.name}-{verb}"
    config.init_from = None  # the training's own
    config.snapshot.mode = "none"  # it runs in the training's folder, which may be a copy
    _forget_what_has_passed(loaded)
    # No gradient is shared, so that any number of ranks will do.
    config.micro_batch_size = before.batch.micro_batch_size
    config.global_batch_size = before.batch.micro_batch_size * shape_of(config).world_size
    _check_that_it_fits(loaded, run, workdir, verb)
    check_methods(loaded, NEEDED[verb], verb, workdir=workdir)
    python, origins = python_of(before), loaded.origins
    decided = make_plan(config, workdir=workdir, python=python, for_script=True, origins=origins)
    if not runs.is_dir() or any(word.startswith("runs_dir=") for word in overrides):
        runs = workdir / Path(config.runs_dir).expanduser()
    then = f"hpc-train {verb} {RUN}{f' --ckpt {choice}' if choice else ''}"
    weights, held = choose_and_hold(run, choice, runs, then)  # last: it makes a folder
    config.init_from = str(weights.path)
    plan = dataclasses.replace(decided, verb=verb, weights=config.init_from)
    return PlannedEvaluation(loaded, plan, workdir, weights, held)
