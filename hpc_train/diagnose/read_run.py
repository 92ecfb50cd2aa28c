"""A run -> a diagnosis: what its history knows already, and the logs where that is not why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hpc_train.diagnose.calls_of_one_rank import calls_of_one_rank
from hpc_train.diagnose.diagnosis import Culprit, Diagnosis
from hpc_train.diagnose.last_sample import last_sample
from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.diagnose.rules import Evidence, read_rules
from hpc_train.diagnose.stacks import (
    APART,
    TOGETHER,
    apart_by_stacks,
    late_by_stacks,
    read_stacks,
)
from hpc_train.errors import UsageError
from hpc_train.plan.states import KILLED_BY, Outcome, RunState
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import ENDED_ITSELF, WORKER_KILLED, ExitRecord, read_exits
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus
from hpc_train.runs.unsaid_ends import ENDED_BEFORE

_MAX_LOGS = 5000
_END_BYTES = 1 << 18
_EARLIER = 500  # letters of how an attempt before ended
# What the supervisor says is the history; a sentence of it that names an error is not the error.
_OWN_WORDS = re.compile(r"[\d:]{8} hpc-train: ")
# In these the rank's own exception says why.
_OF_A_RANK = (Outcome.USER_ERROR, Outcome.OUT_OF_MEMORY)
_OF_OWN_CODE = ("user", "gpu_memory", "check", ENDED_ITSELF, WORKER_KILLED)
# A process that ended without a word: what the logs know of why goes before it.
_CANCELLED_BEFORE = "cancelled_before"
_LEFT_UNSAID = "left_unsaid"
# Of these the logs may know more; the cause itself says that it is the likely one.
LIKELY = ("killed_rank",)
_ANY_RUN = re.compile(r"(hpc-train [a-z]+) RUN\b")
_MEANT = ("did you mean ", "it takes ")
_HANGS = ("hang", "uneven_shares")


def diagnosis_of(
    run: RunDir,
    status: RunStatus,
    *,
    attempt: int | None = None,
    job_record: str = "",
    reads_logs: bool = True,
) -> Diagnosis:
    """Say why a run, or one of its attempts, ended as it did.

    Args:
        status: As it is known now.
        attempt: Which; else the newest, where the run has not completed and does not go on.
        job_record: Of Slurm's accounting, `STATE, more`.
        reads_logs: False to look only at what is small: history, exit records, stacks.

    Raises:
        UsageError: There is no such attempt.
    """
    record = _chosen(status, attempt)
    state = _state(status, record, attempt)
    notes = _earlier(status, record)
    if record is None and (
        status.state in (RunState.COMPLETED, RunState.RUNNING) or _waits(status)
    ):
        return Diagnosis(of=run.run_id, state=state, notes=notes)
    finding, logs = _why(run, status, record, job_record, reads_logs=reads_logs)
    if finding is None:
        return Diagnosis(of=run.run_id, state=state, notes=(*notes, *logs.notes))
    if finding.name == _CANCELLED_BEFORE:  # which the state and the evidence say in its words
        state, finding = (
            state.removesuffix(f": {status.reason}"),
            replace(finding, evidence=(), times=0),
        )
    if record and record.outcome in _OF_A_RANK:
        finding = replace(finding, where=record.where)
    if reads_logs and (seen := last_sample(run, finding.name, finding.node)):
        finding = replace(finding, evidence=(*finding.evidence, seen))
    others = [item for item in logs.findings() if item.is_known and item.name != finding.name]
    text, place = _traceback(run, record, finding, logs)
    return Diagnosis(
        of=run.run_id,
        state=state,
        findings=tuple(named(item, run) for item in (finding, *others)),
        traceback=text,
        traceback_at=place,
        notes=(*notes, *logs.notes),
    )


def named(found: Culprit, run: RunDir) -> Culprit:
    """The fix of a rule is for any run: `hpc-train resume RUN`."""
    return replace(found, fix=_ANY_RUN.sub(lambda it: f"{it[1]} {run_word(run.path)}", found.fix))


def told_without_logs(
    run: RunDir, status: RunStatus, *, also_likely: bool = False
) -> Diagnosis | None:
    """The same, where the history and the ranks' records suffice to say why; else None.

    Args:
        also_likely: Also what is only likely as long as nobody has read the logs.
    """
    found = diagnosis_of(run, status, reads_logs=False)
    first = found.findings[0] if found.findings else None
    return found if first and (first.is_known or (also_likely and first.name in LIKELY)) else None


def sentence_of(run: RunDir, status: RunStatus) -> str:
    """Its sentence; empty where it is not known without the logs."""
    found = told_without_logs(run, status)
    return found.sentence if found else ""


def _chosen(status: RunStatus, number: int | None) -> AttemptRecord | None:
    records = status.attempts
    if number is not None:
        known = [record for record in records if record.attempt == number]
        if not known:
            numbers = ", ".join(str(record.attempt) for record in records) or "none"
            raise UsageError(f"--attempt {number}: there is none", f"there are: {numbers}")
        return known[0]
    if not records or status.state is RunState.COMPLETED or not status.state.ended:
        return None
    return None if status.reason.startswith(ENDED_BEFORE) else records[-1]


def _state(status: RunStatus, record: AttemptRecord | None, asked: int | None) -> str:
    words = f"{status.name}  {status.run}  {status.state.value}"
    if record is None:
        meaning = f" ({status.meaning})" if status.meaning else ""
        return f"{words}: {status.reason}{meaning}" if status.reason else words
    if asked is None and record.attempt == 0:
        return words
    how = _words(record.outcome) if record.outcome else "left no end"
    return f"{words}; attempt {record.attempt}: {how}"


def _words(outcome: Outcome) -> str:
    return str(outcome.value).replace("_", " ")


def _waits(status: RunStatus) -> bool:
    return status.state is RunState.PENDING and not status.trouble


def _earlier(status: RunStatus, record: AttemptRecord | None) -> tuple[str, ...]:
    last = record.attempt if record else len(status.attempts)
    ends = tuple(
        f"attempt {it.attempt} ended as {_words(it.outcome)}: {it.reason}"[:_EARLIER]
        for it in status.attempts
        if it.attempt < last and it.outcome and it.outcome is not Outcome.COMPLETED
    )
    told = {note: it.attempt for it in reversed(status.attempts) for note in it.notes}
    return (*ends, *(f"attempt {number}: {note}" for note, number in told.items()))


def _why(
    run: RunDir,
    status: RunStatus,
    record: AttemptRecord | None,
    job_record: str,
    *,
    reads_logs: bool,
) -> tuple[Culprit | None, ReadLogs]:
    """The culprit: by the rank's own exception, else by the history, else by the logs."""
    exits = _exits(run, record)
    failed = _failed(record, exits)
    if failed and record and (found := _of_exception(run, record, failed)):
        logs = ReadLogs()
        if reads_logs:
            logs.read_if_there(run.attempt(record.attempt).rank_log(failed.rank))
        found = _more_exact(run.attempt(record.attempt).rank_log(failed.rank), found)
        same = [item for item in logs.findings() if item.name == found.name]
        evidence = (*(it for item in same for it in item.evidence[:1]), *found.evidence)
        return replace(found, evidence=evidence), logs
    known = _as_rank_knows(of_history(run, status, record, job_record), failed)
    if record and known and known.name in _HANGS:
        known = _with_stacks(run, record, known)
    logs = ReadLogs()
    is_sure = known is not None and known.is_known and known.name != _LEFT_UNSAID
    if not reads_logs:
        return (None if known and known.name == _LEFT_UNSAID else known), logs
    if record and (not is_sure or (known and known.name == "hang")):
        prefix = run.attempt(record.attempt).flight_recorder
        for path in _glob(prefix.parent, f"{prefix.name}*")[:_MAX_LOGS]:
            logs.read_if_there(path)
    if is_sure:
        return known, logs
    for path in _logs(run, status, record):
        logs.read_if_there(path, without=_OWN_WORDS)
    read = logs.findings()
    if read and (read[0].is_known or known is None):
        return read[0], logs
    return known, logs


