"""What a script gets to go on from a checkpoint of its own; decided once, for all nodes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

from hpc_train.plan import env_names
from hpc_train.plan.plan import Plan, ScriptPlan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.script_saves import OwnSaves, is_whole, newest_save, stamp

_NEWEST = "{newest}"


def script_environment(
    plan: Plan, run: RunDir, attempt: int, say: Callable[[str], None]
) -> dict[str, str]:
    """A variable with the arguments to add, and the step that the script goes on from.

    In the first attempt what matches already is noted, so that it is never taken for this run's.
    """
    script = plan.script
    if script is None:
        return {}
    path = None
    if script.resume_when:
        path = _newest(script, Path(plan.workdir), run, attempt, say)
    arguments = (
        [] if path is None else [word.replace(_NEWEST, str(path)) for word in script.resume_args]
    )
    step = OwnSaves.of(run).step_of(path) if path is not None else 0
    said = {"args": arguments, "path": str(path or ""), "step": step}
    return {env_names.SCRIPT_RESUME: json.dumps(said)}


def _newest(
    script: ScriptPlan, workdir: Path, run: RunDir, attempt: int, say: Callable[[str], None]
) -> Path | None:
    found = newest_save(script.resume_when, workdir)
    saves = OwnSaves.of(run)
    if attempt == 0:
        if found:
            say(f"{found[0]} was there before this run, which does not go on from it")
            before = {str(path): stamp(path) for path in found}
            dataclasses.replace(saves, before=before).write(run)
        return None
    for path in filter(saves.is_of_this_run, found):
        if is_whole(path):
            say(f"the script goes on from {path}")
            return path
        say(f"{path} is torn, so the script does not go on from it")
    say(f"there is no {script.resume_when} of this run: the script begins anew")
    return None
