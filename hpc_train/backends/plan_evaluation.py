"""What tests, validates or predicts with the model of a run: a run of its own, beside it."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.backends.find_weights import FoundWeights, choose_and_hold
from hpc_train.backends.moved_run import at_its_place
from hpc_train.backends.not_saved_yet import RUN
from hpc_train.backends.replan import python_of
from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.load import LoadedConfig, load, with_values
from hpc_train.config.python_text.modules import UNREADABLE
from hpc_train.config.validate import check, check_methods, search_path_of
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

_KEY = re.compile(r"\b(?:model|data|trainer|loggers)\.(?:\w+\.)*class_path(?=:)")
_MEANT = re.compile(r"(?:did you mean '|^write )(\w+(?:\.\w+)+)(?:'\?|$)")


@dataclass(frozen=True)
class PlannedEvaluation:
    """The parts of its submission; the plan's folders are relative to `workdir`."""

    loaded: LoadedConfig
    plan: Plan
    workdir: Path
    weights: FoundWeights
    held: Path  # a folder with links to them, to move or to remove
    notes: tuple[str, ...] = ()  # what is kept of the run where another class is named

    def start(self, cluster: str) -> RunDir:
        """Make the run of it, and submit that to `slurm` or `local`."""
        from hpc_train.backends.start_run import make_and_start

        try:
            return make_and_start(self.loaded, self.plan, self.workdir, cluster, self.held)
        finally:
            shutil.rmtree(self.held, ignore_errors=True)


def _forget_what_has_passed(loaded: LoadedConfig) -> None:
    """The training has begun: what it was to wait for says nothing of its evaluation."""
    for key in ("begin", "dependency"):
        if loaded.origins.of(f"slurm.{key}") != COMMAND_LINE:
            setattr(loaded.config.slurm, key, None)


def _with_its_arguments(
    loaded: LoadedConfig, run: RunDir, workdir: Path
) -> tuple[LoadedConfig, tuple[str, ...]]:
    """The config whose new classes have what the run's were given, as far as they take it.

    Its weights are those of a model of these arguments: without them another one would be tested.

    Args:
        loaded: The run's config with what was typed.
        workdir: Where the classes are.

    Returns:
        And a line on what was kept, and one on what was left out.
    """
    composed = loaded.composed
    if not composed.dropped:
        return loaded, ()
    from hpc_train.config.dropped_arguments import as_typed, notes_on_dropped, still_taken

    path = search_path_of(loaded.config.env, workdir, sys.path)
    kept = still_taken(composed.dropped, composed.values, loaded.origins, path)
    notes = []
    if kept:
        places = load(run.config).origins
        of = {key: places.of(key) for key in kept}
        loaded = with_values(loaded, kept, of, without="")
        words = " ".join(as_typed(key, it) for key, it in kept.items())
        notes.append(f"the class that is typed keeps the run's arguments: {words}")
    composed = loaded.composed
    notes += notes_on_dropped(composed.dropped, composed.values, loaded.origins, path)
    return loaded, tuple(notes)


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
        told = [(it, _KEY.search(it.message), _MEANT.search(it.hint)) for it in _all(error)]
        # Those that have another name by now, which the key takes.
        if words := [f"{key[0]}={meant[1]}" for _, key, meant in told if key and meant]:
            back += f", or hpc-train {verb} {word} {' '.join(words)}"
        hint = f"the run was trained with another code: {changed}; {back}"
        refused = ConfigError(error.message, hint)
        refused.others = tuple(it for it, key, meant in told[1:] if not (key and meant))
        raise refused from error


def _all(error: ConfigError) -> Sequence[HpcTrainError]:
    return (error, *error.others)


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


def _training_of(run: RunDir, verb: Verb) -> Plan:
    """The plan of the training whose model is evaluated.

    Raises:
        UsageError: it is no training of a config's; ConfigError when it carries none.
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
    return before


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
    before = _training_of(run, verb)
    loaded = load(run.config, overrides, flags=flags)

    def check_code(folder: Path) -> None:
        check(_with_its_arguments(loaded, run, folder)[0], workdir=folder)

    placed, _ = at_its_place(run, before, check_code)
    workdir, runs = Path(placed.workdir), Path(before.runs_dir)
    loaded, notes = _with_its_arguments(loaded, run, workdir)
    config = loaded.config
    config.name = f"{before.name}-{verb}"
    config.init_from, config.init_leave_out = None, []  # the training's own
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
    return PlannedEvaluation(loaded, plan, workdir, weights, held, notes)
