"""`hpc-train resume`: bring a stopped run back, in the same shape or another."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train import api
from hpc_train.cli.common import (
    CODE_TOLD,
    FILES,
    complete_keys,
    flag_options,
    json_option,
    print_notes,
    run_argument,
    runs_dir_option,
    shell_word,
)
from hpc_train.cli.finding import runs_to_change
from hpc_train.cli.namesakes import tell_newest_of_name
from hpc_train.cli.own_checkpoints import notes_on_script, step_to_go_on_from
from hpc_train.cli.staying import stay_options, tell_and_stay
from hpc_train.cli.sweep_text import tell_resumed
from hpc_train.cli.typed_values import NO_DASHES
from hpc_train.errors import UsageError
from hpc_train.plan.cut_epochs import cut_note
from hpc_train.plan.hostlist import fold_numbers
from hpc_train.plan.notes import time_notes
from hpc_train.runs.checkpoints import removed_step, tell_removed
from hpc_train.runs.events import read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.run_word import run_word
from hpc_train.sweeps import Sweep, find_sweep

if TYPE_CHECKING:
    from hpc_train.backends.replan import NextPlan
    from hpc_train.plan.plan import Plan


@click.command("resume")
@run_argument
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_keys)
@flag_options("nodes", "gpus", "spares", "time", "partition", "account", "qos", "hosts")
@click.option("--cluster", type=click.Choice(["slurm", "local"]), help="As it was, by default.")
@click.option("--new-snapshot", is_flag=True, help="The project's code of now, copied again.")
@click.option("--dry-run", is_flag=True, help="Print what would be submitted; touch nothing.")
@click.option("-v", "--verbose", is_flag=True, help="The whole plan, with --dry-run.")
@stay_options
@runs_dir_option
@json_option
def command(
    run: str,
    overrides: tuple[str, ...],
    cluster: str | None,
    new_snapshot: bool,
    dry_run: bool,
    verbose: bool,
    follow: bool,
    wait: bool,
    runs_dir: Path | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Go on with RUN from its newest valid checkpoint.

    The shape may change, and so may KEY=VALUE of slurm, env, checkpoint, requeue, watchdog,
    preflight, loggers and micro_batch_size. Fixed are model, data, trainer, seed, reproducible and
    global_batch_size, so that another shape gives the same training. The code is that of today, or
    that of the run's snapshot, unless --new-snapshot takes another.

    Of trainer, max_epochs, max_steps and max_time may change: also a completed run trains longer.
    """
    _refuse_file(overrides, run)
    if sweep := find_sweep(run, runs_dir, to_change=True):
        alone = {"dry-run": dry_run, "follow": follow, "wait": wait, "new-snapshot": new_snapshot}
        _refuse_for_sweep(alone, sweep, run)
        tell_resumed(sweep, overrides, {**flags, "cluster": cluster}, as_json=as_json)
        return 0
    found = _found(run, runs_dir, overrides)
    again, first_step = _planned(found, overrides, flags, new_snapshot=new_snapshot)
    if dry_run:
        _print_dry_run(found, again, first_step, cluster, verbose=verbose, as_json=as_json)
        return 0
    job_id = found.go_on(again, cluster=cluster)

    def say() -> None:
        click.echo(f"resumed    as job {job_id}", err=as_json)
        click.echo(f"watch      hpc-train status {run_word(found.directory.path)}", err=as_json)

    return tell_and_stay(found, {"job_id": job_id}, say, follow=follow, wait=wait, as_json=as_json)


def _print_dry_run(
    found: api.Run,
    again: NextPlan,
    first_step: int | None,
    cluster: str | None,
    *,
    verbose: bool,
    as_json: bool,
) -> None:
    from hpc_train.cli.plan_text import print_dry_run

    print_dry_run(
        again.plan,
        again.script,
        with_script=(cluster or again.cluster) != "local",
        verbose=verbose,
        as_json=as_json,
        first_step=first_step,
        run=found.directory.run_id,
    )


def _found(word: str, runs_dir: Path | None, overrides: Sequence[str]) -> api.Run:
    """The run that is meant; says where others have its name."""
    matches = runs_to_change(word, runs_dir)
    found = api.Run(matches[0])
    _refuse_arguments(found, overrides)
    tell_newest_of_name(word, matches)
    return found


