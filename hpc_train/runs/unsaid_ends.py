"""Why a run is over that does not say so itself: a cancel, Slurm's words, its job's log. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hpc_train.plan.setup_watch import SHELL_ENDED
from hpc_train.plan.states import SUBMIT_AGAIN, RunState
from hpc_train.runs.events import EventKind
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.scheduler_view import SchedulerView

# What Slurm says of a job whose script could not begin: its exit code is then 0:53.
UNOPENED_LOG = ("JobLaunchFailure", "RaisedSignal:53")
ENDED_BEFORE = "the job ended before"  # of one in which no attempt has begun
_SHELL_ENDED = "with exit code 0: a line of env.setup ends its shell (exit, exec)"
_OF_BASH = re.compile(r"(?P<file>\S+): line (?P<line>\d+): (?P<said>.+)")
_UNBOUND = re.compile(r"(\w+): unbound variable")
# Ended by nobody's word: the log of the job itself is all that tells.
UNEXPLAINED = (RunState.FAILED, RunState.LOST)


def unopened(log: Path, attempts: Sequence[AttemptRecord], view: SchedulerView) -> str:
    """Why a job could not begin, or not again: its node could not open its log."""
    before = f"attempt {attempts[-1].attempt + 1}" if attempts else "its training"
    why = view.unopened or f"its node could not open the job's log in {log.parent}"
    told = f"{ENDED_BEFORE} {before} began: {why}"
    if view.unopened:
        return told
    if attempts:
        return f"{told} (Slurm: {view.reason}): slurmd's log on that node says why"
    return (
        f"{told} (Slurm: {view.reason}): as a rule that folder is on a file system which the nodes"
        f" do not see; {SUBMIT_AGAIN} runs_dir=FOLDER that they see"
    )


def cancelled_without_an_end(
    newest: EventKind, attempts: Sequence[AttemptRecord], view: SchedulerView
) -> str:
    """What a cancel met, by the newest beginning of the run."""
    if newest is EventKind.ATTEMPT_STARTED:
        return "cancelled; it was killed before its ranks had left"
    what = f"attempt {attempts[-1].attempt + 1}" if attempts else "it"
    waited = f"; it had waited, since {view.trouble.partition(': ')[0]}" if view.trouble else ""
    return f"cancelled before {what} began{waited}"


def _last_said(words: Sequence[str]) -> Sequence[str]:
    """The error and its fix, where a line of env.setup has ended the shell with bash's own reason.

    Bash says it in the line before: of a variable that is not set, and of `${NAME:?reason}`.
    """
    found = _OF_BASH.fullmatch(words[-3]) if len(words) > 2 else None
    if found is None or not words[-2].startswith(f"hpc-train: error: {SHELL_ENDED}"):
        return words[-2:]
    is_of_job = found["file"].endswith(("slurm_script", "bash"))
    where = "" if is_of_job else f" ({found['file']}:{found['line']})"
    error = f"{words[-2]}: {found['said']}{where}"
    if not (unset := _UNBOUND.fullmatch(found["said"])):
        return error, words[-1]
    give = f"export {unset[1]}=... in a line before it, or in the shell that submits"
    return error, f"fix: {give}; or write ${{{unset[1]}:-}} (by set -u what is not set is an error)"


def without_an_end(state: RunState, view: SchedulerView, *, begun: bool, on_slurm: bool) -> str:
    """Why a run is over that does not say so itself; the job's own log knows most."""
    if state in UNEXPLAINED and view.last_words:
        when = "without a word of its supervisor" if begun else "before its training began"
        when += f", {_SHELL_ENDED}" if view.untrained else ""
        if any(it.startswith("hpc-train: error: ") for it in view.last_words):
            when = "before its training was over" if begun else when
        return f"the job ended {when}: {'; '.join(_last_said(view.last_words))}"
    if state is RunState.LOST:
        if view.reason:
            return view.reason
        if on_slurm:
            return "Slurm knows no job of it any more, and it left no end"
        return "no process of it is left, and it left no end"
    if state is RunState.FAILED and not begun:
        if view.untrained:
            return f"{ENDED_BEFORE} its training began, {_SHELL_ENDED}, and left no log"
        slurm = f" (Slurm: {view.reason})" if view.reason else ""
        what = f"{ENDED_BEFORE} its training began, and left no log{slurm}"
        return f"{what}: where env has lines they run first, and one of env.setup may have ended it"
    silent = "the job ended without a word of its supervisor" if state is RunState.FAILED else ""
    return view.reason or silent
