"""What a script goes on from when its run is resumed, and what is said where that is not known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.errors import HpcTrainError
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.script_saves import OwnSaves, newest_own_step, save_to_go_on_from

if TYPE_CHECKING:
    from hpc_train.plan.plan import Plan, ScriptPlan
    from hpc_train.runs.layout import RunDir
    from hpc_train.runs.status import RunStatus


def step_to_go_on_from(run: RunDir, plan: Plan) -> int:
    """The step of the script's own checkpoint that `script.resume` names; 0 where none is known."""
    if plan.script is None or not plan.script.resume_when:
        return newest_own_step(run)
    path = save_to_go_on_from(plan.script.resume_when, Path(plan.workdir), run)
    return OwnSaves.of(run).step_of(path) if path is not None else 0


def word_to_go_on(status: RunStatus, run: RunDir) -> str:
    """What is typed behind RUN so that its script is handed what it saved last, with a space.

    Empty where it goes on without, where nothing is known, and of a training of a config.
    """
    try:
        plan = read_plan(run)
    except HpcTrainError:
        return ""
    if plan.script is None or not status.step or not run.config.is_file():
        return ""
    word = _word_for(plan, plan.script, run)
    is_handed = not _unhanded(plan, plan.script, run)
    if is_handed and (newest_step(run) or step_to_go_on_from(run, plan)):
        return ""
    return f" {word}" if word else ""


def notes_on_script(
    plan: Plan, script: ScriptPlan, run: RunDir, first_step: int, taken: int
) -> list[str]:
    """What is to be known before it goes on.

    Args:
        first_step: As `step_to_go_on_from` has it, or of a checkpoint of our own.
        taken: The most steps that an attempt came to.
    """
    if said := _not_handed(plan, script, run):
        return [said]
    return [_of_the_beginning(plan, script, taken, run)] if taken and not first_step else []


def _of_the_beginning(plan: Plan, script: ScriptPlan, taken: int, run: RunDir) -> str:
    """Of one that no checkpoint of a known step is there of, after so many steps."""
    steps = "the step" if taken == 1 else f"the {taken} steps"
    again = f"{script.path} takes {steps} again unless it finds a checkpoint by itself"
    word = _word_for(plan, script, run)
    named = f": {word} names what it saved last" if word else ""
    if not script.resume_when:
        return f"{again}: script.resume names none{named}"
    there = save_to_go_on_from(script.resume_when, Path(plan.workdir), run)
    if there is not None:
        return f"{script.path} goes on from {there}; how many of {steps} it has is not known"
    return (
        f"{again}: script.resume names {script.resume_when}, and none of this run is there{named}"
    )


def _not_handed(plan: Plan, script: ScriptPlan, run: RunDir) -> str:
    """Of a checkpoint that is there, and of which the script is told nothing; else empty."""
    option, when = _unhanded(plan, script, run), script.resume_when
    if not option:
        return ""
    return (
        f"script.resume has no args, and {script.path} declares {option}: unless it finds {when} by"
        f" itself, write {_word_for(plan, script, run)}"
    )


def _unhanded(plan: Plan, script: ScriptPlan, run: RunDir) -> str:
    """The script's option for a checkpoint, of one that is there and is not handed to it."""
    from hpc_train.config.python_text.script_tree import script_tree
    from hpc_train.config.scripts.resume_arguments import resume_option

    when = script.resume_when
    if not when or script.resume_args:
        return ""
    if save_to_go_on_from(when, Path(plan.workdir), run) is None:
        return ""
    tree = script_tree(Path(plan.workdir, script.path))
    option = resume_option(tree) if tree is not None else ""
    return "" if any(it.partition("=")[0] == option for it in script.args) else option


def _word_for(plan: Plan, script: ScriptPlan, run: RunDir) -> str:
    """The KEY=VALUE of `resume` that hands it what it saved; empty where nothing needs it."""
    from hpc_train.config.python_text.script_tree import script_tree
    from hpc_train.config.scripts.resume_arguments import resume_word

    when, path = script.resume_when, OwnSaves.of(run).unnamed
    if _unhanded(plan, script, run):
        path = when
    elif when and save_to_go_on_from(when, Path(plan.workdir), run) is not None:
        return ""
    tree = None if script.resume_args else script_tree(Path(plan.workdir, script.path))
    return resume_word(path, tree) if path else ""
