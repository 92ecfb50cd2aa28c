"""What a script goes on from when its run is resumed, and what is said where that is not known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.runs.script_saves import OwnSaves, newest_own_step, save_to_go_on_from

if TYPE_CHECKING:
    from hpc_train.plan.plan import Plan, ScriptPlan
    from hpc_train.runs.layout import RunDir


def step_to_go_on_from(run: RunDir, plan: Plan) -> int:
    """The step of the script's own checkpoint that `script.resume` names; 0 where none is known."""
    if plan.script is None or not plan.script.resume_when:
        return newest_own_step(run)
    path = save_to_go_on_from(plan.script.resume_when, Path(plan.workdir), run)
    return OwnSaves.of(run).step_of(path) if path is not None else 0


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
    unnamed = OwnSaves.of(run).unnamed
    if not script.resume_when:
        known = "script.resume names none"
        if unnamed:
            known += f": {_word(plan, script, unnamed)} names what it saved last"
        return f"{again}: {known}"
    there = save_to_go_on_from(script.resume_when, Path(plan.workdir), run)
    if there is not None:
        return f"{script.path} goes on from {there}; how many of {steps} it has is not known"
    known = f"script.resume names {script.resume_when}, and none of this run is there"
    if unnamed:
        known += f": {_word(plan, script, unnamed)} names what it saved last"
    return f"{again}: {known}"


def _not_handed(plan: Plan, script: ScriptPlan, run: RunDir) -> str:
    """Of a checkpoint that is there, and of which the script is told nothing; else empty."""
    from hpc_train.config.resume_arguments import resume_option
    from hpc_train.config.script_tree import script_tree

    when = script.resume_when
    if not when or script.resume_args:
        return ""
    if save_to_go_on_from(when, Path(plan.workdir), run) is None:
        return ""
    tree = script_tree(Path(plan.workdir, script.path))
    option = resume_option(tree) if tree is not None else ""
    if not option or any(it.partition("=")[0] == option for it in script.args):
        return ""
    return (
        f"script.resume has no args, and {script.path} declares {option}: unless it finds {when} by"
        f" itself, write {_word(plan, script, when)}"
    )


def _word(plan: Plan, script: ScriptPlan, path: str) -> str:
    from hpc_train.config.resume_arguments import resume_word
    from hpc_train.config.script_tree import script_tree

    tree = None if script.resume_args else script_tree(Path(plan.workdir, script.path))
    return resume_word(path, tree)
