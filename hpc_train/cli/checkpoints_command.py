"""`hpc-train checkpoints`: what a run has saved, and whether it is whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.common import (
    json_option,
    print_json,
    print_notes,
    print_table,
    run_argument,
    runs_dir_option,
)
from hpc_train.cli.finding import run_to_read
from hpc_train.codec import read_object
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS
from hpc_train.python_notes import with_notes
from hpc_train.runs.checkpoints import MODEL_FILE, removed_step, tell_removed
from hpc_train.runs.events import read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import (
    OF_SCRIPT,
    SavedModel,
    best_models,
    is_of_script,
    never_logged,
    newest_undecided,
    none_of_its_own,
    without_torn,
)
from hpc_train.runs.trials import trial_without_models

if TYPE_CHECKING:
    from hpc_train.api import Run
    from hpc_train.training.resume.checkpoint import CheckedCheckpoint

NO_MODELS = "no best model: a ModelCheckpoint with a monitor under trainer.callbacks saves it"
UNDECIDED = "no best model: no metric decides; set monitor in the ModelCheckpoint"
HEADER = ("STEP", "SAVED", "METRIC", "VALID", "PATH", "WHY")


@click.command("checkpoints")
@run_argument
@click.option("--verify", is_flag=True, help="Read every file and compare its hash.")
@click.option("--best", is_flag=True, help="Print the path of the best model alone.")
@click.option("--monitor", metavar="NAME", help="The metric that decides which is the best.")
@runs_dir_option
@json_option
def command(
    run: str,
    verify: bool,
    best: bool,
    monitor: str | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """List what RUN has saved, the newest first.

    First what a run goes on from; broken ones are named and passed over. Then the models that its
    ModelCheckpoints have saved, with the metric. Without --verify sizes are compared, and the files
    are not read.
    """
    found = run_to_read(run, runs_dir)
    named = {
        "schema_version": 1,
        "run": found.directory.run_id,
        "run_dir": str(found.directory.path),
    }
    if best or monitor:
        _print_best(found, monitor, named if as_json else None)
        return 0
    states, models = found.checkpoints(verify=verify), found.models()
    if as_json:
        rows = [
            {"step": one.step, "path": one.path, "valid": one.valid, "reason": one.reason or ""}
            for one in states
        ]
        of_models = [
            {**it.to_json(), "valid": not (why := it.why_torn), "reason": why} for it in models
        ]
        print_json({**named, "checkpoints": rows, "models": of_models})
        return 0
    if states or models:
        print_table(HEADER, [*map(_state_row, states), *_model_rows(models)])
    else:
        click.echo(_why_none(found.directory), err=True)
    whole, torn = without_torn(models)
    if not best_models(whole):
        _tell_no_best(found.directory, whole, torn)
    _tell_how_to_read(found.directory, states, whole)
    return 0


def _print_best(found: Run, monitor: str | None, document: dict[str, Any] | None) -> None:
    """The path of the best model for a shell, or the document with it."""
    chosen, notes = with_notes(lambda: found.best_model(monitor))
    print_notes(notes)
    if document is not None:
        print_json({**document, "best": chosen.to_json()})
        return
    if chosen.monitor and chosen.score is None:
        click.echo(f"{chosen.monitor} was NaN whenever a model was saved", err=True)
    click.echo(chosen.path)


def _tell_how_to_read(
    run: RunDir, states: Sequence[CheckedCheckpoint], models: Sequence[SavedModel]
) -> None:
    """The line that loads the best model, else the newest state: a state is a folder."""
    model = (read_object(run.plan).get("training") or {}).get("model") or {}
    module, _, name = str(model.get(CLASS_PATH, "")).rpartition(".")
    newest = next((str(it.path / MODEL_FILE) for it in states if it.valid), "")
    best = [it.path for it in best_models(models).values() if Path(it.path).is_file()]
    file = best[0] if best else newest
    if not name or not Path(file).is_file():
        return
    # Given anew, since a class that has not called save_hyperparameters() has left none there.
    given = [f"{it}={_in_python(value)}" for it, value in (model.get(INIT_ARGS) or {}).items()]
    call = f"{name}.load_from_checkpoint({', '.join([repr(file), *given])})"
    click.echo(f"in Python: from {module} import {name}; {call}", err=True)


def _in_python(value: object) -> str:
    """A plain value; of an object of its own, which the plan has as its class, three points."""
    return "..." if CLASS_PATH in json.dumps(value) else repr(value)


def _why_none(run: RunDir) -> str:
    removed = removed_step(run, attempts_in(read_events(run.events)))
    if removed and is_of_script(run):
        of_script = (
            "of a script without a Trainer of Lightning's nothing but its own files is saved"
        )
        return f"no checkpoints: {of_script}; of one with it they have been removed"
    return f"no checkpoints: {tell_removed(removed)}" if removed else "no checkpoints yet"


def _tell_no_best(run: RunDir, models: Sequence[SavedModel], torn: Sequence[SavedModel]) -> None:
    if any(it.monitor for it in torn):
        click.echo("no best model that is whole", err=True)
        return
    why = never_logged(run)
    of_none = f"no best model: {OF_SCRIPT}" if is_of_script(run) else NO_MODELS
    if saved_none := none_of_its_own(run):
        of_none = f"no best model: {saved_none}"
    why = why or trial_without_models(run)
    told = UNDECIDED if newest_undecided(models) else of_none
    click.echo(f"no best model: {why[0]}; {why[1]}" if why else told, err=True)


def _state_row(one: CheckedCheckpoint) -> tuple[str, ...]:
    valid = "yes" if one.valid else "no"
    return str(one.step), "state", "", valid, str(one.path), one.reason or ""


def _model_rows(models: Sequence[SavedModel]) -> Iterator[tuple[str, ...]]:
    best = {model.path for model in best_models(without_torn(models)[0]).values()}
    for model in models:
        kind = "last" if model.last else "best" if model.path in best else "model"
        why = model.why_torn
        yield str(model.step), kind, model.metric_text, "no" if why else "", model.path, why