def _planned(
    run: api.Run, overrides: Sequence[str], flags: Mapping[str, Any], *, new_snapshot: bool
) -> tuple[NextPlan, int | None]:
    """What goes on, and from which step where it trains; says what is to be known of it."""
    again = run.next_plan(*overrides, new_snapshot=new_snapshot, **flags)
    lead_s, goes_on = again.plan.slurm.signal_lead_s, again.plan.requeue.enabled
    print_notes(time_notes(flags["time"], lead_s, goes_on=goes_on))
    _tell_changes(run)
    if not new_snapshot:
        _tell_newer_than_copy(run)
    print_notes(again.notes)
    if again.before.batch != again.plan.batch:
        print_notes(cut_note(again.plan.training.trainer, again.plan.batch))
    first_step = _first_step(run, again.plan) if again.plan.verb == "fit" else None
    attempts = attempts_in(read_events(run.directory.events))
    removed = removed_step(run.directory, attempts)
    if again.plan.script is None and first_step == 0:
        print_notes([_of_the_beginning(run, removed)])
    elif again.plan.script is not None and first_step is not None:
        taken = max((it.last_step for it in attempts), default=0)
        found = run.directory
        print_notes(notes_on_script(again.plan, again.plan.script, found, first_step, taken))
    elif removed and first_step is not None:
        print_notes([f"{tell_removed(removed)}: goes on from step {first_step}"])
    return again, first_step


def _first_step(run: api.Run, plan: Plan) -> int:
    """Steps that the next attempt need not take again; 0 where nothing whole is saved."""
    whole = (one.step for one in run.checkpoints() if one.valid)  # the newest first
    return next(whole, step_to_go_on_from(run.directory, plan))


def _refuse_for_sweep(options: Mapping[str, bool], sweep: Sweep, typed: str) -> None:
    for option, given in options.items():
        if given:
            what = f"--{option} is for one training, and {typed} is a sweep"
            points = sweep.status().to_go_on_with
            if not points:
                raise UsageError(f"{what}, with no point to go on with", "leave it out")
            the = "point" if len(points) == 1 else "points"
            one = f"{run_word(sweep.directory.path)}-{points[0]}"
            raise UsageError(
                f"{what}, of which resume takes the {the} {fold_numbers(points)}",
                f"leave it out, or resume one point: hpc-train resume {one} --{option}",
            )


def _refuse_file(overrides: Sequence[str], typed: str) -> None:
    """A run has its config already."""
    for word in overrides:
        if "=" not in word and Path(word).suffix in FILES:
            raise UsageError(
                f"{word} stands behind RUN, and a run keeps the config that it was submitted with",
                f"hpc-train resume {shell_word(typed)} goes on with it, also with KEY=VALUE behind;"
                f" what {word} says now is a run of its own: hpc-train submit {shell_word(word)}",
            )


def _refuse_arguments(run: api.Run, overrides: Sequence[str]) -> None:
    """A script's run keeps its arguments; click hands on what stands behind `--`."""
    from hpc_train.backends.submit_again import is_of_script, submit_again

    at = next((at for at, word in enumerate(overrides) if word.startswith("--")), None)
    if at is None:
        return
    message = f"{overrides[at]} stands behind --, and a run keeps what it was submitted with"
    if not is_of_script(run.directory):
        raise UsageError(message, f"{NO_DASHES}KEY=VALUE")
    begun = submit_again(run.directory).partition(" -- ")[0]
    other = f"{begun} -- {shlex.join(overrides[at:])}"
    raise UsageError(message, f"other arguments are of a run of its own: {other}")


def _of_the_beginning(run: api.Run, removed: int) -> str:
    from hpc_train.backends.find_weights import newest_damage

    damaged = newest_damage(run.directory)
    if removed and not damaged:
        return f"{tell_removed(removed)}: it begins again at step 0"
    why = f" ({damaged})" if damaged else ""
    return f"it has no whole checkpoint{why}, and begins again at step 0"


def _tell_newer_than_copy(run: api.Run) -> None:
    """A bug that was mended in the project's folder is still in the copy."""
    from hpc_train.runs.provenance import newer_than_copy

    if newer := newer_than_copy(run.directory):
        files, copy = newer
        renewed = f"hpc-train resume {run_word(run.directory.path)} --new-snapshot takes them"
        way = renewed if copy.run == run.directory.path else "a run that is submitted anew has them"
        lacks = f"which lacks the changes since then in {copy.original}: {files}"
        print_notes([f"it goes on with its copy of the code, {lacks}; {way}"])


def _tell_changes(run: api.Run) -> None:
    from hpc_train.runs.provenance import code_changes

    if changes := code_changes(run.directory):
        print_notes([f"the code is not that of the first attempt: {changes}"])
        click.get_current_context().meta[CODE_TOLD] = changes