def _as_rank_knows(known: Culprit | None, failed: ExitRecord | None) -> Culprit | None:
    """It is a cause where the rank itself says clearly what is wrong, or what to do."""
    if known and failed and (failed.fix or failed.kind == "check"):  # a clear message of ours
        return replace(known, kind="cause", fix=failed.fix or known.fix)
    return known


def _exits(run: RunDir, record: AttemptRecord | None) -> list[ExitRecord]:
    try:
        return read_exits(run.attempt(record.attempt)) if record else []
    except OSError:
        return []


def _failed(record: AttemptRecord | None, exits: Sequence[ExitRecord]) -> ExitRecord | None:
    """The exit record of the rank that the history names as the culprit."""
    if record is None or (record.outcome and record.outcome not in _OF_A_RANK):
        return None
    told = [item for item in exits if item.kind in _OF_OWN_CODE]
    if record.outcome is None:
        return told[0] if told else None
    return next((item for item in told if item.rank == record.rank), None)


def _of_exception(run: RunDir, record: AttemptRecord, failed: ExitRecord) -> Culprit | None:
    """What a rule knows of a rank's exception."""
    file = str(run.attempt(record.attempt).exit_record(failed.rank))
    alone = f"Traceback (most recent call last):\n{failed.error}\n"
    known = _known_of(failed.traceback or alone, file)
    if failed.kind == WORKER_KILLED:  # the exception itself may be of a lost connection alone
        known = known or _known_of(alone, file)
    if not known:
        return None
    step = failed.step if failed.step is not None else record.failed_step
    found = replace(known[0], rank=failed.rank, node=failed.node, time=failed.time, step=step)
    told = failed.error + (f" ({failed.where})" if failed.where else "")
    evidence = [replace(item, text=told or item.text) for item in found.evidence[:1]]
    # Where the name that was meant is known, what such an error is as a rule is not.
    cause = (
        found.cause.partition(": as a rule")[0]
        if any(it in failed.fix for it in _MEANT)
        else found.cause
    )
    fix = failed.fix or found.fix
    return replace(found, is_dated=True, evidence=tuple(evidence), cause=cause, fix=fix)


