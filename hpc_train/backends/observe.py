"""Looking at runs from outside: their histories, their processes, and one Slurm query for all."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hpc_train.backends.known_plan import known_plan
from hpc_train.backends.moved_in_queue import why_log_is_unopened
from hpc_train.backends.pending_job import pending_view, with_trouble
from hpc_train.codec import read_object
from hpc_train.errors import HpcTrainError, SlurmError
from hpc_train.plan.states import RunState
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.copies import copied_from
from hpc_train.runs.events import (
    Event,
    EventKind,
    append_event,
    end_of,
    has_begun,
    last_seen,
    read_events,
    seen,
)
from hpc_train.runs.forecast import TimeLimit
from hpc_train.runs.history import attempts_in, newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.left_open import lacks_end
from hpc_train.runs.lock import is_held
from hpc_train.runs.log_tail import last_words
from hpc_train.runs.ranks import read_heartbeat
from hpc_train.runs.saved_models import read_models, without_torn
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.runs.status import SESSION, RunStatus, run_status
from hpc_train.runs.sweep_dir import is_being_submitted
from hpc_train.runs.unsaid_ends import UNOPENED_LOG
from hpc_train.slurm.command import is_available
from hpc_train.slurm.jobs import SQUEUE_S, JobView, is_federated, query_jobs
from hpc_train.slurm.nodes import NodeRow, known_nodes
from hpc_train.slurm.pending import explain_running, waits_for_nodes
from hpc_train.slurm.reservations import Reservation, is_reserved, known_reservations
from hpc_train.slurm.site import chosen_cluster
from hpc_train.slurm.srun_words import waits_for
from hpc_train.slurm.waited_for import ends_of, failed_jobs, with_ends

CLUSTERS = "SLURM_CLUSTERS"
BEING_CANCELLED = "being submitted; it is cancelled as soon as its job is known"
SILENT_S = 60.0  # a file system may show a new file that late (nfs(5), ac)


@dataclass(frozen=True)
class SlurmAnswer:
    """What Slurm knows of jobs.

    Attributes:
        jobs: By id.
        silence: Why Slurm could not tell anything; then there are none.
        asked: The jobs that it was asked about; None where that was all.
        nodes: All of them with their states, where a job waits for some that cannot be had.
        reservations: All of them, where a job waits for the end of one of others.
        others: Jobs of the user's that it was not asked about, where it told them all.
    """

    jobs: Mapping[str, JobView] = field(default_factory=dict)
    silence: str = ""
    asked: Collection[str] | None = None
    nodes: Sequence[NodeRow] = ()
    reservations: Sequence[Reservation] = ()
    others: Sequence[JobView] = ()

    def silence_on(self, job_id: str) -> str:
        """Why nothing is known of a job; empty where Slurm does not know it."""
        is_new = self.asked is not None and job_id not in self.asked
        return self.silence or ("Slurm was not asked yet" if is_new else "")


def observe(
    directories: Sequence[RunDir],
    now: float,
    *,
    answer: SlurmAnswer | None = None,
    histories: Sequence[Sequence[Event]] | None = None,
) -> list[RunStatus]:
    """The status of each run.

    Args:
        directories: The runs.
        now: Seconds since the epoch.
        answer: Slurm's newest one; None asks it now, once for all.
        histories: The events of each run, where some runs have no folder yet.
    """
    if histories is None:
        histories = [read_history(directory.events) for directory in directories]
    if answer is None:
        answer = ask_slurm(open_jobs(histories))
    return [
        _status(directory, events, answer, now)
        for directory, events in zip(directories, histories, strict=True)
    ]


def _status(
    directory: RunDir, events: Sequence[Event], answer: SlurmAnswer, now: float
) -> RunStatus:
    view = _view(directory, events, answer)
    whole, torn = without_torn(read_models(directory))
    status = run_status(
        directory,
        events,
        view,
        beat=read_heartbeat(directory.latest_attempt.heartbeat(0)),
        metrics=read_object(directory.final_metrics),
        now=now,
        models=whole,
        saved_step=newest_step(directory) if lacks_end(events) else 0,
    )
    status = dataclasses.replace(status, torn_models=tuple(torn))
    if view.state is not None and _backend(events) == "slurm":
        _keep(directory, events, status, now)
    return status


def _keep(directory: RunDir, events: Sequence[Event], status: RunStatus, now: float) -> None:
    """Keep an end that Slurm alone knows, for when it is silent or has forgotten the job.

    Slurm's next answer outweighs it: the job may be requeued. By the run's owner alone.
    """
    kept = last_seen(events)
    before = RunState(kept.get("state")) if kept else RunState.PENDING
    if status.state is before or not (status.state.ended or before.ended):
        return
    with contextlib.suppress(OSError):
        if directory.events.stat().st_uid == os.geteuid():
            append_event(directory.events, seen(events, status.state, status.reason, now))


def read_history(events: Path) -> list[Event]:
    """The events of a run or a sweep.

    Raises:
        HpcTrainError: they cannot be read.
    """
    try:
        return read_events(events)
    except OSError as error:
        fix = "correct its permissions; `hpc-train list` shows the other runs"
        raise HpcTrainError(f"{events} cannot be read: {error.strerror}", fix) from error


def open_jobs(histories: Iterable[Sequence[Event]]) -> list[str]:
    """The jobs of all runs on Slurm that have not ended by their own word."""
    return [
        job_id
        for events in histories
        if _backend(events) == "slurm"
        and not end_of(events)
        and (job_id := newest_job_id(events))
        and not _of_another_cluster(events)
    ]


def ask_slurm(job_ids: Collection[str], *, of_user: bool = False) -> SlurmAnswer:
    """What it knows of these jobs, by one query.

    Args:
        job_ids: The jobs.
        of_user: They are all this user's, whose other jobs are told as well.
    """
    if not job_ids and not of_user:
        return SlurmAnswer()
    if not is_available("squeue"):
        return SlurmAnswer(silence="there is no squeue on this machine's PATH")
    try:
        known = query_jobs(job_ids, of_user=of_user)
        jobs = _with_ends({it: job for it, job in known.items() if it in job_ids})
    except SlurmError:
        return SlurmAnswer(silence="Slurm does not answer")
    reasons = [job.reason for job in jobs.values()]
    reserved = known_reservations() if any(map(is_reserved, reasons)) else ()
    ask = bool(reserved) or any(map(waits_for_nodes, reasons))
    others = [job for it, job in known.items() if it not in job_ids]
    nodes = known_nodes() if ask else ()
    return SlurmAnswer(jobs, nodes=nodes, reservations=reserved, others=others)


def _with_ends(jobs: Mapping[str, JobView]) -> Mapping[str, JobView]:
    """The same, with how those have ended for which some wait in vain, by one query for all."""
    failed = failed_jobs([job.dependency for job in jobs.values() if job.dependency])
    if not failed:
        return jobs
    try:
        ends = ends_of(failed, SQUEUE_S)
    except SlurmError:
        return jobs
    return {
        it: replace(job, dependency=with_ends(job.dependency, ends)) for it, job in jobs.items()
    }


def _view(directory: RunDir, events: Sequence[Event], answer: SlurmAnswer) -> SchedulerView:
    if end_of(events):
        return SchedulerView(None)
    if origin := copied_from(directory):
        return SchedulerView(RunState.LOST, of_copy(directory, origin))
    if not _backend(events) and not newest_job_id(events) and is_being_submitted(directory):
        asked = any(event.kind is EventKind.CANCEL_REQUESTED for event in events)
        return SchedulerView(RunState.PENDING, BEING_CANCELLED if asked else "being submitted")
    if _backend(events) != "slurm":
        return SchedulerView(_local_state(directory, events), waiting=_waiting(directory))
    job_id = newest_job_id(events)
    elsewhere = _of_another_cluster(events)
    job = None if elsewhere else answer.jobs.get(job_id)
    if job is None:
        words = last_words(directory.job_log(job_id))
        silence = elsewhere or answer.silence_on(job_id)
        return SchedulerView(None, silence=silence, last_words=words)
    if job.state is RunState.PENDING:
        rows, reserved = answer.nodes, answer.reservations
        return pending_view(directory, events, job, rows, reserved, time.time())
    if job.state is RunState.RUNNING:
        return SchedulerView(
            job.state,
            job.reason,
            job.start,
            waiting=_waiting(directory),
            standing=explain_running(job.slurm_state),
            limit=_limit(directory, job),
        )
    return _ended_view(directory, events, job)


def of_copy(directory: RunDir, origin: Path) -> str:
    """What a copy is of a run that had not ended: its job is the run's own."""
    resume = f"hpc-train resume {shlex.quote(str(directory.path))}"
    whose = f"a copy of {origin}, whose job goes on there or has ended there"
    return f"{whose}; {resume} goes on here by itself, from what was copied"


