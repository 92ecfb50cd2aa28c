"""What is typed next where a run has ended and is not complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from hpc_train.cli.env_mended import keeps_env, with_env_mended
from hpc_train.cli.more_resources import with_more
from hpc_train.cli.own_checkpoints import word_to_go_on
from hpc_train.codec import read_object
from hpc_train.plan.policy import OF_TRAINING
from hpc_train.plan.states import MOVED, NO_FOLDER, NO_PYTHON, SUBMIT_AGAIN, Outcome, RunState
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.runs.session_words import start_again
from hpc_train.runs.snapshot import DOCUMENT
from hpc_train.runs.status import SESSION, RunStatus


def _of_its_env(status: RunStatus, run: RunDir) -> str:
    """The variable that is to be unset, where `env.variables` of the run has set it."""
    refused = re.findall(r"\bunset (\w+)", status.reason)
    shell = (read_object(run.plan).get("shell") or {}) if refused else {}
    return next((name for name in refused if name in (shell.get("variables") or {})), "")


def _is_own(outcome: Outcome | None, status: RunStatus) -> bool:
    """Whether it comes again as the training is: also a hang that came twice at one line."""
    return outcome is Outcome.USER_ERROR or OF_TRAINING in status.reason


def _behind(status: RunStatus, run: RunDir) -> str:
    """The words behind the run's name with which it does not end, wait or begin as it did."""
    if status.resume_with:
        return f" {status.resume_with}"
    return f"{word_to_go_on(status, run)}{with_more(status, run)}"


def goes_on(status: RunStatus) -> str:
    """What to type next; a key that makes another training is for a new run."""
    from hpc_train.backends.submit_again import has_environment, is_of_script, submit_again

    run = RunDir(Path(status.run_dir))
    name = run_word(run.path)
    if status.backend == SESSION:
        return start_again(run)
    found = re.search(rf"{SUBMIT_AGAIN} (\S+=[^\s)]+(?: \S+=[^\s)]+)*)", status.reason)
    if found:
        return submit_again(run, *(it.rstrip(",;") for it in found[1].split()))
    if not status.attempts and f"{NO_PYTHON}, /" in status.reason:
        keeps = f"hpc-train resume {name} keeps the Python"
        return f"from such an environment: {submit_again(run)}; {keeps}"
    folder = re.search(rf"{NO_FOLDER} (/.*?) is not there on ", status.reason)
    if not status.attempts and folder and Path(folder[1]).is_dir():  # of this host alone
        keeps = f"hpc-train resume {name} keeps the folder"
        return f"in a copy of the project that all nodes see: {submit_again(run)}; {keeps}"
    if kept_variable := _of_its_env(status, run):
        again = submit_again(run)
        return f"once env.variables.{kept_variable} is mended: {again}; {keeps_env(name)}"
    last = status.attempts[-1] if status.attempts else None
    if last is None and status.state is RunState.FAILED and has_environment(run):
        return with_env_mended(run, name, status.reason)
    if last is None or MOVED in status.reason or not _is_own(last.outcome, status):
        return f"hpc-train resume {name}{_behind(status, run)}"
    has_copy = (Path(status.run_dir) / DOCUMENT).is_file()
    renewed = " --new-snapshot" if has_copy else ""
    if status.evaluates:  # what is submitted is a training
        return f"hpc-train resume {name}{renewed}, once that is mended"
    if changed := _literal_fix(run, status):
        return submit_again(run, changed)
    kept = "model, data or trainer" if status.step else "model, data, trainer or env"
    changed = "other arguments" if is_of_script(run) else f"{kept} changed in the config"
    own = f"with {changed}: {submit_again(run)}"
    resume = f"hpc-train resume {name}{word_to_go_on(status, run)}{renewed}"
    return f"{resume}, once that is mended; {own}"


def _literal_fix(run: RunDir, status: RunStatus) -> str:
    """The KEY=VALUE with which a run that has taken no step is to be submitted again; or empty.

    A script sets its model, data and Trainer itself, and takes no such keys.
    """
    if status.step:
        return ""
    from hpc_train.backends.submit_again import is_of_script, submit_again
    from hpc_train.config.meant_words.literal_fixes import fix_in_brackets, literal_fix
    from hpc_train.diagnose.read_run import told_without_logs

    try:
        told = told_without_logs(run, status, also_likely=True)
    except OSError:  # a part of the run that is not ours to read; diagnose says which
        told = None
    fixes = [fix_in_brackets(status.reason), told.findings[0].what_to_do if told else ""]
    changed = next(filter(None, map(literal_fix, fixes)), "")
    of_script = is_of_script(run) and not changed.startswith(("script.", "slurm.", "env."))
    typed = shlex.split(submit_again(run))  # with the same value it would fail once more
    return "" if of_script or changed in typed else changed