def _more_exact(log: Path, found: Culprit) -> Culprit:
    """What the end of the rank's log tells more exactly than its exception does.

    A kernel's own words go to stderr; the exception says that some kernel failed.
    """
    better = {name for rule in read_rules() if rule.name == found.name for name in rule.unless}
    if not better:
        return found
    told = [item for item in _known_of(_end_of(log), str(log)) if item.name in better]
    if not told:
        return found
    first = told[0]
    return replace(found, name=first.name, cause=first.cause, fix=first.fix, times=1, alike="")


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _END_BYTES))
            return stream.read(_END_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _known_of(text: str, file: str) -> list[Culprit]:
    logs = ReadLogs()
    for line in text.splitlines():
        logs.feed(line, file, 1)
    return [item for item in logs.findings() if item.is_known]


def of_history(
    run: RunDir, status: RunStatus, record: AttemptRecord | None, job_record: str
) -> Culprit | None:
    """What the rules know of the outcome, of Slurm's record, or of what the run's state says."""
    logs = ReadLogs()
    said = []
    if record and record.outcome:
        said.append(f"{record.outcome.value}: {_reason(status, record) or 'nobody says why'}")
    if status.trouble:
        said.append(f"does not start: {status.trouble}")
    elif record is None or record.outcome is None:
        said.append(f"the run is {status.state.value}: {status.reason or 'nobody says why'}")
        said += [f"Slurm's record: {job_record}"] if job_record else []
    for text in said:
        where = _event(run, record, text)
        rule = logs.reader.feed_history(text, where)
        if rule and rule.kind == "cause":
            break
    found = logs.findings()
    if not found:
        return None
    rank = record.rank if record else None
    times = (record.ended, record.node, record.failed_step) if record else (None, "", None)
    return replace(found[0], rank=rank, time=times[0], node=times[1], step=times[2])


def _reason(status: RunStatus, record: AttemptRecord) -> str:
    """Of an attempt's end; of a job's limit also why nothing follows, which the run's end says."""
    is_last = record is status.attempts[-1] and record.outcome is Outcome.TIMEOUT
    whole = is_last and status.reason.startswith(record.reason)
    return status.reason if whole else record.reason


def _event(run: RunDir, record: AttemptRecord | None, text: str) -> Evidence:
    """The line of the history that tells the attempt's end; 0 where it cannot be read or found."""
    number = _line_of_end(run, record.attempt) if record and record.outcome else 0
    return Evidence(file=str(run.events), line=number, text=text)


def _line_of_end(run: RunDir, attempt: int) -> int:
    try:
        with run.events.open(encoding="utf-8", errors="replace") as stream:
            ends = (
                n
                for n, line in enumerate(stream, 1)
                if '"attempt_ended"' in line and _is_of(line, attempt)
            )
            return next(ends, 0)
    except OSError:
        return 0


def _is_of(line: str, attempt: int) -> bool:
    try:
        return bool(json.loads(line).get("attempt") == attempt)
    except (ValueError, AttributeError):
        return False


def _with_stacks(run: RunDir, record: AttemptRecord, found: Culprit) -> Culprit:
    """Who was late by the stacks, where the history cannot tell the ranks apart."""
    stacks = read_stacks(run.attempt(record.attempt))
    late, apart = late_by_stacks(stacks), apart_by_stacks(stacks)
    waiting = [stack for stack in stacks if stack not in late]
    shown = tuple(stack.place for stack in [*late[:2], *(apart[:3] or waiting[:1])])
    if apart and found.name == "hang":
        cause = found.cause.replace(f"; {TOGETHER}", "")  # it is the fix
        cause += "" if APART in cause else f"; {APART}"
        known = calls_of_one_rank(run)
        fix = "; ".join(known) or f"{TOGETHER}; {found.fix}"
        found = replace(found, cause=cause, fix=fix)
    if len(late) == 1 and late[0].rank != found.rank:
        found = replace(found, rank=late[0].rank, node="")
    if (alone := late if len(stacks) > 1 else stacks) and len(alone) == 1:
        found = replace(found, cause=f"{found.cause}; {alone[0].place.text}")
    return replace(found, evidence=(*found.evidence, *shown))


def _logs(run: RunDir, status: RunStatus, record: AttemptRecord | None) -> Iterator[Path]:
    """What the launcher, the ranks, NCCL and the job have written, in this order."""
    if record:
        attempt = run.attempt(record.attempt)
        yield attempt.launcher_log
        ranks = [path for path in _glob(attempt.path, "rank-*.log") if path.stem[5:].isdigit()]
        yield from sorted(ranks, key=lambda path: int(path.stem[5:]))[:_MAX_LOGS]
        yield from _glob(attempt.path, "nccl-*.log")[:_MAX_LOGS]
    job_id = record.job_id if record else status.job_id
    if job_id:
        yield run.job_log(job_id)
    yield from _glob(run.submitit, f"{job_id or '*'}_*_log.*")


def _glob(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def _traceback(
    run: RunDir, record: AttemptRecord | None, finding: Culprit, logs: ReadLogs
) -> tuple[tuple[str, ...], Evidence | None]:
    """The first one in time, where no rule says why."""
    # One that was killed by a signal wrote none: those of the others are what followed.
    if finding.is_known or (record and record.error.startswith(KILLED_BY)):
        return (), None
    told = [item for item in _exits(run, record) if item.traceback]
    if told and record:
        first = next((item for item in told if item.rank == record.rank), told[0])
        file = str(run.attempt(record.attempt).exit_record(first.rank))
        return tuple(first.traceback.splitlines()), Evidence(file=file, line=1, text="")
    found = logs.first_traceback()
    return (found[1].traceback(), found[0]) if found else ((), None)