def _ended_view(directory: RunDir, events: Sequence[Event], job: JobView) -> SchedulerView:
    words = last_words(directory.job_log(job.job_id))
    if job.state is RunState.COMPLETED and not has_begun(events) and not directory.done.exists():
        # What bash has ended with is all that Slurm knows; no supervisor has said so.
        return SchedulerView(RunState.FAILED, job.reason, last_words=words, untrained=True)
    unopened = job.state is RunState.FAILED and job.reason.startswith(UNOPENED_LOG)
    if unopened and attempts_in(events):
        words = ()  # of an earlier start
    why = why_log_is_unopened(directory, job.job_id) if unopened and not words else ""
    view = SchedulerView(job.state, job.reason, job.start, last_words=words, unopened=why)
    return with_trouble(view, directory, events, job)


def _waiting(directory: RunDir) -> str:
    """What keeps srun from starting the ranks, in the words of its own."""
    attempt = directory.latest_attempt
    try:
        if attempt.heartbeat(0).exists():
            return ""
        return waits_for(attempt.launcher_log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""


def _of_another_cluster(events: Sequence[Event]) -> str:
    """Why Slurm's commands, as they are set here, would tell of another job with the run's id."""
    sent = [event for event in events if event.kind is EventKind.SUBMITTED]
    was, now = str(sent[-1].get("clusters", "")), chosen_cluster(os.environ)
    if "clusters" not in sent[-1].data or was == now or is_federated(newest_job_id(events)):
        return ""
    return (
        f"{CLUSTERS} was {was or 'not set'} when it was submitted, and is {now or 'not set'} here"
    )


def ask_again(silence: str) -> str:
    """When to ask again, after this silence."""
    return f"with {CLUSTERS} as it was" if CLUSTERS in silence else "once `scontrol ping` says UP"


def _limit(directory: RunDir, job: JobView) -> TimeLimit | None:
    span, plan = job.span_s, known_plan(directory)
    if span is None or plan is None:  # nobody can tell any more what its ranks were told
        return None
    return TimeLimit(span[1], span[1] - span[0], float(plan.slurm.signal_lead_s), plan.requeue)


def _local_state(directory: RunDir, events: Sequence[Event]) -> RunState | None:
    if is_held(directory.lock) or _is_session_alive(directory, events):
        return RunState.RUNNING
    job_id = newest_job_id(events)
    if job_id.isdigit() and is_submitit(int(job_id)):
        attempts = attempts_in(events)
        return RunState.RUNNING if attempts else RunState.PENDING
    # A shape of a bench waits for the one before; in the foreground there is no id at any time.
    return RunState.PENDING if not job_id and _backend(events) == "local" else None


def _is_session_alive(directory: RunDir, events: Sequence[Event]) -> bool:
    """Whether a script with a Session gives signs of life: nobody else knows its processes."""
    if _backend(events) != SESSION:
        return False
    try:
        beaten = directory.latest_attempt.heartbeat(0).stat().st_mtime
    except OSError:
        return False
    return time.time() - beaten < SILENT_S


def is_submitit(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process is submitit's local controller, and not a stranger with its number.

    In the middle of its exec it has no words yet (proc_pid_cmdline(5)), as a zombie and a thread of
    the kernel's have none: these have no program either (proc_pid_exe(5)).
    """
    try:
        words = (proc / str(pid) / "cmdline").read_bytes()
        return b"submitit" in words if words else bool((proc / str(pid) / "exe").readlink())
    except OSError:
        return False


def _backend(events: Sequence[Event]) -> str:
    kinds = [event.get("backend") for event in events if event.kind is EventKind.SUBMITTED]
    return str(kinds[-1]) if kinds else ""
