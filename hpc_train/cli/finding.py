"""The run that a word on the command line means, and what is said where it is another folder's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from hpc_train import api
from hpc_train.cli.common import print_notes, shell_word
from hpc_train.config.words import NEWEST
from hpc_train.errors import HpcTrainError, NoSuchRunError, UsageError
from hpc_train.plan.evaluations import NEEDED
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import (
    all_runs,
    find_run,
    folders,
    is_part_of_id,
    matching_runs,
    newest_run,
    refuse_part_of_ids,
)
from hpc_train.runs.sweep_dir import find_point
from hpc_train.runs.this_folder import InFolderOfRuns, is_own, means_another_folders

_VALUE = re.compile(r"[a-z_]\w*(?:\.\w+)*=.*", re.DOTALL)
_MOST_READ = 200  # plans, each a file of a shared file system


def run_to_read(word: str, runs_dir: Path | None = None) -> api.Run:
    """The run that is meant; the folder is named where a name has led to another one's.

    Raises:
        NoSuchRunError: there is none; where its job is still there, that is said.
    """
    found = _found(word, runs_dir, lambda: [api.Run.find(word, runs_dir).directory])[0]
    tell_folder(word, found.name, found, runs_dir)
    if is_part_of_id(word, found):
        _tell_others(word, found, runs_dir)
    return api.Run(found)


def newest_to_read(runs_dir: Path | None) -> RunDir:
    """The newest run; the folder is named where that is another one.

    Raises:
        NoSuchRunError: there is none anywhere.
    """
    found = newest_run(runs_dir)
    tell_folder("", found.name, found, runs_dir)
    return found


def name_of_newest_here(*, training: bool = False) -> str:
    """The name of this folder's newest run, quoted for a shell; empty where it has none.

    Args:
        training: Whether its newest training is meant, and neither a test nor a script's run.
    """
    where = folders(None)
    try:
        found = next(_trainings(where)) if training else newest_run(None)
        is_named = found.name not in NEWEST and find_run(found.name, where).path == found.path
    except (HpcTrainError, StopIteration):
        return ""
    return shell_word(found.name if is_named else found.run_id) if is_own(found, where) else ""


def _trainings(where: Sequence[Path]) -> Iterator[RunDir]:
    """This folder's trainings with a config, the newest first."""
    for run in all_runs(where)[:_MOST_READ]:
        with suppress(HpcTrainError):
            plan = read_plan(run) if is_own(run, where) else None
            if plan is not None and plan.verb == "fit" and plan.script is None:
                yield run


def runs_to_change(word: str, runs_dir: Path | None) -> list[RunDir]:
    """The runs that are meant, the newest first; another folder's by its id alone.

    Raises:
        NoSuchRunError: there is none, or a name has led to another folder's.
        UsageError: several have an id that begins so.
    """
    where = folders(runs_dir)
    if point := find_point(word, where):
        return [point]
    found = _found(word, runs_dir, lambda: matching_runs(word, where, to_change=True), change=True)
    refuse_part_of_ids(word, found)
    return found


def _tell_others(word: str, found: RunDir, runs_dir: Path | None) -> None:
    """Say which run is meant where several have an id that begins so, and where it is."""
    where = folders(runs_dir)
    count = len(matching_runs(word, where))
    if count > 1:
        what = f"{count} runs have ids with {word}"
        print_notes([f"{what}; the newest is {found.run_id} ({found.name})"])
    if not is_own(found, where):
        print_notes([f"{found.run_id} is in {found.path.parent.parent}"])


def _found(
    word: str, runs_dir: Path | None, find: Callable[[], list[RunDir]], *, change: bool = False
) -> list[RunDir]:
    """What `find` gives; else the run whose folder was moved since its job was submitted.

    Args:
        change: Something is to be done to it: another folder's is then meant by its id.

    Raises:
        NoSuchRunError: with the job, where one has no run, or the run's folder is removed.
    """
    try:
        return find()
    except NoSuchRunError:
        _refuse_value(word)
        from hpc_train.backends import cancel, gone_folders  # on the way to an error

        where = folders(runs_dir)
        run, was = gone_folders.moved_run(word, where) or (None, None)
        if run and not (change and not is_own(run, where)):
            print_notes([f"no run answers to {word!r}: {was} was moved to {run.path}"])
            return [run]
        cancel.refuse_orphan(word)
        gone_folders.refuse_removed(word)
        cancel.refuse_foreign(word)
        raise


def _refuse_value(word: str) -> None:
    """Raise for KEY=VALUE in the place of RUN, which comes before it."""
    context = click.get_current_context(silent=True)
    if context is None or not _VALUE.fullmatch(word):
        return
    command, name = context.command_path, context.info_name
    newest = "" if name == "cancel" else name_of_newest_here(training=name in NEEDED)
    takes_values = any(it.name == "overrides" for it in context.command.params)
    typed = f"{command} {newest or 'RUN'}{f' {shell_word(word)}' if takes_values else ''}"
    which = f" takes this folder's newest {'training' if name in NEEDED else 'run'}"
    raise UsageError(
        f"{word!r} is a value, and no run: RUN stands before it"
        if takes_values
        else f"{word!r} is a value, and no run",
        f"{typed}{which if newest else '; `hpc-train list` names the runs'}",
    )


def tell_folder(word: str, name: str, found: InFolderOfRuns, runs_dir: Path | None = None) -> None:
    """Say on stderr where a run lies that only its name has led to, in another folder.

    Args:
        word: As it was typed; empty where the newest is meant.

    Raises:
        NoSuchRunError: this folder's run of that name is gone, and its job is alive.
    """
    where = folders(runs_dir)
    if means_another_folders(word or NEWEST[0], name, found, where):
        if word:
            from hpc_train.backends import cancel

            cancel.refuse_orphan(word, where.own)
        what = f"no run of this folder answers to {word!r}" if word else "this folder has no runs"
        print_notes([f"{what}: {found.path.name} is in {found.path.parent.parent}"])
