"""The plan of a run that goes on: as it was, or in another shape, never of another training."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hpc_train.backends.check_environment import check_environment, check_image
from hpc_train.backends.code_copy import renewed_copy, select_again
from hpc_train.backends.early_stops import ends_again
from hpc_train.backends.held_anew import hold_anew, notes_on_replaced
from hpc_train.backends.kept_in_a_run import (
    another_training,
    config_notes,
    kept_as_it_was,
    of_an_unknown_key,
    put_back,
    refuse_length_of_an_evaluation,
)
from hpc_train.backends.lengthen import (
    LENGTH_KEYS,
    check_longer,
    is_of_length,
    keep_finished,
    length_changes,
    refuse_end_behind,
    schedule_notes,
)
from hpc_train.backends.look_at_hosts import look_at_hosts
from hpc_train.backends.moved_in_queue import look_for_its_folder
from hpc_train.backends.moved_run import at_its_place
from hpc_train.backends.nothing_left import nothing_left, render_again
from hpc_train.backends.observe import ask_again, read_history
from hpc_train.backends.shapes_given import shapes_of_slurm
from hpc_train.backends.started_by import refuse_several
from hpc_train.backends.submit_again import is_of_script, of_its_script, submit_again
from hpc_train.config.load import LoadedConfig, load
from hpc_train.config.show import to_yaml
from hpc_train.config.validate import check
from hpc_train.errors import CheckError, ConfigError, HpcTrainError
from hpc_train.plan.from_config import make_plan, result_hash
from hpc_train.plan.plan import Plan
from hpc_train.plan.script import render_script, script_elsewhere
from hpc_train.plan.shape import BatchSplitError
from hpc_train.plan.shell import BROUGHT
from hpc_train.plan.states import RunState
from hpc_train.runs.atomic import write_text
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.copies import note_origin
from hpc_train.runs.events import is_cancel_asked
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lock import waited_lock
from hpc_train.runs.ownership import not_yours
from hpc_train.runs.provenance import add_typed
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.run_word import run_word
from hpc_train.runs.session_words import start_again
from hpc_train.runs.snapshot import Selection, copy_at
from hpc_train.runs.status import SESSION, RunStatus
from hpc_train.slurm.dependencies import check_dependency

LOCK_WAIT_S = 60.0  # a busy controller takes so long for an sbatch


@dataclass(frozen=True)
class NextPlan:
    """What the next submission of a run is made of."""

    before: Plan
    plan: Plan
    script: str
    cluster: str  # slurm or local: where it was
    config: str = ""
    notes: tuple[str, ...] = ()  # what a longer training means, a line each
    typed: tuple[str, ...] = ()  # keys that `config` has otherwise than its file
    code: Selection | None = None  # in place of the run's snapshot
    last_job: str = ""  # the newest that carried the run as this was decided

    @contextlib.contextmanager
    def in_place(self, run: RunDir) -> Iterator[None]:
        """Put it in the place of the run's plan and script; the plan before is kept beside them.

        When it is refused in the block, all is as before.

        Raises:
            HpcTrainError: somebody else has resumed the run since this was decided.
        """
        if not self.plan.hosts:
            refuse_several(os.environ)
        look_at_hosts(self.plan, Path.cwd())
        with waited_lock(run.plan, wait_s=LOCK_WAIT_S), contextlib.ExitStack() as stack:
            self._refuse_where_another_resumed(run)
            stack.enter_context(self._plan_in_place(run))
            hold_anew(run, self.plan)
            if self.code is not None:
                stack.enter_context(renewed_copy(run, self.code))
            yield

    def _refuse_where_another_resumed(self, run: RunDir) -> None:
        job_id = newest_job_id(read_history(run.events))
        if job_id != self.last_job:
            raise HpcTrainError(
                f"{run.name} ({run.run_id}) has just been resumed as job {job_id}",
                f"it needs nothing: hpc-train status {run_word(run.path)} shows it",
            )

    @contextlib.contextmanager
    def _plan_in_place(self, run: RunDir) -> Iterator[None]:
        if self.plan is self.before:
            yield
            return
        files = [it for it in (run.script, run.config, run.environment) if it.is_file()]
        texts_before = {file: file.read_text(encoding="utf-8") for file in files}
        done = run.done.exists()
        kept = run.path / f"plan-before-{time.strftime('%Y%m%d-%H%M%S')}.json"
        write_text(kept, self.before.to_json())
        note_origin(run)
        write_text(run.script, self.script)
        write_text(run.plan, self.plan.to_json())
        if self.config:
            write_text(run.config, self.config)
            add_typed(run, self.typed)
        if done:
            keep_finished(run)
        try:
            yield
        except HpcTrainError:
            if done:
                run.done.touch()
            for file, text in texts_before.items():
                write_text(file, text)
            write_text(run.plan, self.before.to_json())
            kept.unlink()
            raise


def _refuse_anothers(status: RunStatus, run: RunDir) -> None:
    what = f"{status.name} ({status.run}) is a run"
    if anothers := not_yours(run.path, what, "resume"):
        weights = submit_again(run, f"init_from={run.path}")
        has_them = newest_step(run) and not is_of_script(run)
        raise HpcTrainError(anothers, f"with its weights: {weights}" if has_them else "")


def _refuse_what_goes_on_by_itself(
    status: RunStatus, run: RunDir, changed: Callable[[], NextPlan] | None
) -> None:
    """Refuse a run that has not ended.

    Args:
        changed: Raises for changes that a run which has ended is refused as well; None without any.
    """
    if not status.state.ended:
        what = f"{status.name} ({status.run}) is {status.state.value} as job {status.job_id}"
        word = run_word(run.path)
        if status.silence:  # the state is the last that is known
            raise HpcTrainError(
                f"{what} by its files, and {status.silence}",
                f"{ask_again(status.silence)}: hpc-train resume {word}",
            )
        trouble, _, way = status.trouble.partition(": ")
        if trouble:  # as a hold, or a key with which it never starts
            raise HpcTrainError(f"{what}, and does not start: {trouble}", way)
        moved, _, way = look_for_its_folder(run, status.job_id).partition(": ")
        if moved and status.state is RunState.PENDING and status.backend == "slurm":
            raise HpcTrainError(f"{what}; {moved}", way)
        if is_cancel_asked(read_history(run.events)):
            raise HpcTrainError(
                f"{what}, and is being cancelled: its ranks save first",
                f"hpc-train resume {word} once hpc-train status {word} says cancelled",
            )
        if changed and status.backend != SESSION:
            changed()
            saves = " (it saves)" if status.state is RunState.RUNNING else ""
            raise HpcTrainError(
                f"{what}, and keeps until its end what it was submitted with",
                f"hpc-train cancel {word} first{saves}, then the same command again",
            )
        raise HpcTrainError(
            what,
            f"it needs nothing: hpc-train status {word} shows it; hpc-train cancel {word} ends it",
        )
    if status.backend == SESSION:
        raise HpcTrainError(
            f"{status.name} ({status.run}) is a script of its own, with a Session",
            start_again(run),
        )


def plan_again(
    status: RunStatus,
    run: RunDir,
    overrides: Sequence[str],
    flags: Mapping[str, object],
    *,
    new_snapshot: bool = False,
) -> NextPlan:
    """Decide anew from the run's config with these overrides; nothing is written.

    Args:
        new_snapshot: The project's code of now takes the place of the run's copy.

    Raises:
        HpcTrainError: when the run is another user's, has not ended, is complete, or waits for a
            job that failed.
        ConfigError: when it would be another training, or there is no config to start from.
        CheckError: when the ranks cannot share the batch, with shapes that can; or its weights
            were replaced by what are none.
    """
    _refuse_anothers(status, run)
    planned = partial(_next_plan, status, run, overrides, flags, new_snapshot=new_snapshot)
    is_typed = bool(overrides) or any(value is not None for value in flags.values())
    _refuse_what_goes_on_by_itself(status, run, planned if is_typed or new_snapshot else None)
    again = planned()
    if again.cluster == "slurm":
        _refuse_a_wait_for_ever(status, again)
    notes = (*again.notes, *config_notes(run, again.before, again.typed, overrides))
    notes = (*notes, *notes_on_replaced(run, again.plan))
    return dataclasses.replace(again, last_job=status.job_id, notes=notes)


def _refuse_a_wait_for_ever(status: RunStatus, again: NextPlan) -> None:
    """A job that was to end well may have failed since the run was submitted."""
    dependency = dict(again.plan.slurm.options).get("dependency") or ""
    is_new = dependency != dict(again.before.slurm.options).get("dependency")
    check_dependency(dependency, "" if is_new else status.run)


def _next_plan(
    status: RunStatus,
    run: RunDir,
    overrides: Sequence[str],
    flags: Mapping[str, object],
    *,
    new_snapshot: bool,
) -> NextPlan:
    before = read_plan(run)
    cluster = "slurm" if status.backend == "slurm" else "local"
    completed = status.state is RunState.COMPLETED
    is_as_it_was = not overrides and all(value is None for value in flags.values())
    if completed and is_as_it_was:
        raise nothing_left(status, run, before)
    placed, moves = at_its_place(run, before, lambda folder: _check_code(run, before, folder))
    code = select_again(run, placed) if new_snapshot else None
    if is_as_it_was:
        if run.config.is_file():
            _check_here(load(run.config), run, placed, is_renewed=new_snapshot)
        if before.verb == "fit":  # an earlier resume may have given it this end
            refuse_end_behind(run, before)
        return _as_it_was(run, before, placed, cluster, moves, code)
    if not run.config.is_file():
        raise _no_config(status, run)
    try:
        loaded = load(run.config, overrides, flags=flags)
    except ConfigError as error:
        raise of_an_unknown_key(of_its_script(error, run), run, overrides, flags) from error
    _check_here(loaded, run, placed, is_renewed=new_snapshot)
    decided = _decided(run, placed, loaded, cluster)
    again = dataclasses.replace(decided, before=before, code=code, notes=tuple(moves))
    return _of_that_length(status, run, again, overrides)


def _of_that_length(
    status: RunStatus, run: RunDir, again: NextPlan, overrides: Sequence[str]
) -> NextPlan:
    """The plan, where the training may be as long as it says."""
    before, completed = again.before, status.state is RunState.COMPLETED
    changes = length_changes(before, again.plan)
    refuse_length_of_an_evaluation(before, changes, status)
    if completed and not changes:
        if before.verb == "fit" and any(map(is_of_length, overrides)):
            check_longer(run, again.plan)  # the end that it had was typed once more
        raise nothing_left(status, run, before)
    if completed:
        check_longer(run, again.plan)
    if before.verb == "fit":
        refuse_end_behind(run, again.plan)
    if not changes:
        return again
    early = ends_again(run, before) if completed else ""
    notes = (*again.notes, *([early] if early else []), *schedule_notes(run, again.plan))
    return dataclasses.replace(again, notes=notes)


def _no_config(status: RunStatus, run: RunDir) -> ConfigError:
    same = "go on in the same shape (resume without options), or submit the config anew"
    return ConfigError(
        f"{run.path} was made by a rendered script, which carries no config",
        render_again(status) if status.state is RunState.COMPLETED else same,
    )


def _as_it_was(
    run: RunDir, before: Plan, placed: Plan, cluster: str, moves: list[str], code: Selection | None
) -> NextPlan:
    script = run.script.read_text("utf-8")
    if not moves:
        return NextPlan(before, before, script, cluster, code=code)
    script = script_elsewhere(script, str(run.path))
    return NextPlan(before, placed, script, cluster, notes=tuple(moves), code=code)


def _check_code(run: RunDir, before: Plan, folder: Path) -> None:
    """Refuse a folder that has not the code of a run whose project is gone."""
    if not run.config.is_file():
        what = f"nothing tells whether {folder} has the code of a rendered script"
        raise ConfigError(what, f"bring {before.workdir} back")
    check(load(run.config), workdir=folder)


def _check_here(loaded: LoadedConfig, run: RunDir, before: Plan, *, is_renewed: bool) -> None:
    """What is checked of a new run: code and environment may have changed since the first time.

    Args:
        is_renewed: The code that is there gives way to another copy, so it is not looked at.
    """
    if not is_renewed:
        try:
            check(loaded, workdir=Path(before.workdir))
        except ConfigError as error:
            gone = put_back(error, run, Path(before.workdir))
            raise gone or kept_as_it_was(error, run, loaded) from error
    check_environment(loaded.config.env, Path(before.workdir), os.environ, loaded.origins)
    check_image(loaded.config.container, Path(before.workdir), loaded.origins)


def _decided(run: RunDir, before: Plan, loaded: LoadedConfig, cluster: str) -> NextPlan:
    try:
        with shapes_of_slurm(loaded.config, cluster):
            portable = make_plan(
                loaded.config,
                workdir=before.workdir,
                python=python_of(before),
                for_script=True,
                origins=loaded.origins,
            )
    except BatchSplitError as error:
        if loaded.config.global_batch_size != before.batch.global_batch_size:
            raise
        # The batch stays as it is in a run, so that only another shape helps.
        hint = "; ".join(filter(None, ("a run keeps its batch", error.shapes)))
        raise CheckError(error.message, hint) from error
    if not _is_same_training(before, portable):
        raise another_training(run, load(run.config), loaded)
    is_copy = copy_at(Path(before.workdir)) is not None
    if before.verb == "fit" and (loaded.config.snapshot.mode != "none") != is_copy:
        hint = "submit the changed config as a run of its own"
        raise loaded.origins.error("snapshot", "cannot change within a run", hint)
    portable = dataclasses.replace(
        portable,
        verb=before.verb,
        config_hash=before.config_hash,
        reopened_step=newest_step(run) if run.done.exists() else before.reopened_step,
    )
    again = portable.placed(before.workdir, before.runs_dir)
    script = render_script(portable, run_dir=str(run.path))
    typed = tuple(loaded.origins.typed())
    return NextPlan(before, again, script, cluster, to_yaml(loaded.config), typed=typed)


def python_of(before: Plan) -> str:
    """That of the ranks where no env brings one: as it was, else the one that types this."""
    return sys.executable if before.shell.python == BROUGHT else before.shell.python


def _is_same_training(before: Plan, plan: Plan) -> bool:
    """Whether nothing of what makes the result has changed but when it ends."""
    hashes = set()
    for one in (before, plan):
        kept = {key: it for key, it in one.training.trainer.items() if key not in LENGTH_KEYS}
        training = dataclasses.replace(one.training, trainer=kept)
        batch = one.batch.global_batch_size
        left_out = one.weights_left_out
        hashes.add(
            result_hash(training, batch, script=one.script, weights=one.weights, left_out=left_out)
        )
    return len(hashes) == 1
