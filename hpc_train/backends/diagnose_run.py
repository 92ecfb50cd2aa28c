"""Why a run failed: what its directory tells, and what Slurm's accounting says of its job."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hpc_train.backends.cancel import refuse_foreign, refuse_orphan
from hpc_train.backends.gone_folders import moved_run, refuse_removed
from hpc_train.backends.observe import observe
from hpc_train.backends.sweep_jobs import observe_sweep
from hpc_train.config.meant_words.near_files import absent_file
from hpc_train.diagnose.diagnosis import Diagnosis
from hpc_train.diagnose.read_open_run import told_while_open
from hpc_train.diagnose.read_run import diagnosis_of
from hpc_train.errors import HpcTrainError, NoSuchRunError, UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import all_runs, find_run, folders, newest_run
from hpc_train.runs.run_of_file import run_of_config, run_of_script
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import find_point, find_sweep
from hpc_train.slurm.accounting import job_record

_UNEXPLAINED = (RunState.FAILED, RunState.LOST, RunState.TIMED_OUT, RunState.CANCELLED)


def run_meant(words: Sequence[str], runs_dir: Path | None) -> RunDir | None:
    """The run that the words mean, the newest without any; None where they are logs.

    Raises:
        NoSuchRunError: when they mean neither.
        UsageError: for a run among others, for files that are no logs, and for a log by its
            ending that is not there.
    """
    if not words:
        return newest_run(runs_dir, "or name a log: hpc-train diagnose LOG")
    _refuse_no_log(words, runs_dir)
    runs = [run for word in words if (run := _run(word, runs_dir))]
    if runs and len(words) > 1:
        raise UsageError("one RUN at a time, and no logs beside it", "hpc-train diagnose RUN")
    return runs[0] if runs else None


def _refuse_no_log(words: Sequence[str], runs_dir: Path | None) -> None:
    """Refuse configs and code; beside a log they may be what a pattern of the shell has found."""
    kinds = {".yaml": "a config", ".yml": "a config", ".py": "code", ".ipynb": "code"}
    files = [Path(word) for word in words]
    if files and all(file.suffix in kinds and file.is_file() for file in files):
        file = files[0]
        where = folders(runs_dir)
        is_code = kinds[file.suffix] == "code"
        fix = (run_of_script if is_code else run_of_config)(file, all_runs(where), where)
        fix = fix or "name a run or a log: hpc-train diagnose RUN"
        raise UsageError(f"{file} is {kinds[file.suffix]}, and no log", fix)


def _run(word: str, runs_dir: Path | None) -> RunDir | None:
    path = Path(word)
    if path.is_dir():
        found = RunDir(path.resolve())
        if any(map(Path.exists, (found.plan, found.events, found.attempts))):
            return found
        if found.session.exists():
            return RunDir(path.resolve(), named=False)
        if within := sorted(path.glob("*/plan.json")) or [it.plan for it in all_runs([path])[:1]]:
            return RunDir(within[-1].parent.resolve())  # a folder of runs: the newest
    if word == "-" or path.is_file() or any(mark in word for mark in "*?["):
        return None
    try:
        where = folders(runs_dir)
        return find_point(word, where) or find_run(word, where)
    except NoSuchRunError as error:
        if path.exists():
            return None
        if not error.message.startswith("no run answers"):  # a sweep, or a point that it lacks
            return _failed_point(word, where, error)
        return _moved(word, where, error)


def _moved(word: str, where: Sequence[Path], error: NoSuchRunError) -> RunDir:
    """The run whose folder was moved since its job was submitted.

    Raises:
        NoSuchRunError: with the job, where one has no run, or the run's folder is removed; else
            what was said, and that it is no file.
        UsageError: it is the path of a file that there is not.
    """
    if moved := moved_run(word, where):
        return moved[0]
    refuse_orphan(word)
    refuse_removed(word)
    refuse_foreign(word)
    if not word.isdigit() and (absent := absent_file(word)):
        raise UsageError(*absent) from None
    raise NoSuchRunError(
        f"{error.message}, and it is no file",
        _log_meant(word) if word.isdigit() else error.hint,
    ) from None


def _log_meant(job_id: str) -> str:
    """What to write for the number of a job that nobody knows: this folder's log of it."""
    name = re.compile(rf"(?:.*\D)?{job_id}(?:_\d+)?(?:\.\w+)?\.(?:out|log|err|txt|o)|.*\.o{job_id}")
    logs = sorted(it.name for it in Path().iterdir() if name.fullmatch(it.name) and it.is_file())
    if logs:
        return f"hpc-train diagnose {shlex.quote(logs[0])}"
    return f"name a run, a job id or a log, for example slurm-{job_id}.out"


def _failed_point(word: str, where: Sequence[Path], error: NoSuchRunError) -> RunDir:
    """The one point of a sweep that has failed.

    Raises:
        NoSuchRunError: there are several, which are named, or none.
    """
    sweep = find_sweep(word, where)
    if sweep is None:
        raise error
    points = observe_sweep(sweep, time.time()).points
    failed = [point.number for point in points if point.run.state in _UNEXPLAINED]
    if not failed:
        raise error
    if len(failed) == 1:
        return sweep.point(failed[0])
    reasons = {point.number: point.run.reason for point in points}
    names = "; ".join(
        f"{sweep.sweep_id}-{number}" + (f": {reasons[number]}" if reasons[number] else "")
        for number in failed[:5]
    )
    more = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
    what = f"{word} is a sweep, of which these points did not end well: {names}{more}"
    raise NoSuchRunError(what, f"hpc-train diagnose {run_word(sweep.path)}-{failed[0]}") from None


def diagnose_run(run: RunDir, *, attempt: int | None = None) -> Diagnosis:
    """Say why it failed.

    Raises:
        HpcTrainError: Its history cannot be read, or there is nothing left of it.
        UsageError: There is no such attempt.
    """
    try:
        (status,) = observe([run], time.time())
        diagnosis = diagnosis_of(run, status, attempt=attempt, job_record=_record(status))
        if attempt is None and (likely := told_while_open(run, status)):
            last, found = likely
            note = f"attempt {last.attempt}: {found.cause}; fix: {found.fix}"
            diagnosis = replace(diagnosis, notes=(*diagnosis.notes, note))
    except OSError as error:
        raise HpcTrainError(
            f"{error.filename} cannot be read: {error.strerror}",
            "ask the run's owner for the permission to read it",
        ) from error
    return diagnosis


def _record(status: RunStatus) -> str:
    """Slurm's record, where the run itself has no end."""
    ends = status.attempts and status.attempts[-1].outcome is not None
    asks = status.backend == "slurm" and status.state in _UNEXPLAINED and not ends
    return job_record(status.job_id) if asks else ""
