"""One attempt: environment, preflight, launch, watch, outcome, and what the history holds of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hpc_train.plan.plan import Plan
from hpc_train.plan.setup_watch import FAILED, SetupTold, told_in_log, told_in_variable
from hpc_train.plan.states import Outcome
from hpc_train.runs.atomic import write_text
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.events import (
    Event,
    EventKind,
    append_event,
    is_cancel_asked,
    read_events,
)
from hpc_train.runs.history import attempts_in
from hpc_train.runs.latest_link import link_latest
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.log_tail import last_words
from hpc_train.runs.provenance import attempt_environment
from hpc_train.runs.ranks import leave_note, read_beginning, read_exits, read_heartbeats, read_notes
from hpc_train.slurm.jobs import job_details
from hpc_train.slurm.nodes import silent_nodes
from hpc_train.slurm.site import slurm_version
from hpc_train.slurm.srun_words import nodes_taken, nodes_that_failed
from hpc_train.ssh.check_hosts import silent_hosts
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.attempt_notes import beginning_notes, setup_notes, tell_notes
from hpc_train.supervisor.deaths import Crash, crash_in_stacks, over_memory
from hpc_train.supervisor.evidence import AttemptEvidence, finished
from hpc_train.supervisor.host_memory import oom_kills
from hpc_train.supervisor.launch import Ranks, ended_with, start_ranks
from hpc_train.supervisor.left_children import end_left_children
from hpc_train.supervisor.node_monitors import monitored
from hpc_train.supervisor.notices import notify_of_start
from hpc_train.supervisor.outcome import AttemptOutcome, classify
from hpc_train.supervisor.progress import AttemptSteps, attempt_steps, record_end, tell_beginning
from hpc_train.supervisor.rank_ends import read_ends
from hpc_train.supervisor.signals import SupervisorSignals
from hpc_train.supervisor.stop_forwarding import StopForwarding
from hpc_train.supervisor.stopcause import AskedTime, StopCause, stop_cause
from hpc_train.supervisor.supervisor_log import SupervisorLog
from hpc_train.supervisor.watch import Watched, watch

LATE_FILES_S = 60.0  # nfs(5), acdirmax: so long a client may say of a new file that there is none


@dataclass(frozen=True)
class AttemptResult:
    """How it ended, and what the scheduler has done about it already."""

    ending: AttemptOutcome
    stop: StopCause


@dataclass
class Attempt:
    """The parts that one attempt works with."""

    number: int
    plan: Plan
    allocation: Allocation
    run: RunDir
    environ: Mapping[str, str]
    signals: SupervisorSignals
    log: SupervisorLog
    assumed_first: int = 0  # the newest checkpoint's step, until the ranks have looked into it
    beginning_told: bool = False
    notes_told: int = 0
    killed_before: int = field(default_factory=oom_kills)  # for memory, by this machine's kernel
    is_taken: bool = False  # Slurm has taken nodes from the job, which failed
    check_folder: Callable[[], None] = lambda: None  # raises where somebody has moved the run
    unreachable: dict[str, str] = field(default_factory=dict)  # node -> why srun cannot start there
    addresses: dict[str, tuple[str, int]] = field(default_factory=dict)  # of the nodes' slurmd

    @property
    def folder(self) -> AttemptDir:
        """The attempt's files."""
        return self.run.attempt(self.number)

    def tell(self, kind: EventKind, **data: Any) -> None:
        """Write one line into the run's history."""
        append_event(self.run.events, Event(time.time(), kind, {"attempt": self.number, **data}))

    def refuse(self, ending: AttemptOutcome) -> AttemptResult:
        """End the attempt before its ranks start: the preflight said no.

        What ends the job ends the preflight's steps as well, which then blame healthy nodes.
        """
        stop = self._why_stopped()
        if stop.outcome is not None:
            ending = AttemptOutcome(outcome=stop.outcome, reason=stop.reason)
        return self._record(ending, stop)

    @property
    def is_being_stopped(self) -> bool:
        """Whether somebody, or Slurm, ends the job at this moment."""
        return self._why_stopped().outcome is not None

    def carry_out(
        self,
        nodes: Sequence[str],
        environment: Mapping[str, str],
        per_node: Mapping[str, Mapping[str, str]],
    ) -> AttemptResult | None:
        """Start the ranks on `nodes`, watch them to their end, and say how it was.

        Args:
            environment: What the preflight chose for every rank.
            per_node: node -> what it chose differently there.

        Returns:
            None where some nodes are `unreachable` and enough others are left to start again.
        """
        self.run.stop.unlink(missing_ok=True)
        if cancelled := self.end_if_cancelled():
            return cancelled
        self._record_environment()
        environ = {**self.environ, **environment}
        ranks = start_ranks(
            *(self.plan, self.allocation, self.run, self.number, nodes, environ),
            per_node=per_node,
            say=self.log.say,
        )
        self.tell(EventKind.RANKS_STARTED, nodes=list(nodes))
        self.log.say(f"attempt {self.number}: {self.plan.shape.ranks} on {', '.join(nodes)}")
        notify_of_start(self)
        here = (self.plan, self.allocation, self.run, nodes, self.environ)
        with monitored(*here), ended_with(ranks):
            watched = watch(
                ranks,
                self.folder,
                self.plan.watchdog,
                nodes,
                self.plan.shape.world_size,
                lost_nodes=lambda: self._lost(nodes),
                each_second=StopForwarding(self, ranks).look,
            )
            self.check_folder()
        end_left_children(self.folder, self.allocation)
        watched, self.is_taken = self._without_taken(watched, ranks, nodes)
        is_complete = watched.launcher_code == 0 and finished(read_exits(self.folder))
        stop = StopCause(None) if is_complete else self._why_stopped()
        unlaunched = self._unlaunched(ranks, watched, nodes)
        if stop.outcome is None and self._can_start_without(unlaunched):
            return None
        seen = self._seen(ranks, watched, stop, nodes)
        return self._record(classify(replace(seen, unlaunched=unlaunched)), stop)

    def _without_taken(
        self, watched: Watched, ranks: Ranks, nodes: Sequence[str]
    ) -> tuple[Watched, bool]:
        """The same with the nodes that Slurm has taken from the step, and whether there are any."""
        taken = self._taken(ranks.said(), nodes)
        if not taken or watched.lost_nodes:
            return watched, bool(taken)
        code, deaths = watched.launcher_code or 1, tuple(ranks.deaths())
        return replace(watched, launcher_code=code, lost_nodes=taken, deaths=deaths), True

    def _taken(self, said: str, nodes: Sequence[str]) -> tuple[str, ...]:
        """The nodes that Slurm has taken from the step; a step over ssh says its losses alike."""
        return nodes_taken(said, nodes) if self.allocation.is_slurm else ()

    def look_for_beginning(self) -> None:
        """Pass on where the ranks say that they begin, once they have said it."""
        if self.beginning_told:
            return
        beginning = read_beginning(self.folder)
        if beginning is not None:
            asked = self.plan.shape.world_size
            tell_beginning(self.run, self.number, beginning, self.log.say, asked=asked)
            self.beginning_told = True
            log = self.folder.launcher_log  # of ranks that are no steps of a job: they have begun
            said = log.read_text("utf-8", "replace") if log.exists() else ""
            self.tell_setup(told_in_log(said))

    def tell_setup(self, told: SetupTold) -> None:
        """Pass on what a shell has told of the lines of env.setup."""
        tell_notes(self.run, self.number, setup_notes(self.plan.shell, told), self.log.say)

    def look_for_notes(self) -> None:
        """Pass on what rank 0 has left to be told, once."""
        new = read_notes(self.folder)[self.notes_told :]
        tell_notes(self.run, self.number, new, self.log.say)
        self.notes_told += len(new)

    def _steps(self) -> AttemptSteps:
        return attempt_steps(self.run, self.number, assumed_first=self.assumed_first)

    def _slurm_version(self) -> str:
        return slurm_version() if self.allocation.is_slurm else ""

    def _unlaunched(
        self, ranks: Ranks, watched: Watched, nodes: Sequence[str]
    ) -> Mapping[str, str]:
        """The nodes that kept the ranks from starting; none once all ranks have begun."""
        if watched.launcher_code == 0 or not self.allocation.has_steps:
            return {}
        if failed := ranks.unlaunched(nodes):
            return failed
        if len(read_heartbeats(self.folder)) == self.plan.shape.world_size:
            return {}
        return dict.fromkeys(watched.lost_nodes, "its slurmd does not answer")

    def _can_start_without(self, unlaunched: Mapping[str, str]) -> bool:
        """Leave these nodes out where enough others are left, and clear what the ranks left."""
        without = {**self.unreachable, **unlaunched}
        if not unlaunched or len(self.allocation.nodes) - len(without) < self.plan.shape.nodes:
            return False
        self.unreachable = without
        said = "; ".join(f"{node}: {why}" for node, why in unlaunched.items())
        self.log.say(f"srun could not start the ranks on {said}; starting again without")
        folder = self.folder
        for left in (folder.abort, folder.beginning):
            left.unlink(missing_ok=True)
        folder.launcher_log.rename(folder.path / f"launcher-{len(without)}.log")
        for record in (folder.heartbeat(0).parent, folder.exit_record(0).parent):
            shutil.rmtree(record, ignore_errors=True)
        return True

    def cancel_requested(self) -> bool:
        """Whether `hpc-train cancel` has said so since the run was last submitted."""
        return is_cancel_asked(read_events(self.run.events))

    def why_cancelled(self) -> str:
        """Who has cancelled the run by now, in words; empty where nobody has."""
        if not (self.signals.is_asked_to_stop or self.cancel_requested()):
            return ""
        stop = self._why_stopped()
        return stop.reason if stop.is_cancel else ""

    def end_if_cancelled(self) -> AttemptResult | None:
        """End the attempt before its ranks start, where somebody has cancelled the run."""
        if not (reason := self.why_cancelled()):
            return None
        stop = StopCause(Outcome.CANCELLED, reason)
        return self._record(AttemptOutcome(outcome=Outcome.CANCELLED, reason=reason), stop)

    def _why_stopped(self) -> StopCause:
        if self.signals.interrupts:
            return StopCause(Outcome.CANCELLED, "Ctrl-C in the foreground")
        if self.signals.hung_up:
            told = f"its terminal was closed (SIGHUP): hpc-train resume {self.run.run_id} goes on"
            return StopCause(Outcome.CANCELLED, told)
        cancelled = self.cancel_requested()
        stop = stop_cause(
            self.allocation,
            told_to_cancel=cancelled,
            stop_file=self.run.stop.exists(),
            terminated=self.signals.terminated,
            asked=AskedTime.of(self.plan, self.run),
            details=job_details,
            now=time.time(),
        )
        # Slurm ends the batch step as in a preemption, or as scancel does, and requeues the job.
        return replace(stop, outcome=None, reason="") if self.is_taken and not cancelled else stop

    def _record_environment(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: the ranks say more of it
            attempt_environment(self.run, self.plan, self.number, slurm=self._slurm_version())
            notes = beginning_notes(self.run, self.number, self.plan, self.environ)
            tell_notes(self.run, self.number, notes, self.log.say)

    def _seen(
        self, ranks: Ranks, watched: Watched, stop: StopCause, nodes: Sequence[str]
    ) -> AttemptEvidence:
        said = ranks.said()
        self.tell_setup(told_in_log(said))
        failed = watched.launcher_code != 0 and stop.outcome is None
        lost = watched.lost_nodes
        if failed and not lost:
            lost = nodes_that_failed(said, nodes) or self._lost(nodes)
        script = self.plan.script
        may_take_no_steps = script is None or script.may_take_no_steps
        if watched.launcher_code == 0 and (script is None or not may_take_no_steps):
            self._wait_for_exits(nodes, stop)
        is_whole = failed and watched.is_whole and self.allocation.is_slurm and not (script or lost)
        records = read_ends(self.folder, said, self.plan.shape.world_size, is_whole=is_whole)
        deaths = watched.deaths if watched.lost_nodes else ranks.deaths()
        wordless = {death.rank for death in deaths} - {record.rank for record in records}
        logs = {rank: last_words(self.folder.rank_log(rank)) for rank in wordless}
        return AttemptEvidence(
            world_size=self.plan.shape.world_size,
            launcher_code=watched.launcher_code,
            records=records,
            deaths=deaths,
            crashes=self._crashes({death.rank for death in deaths}),
            last_words={rank: lines[-1] for rank, lines in logs.items() if lines},
            hang=watched.hang,
            lost_nodes=lost,
            taken_nodes=self._taken(said, nodes),
            over_memory=over_memory(deaths, self.folder.rank_log),
            oom_nodes=tuple(nodes) if self._ran_out_of_memory(said) else (),
            stop_outcome=stop.outcome,
            stop_reason=stop.reason,
            asked_for_s=self.signals.first_s_ago,
            saved_step=self._steps().newly_saved,
            launcher_tail=said,
            started=bool(read_heartbeats(self.folder)),
            disk_trouble=self._disk_trouble() if failed or not records else "",
            may_take_no_steps=may_take_no_steps,
            ranks_tell=script is None,
        )

    def _ran_out_of_memory(self, said: str) -> bool:
        """Whether Slurm says so; where there is none, whether this machine's kernel has counted."""
        if self.allocation.has_steps:
            return "oom_kill" in said or "Out Of Memory" in said
        return oom_kills() > self.killed_before

    def _wait_for_exits(self, nodes: Sequence[str], stop: StopCause) -> None:
        """What ranks on other nodes have left may be seen late here; a cancel leaves no time."""
        if (
            stop.is_cancel
            or not self.allocation.has_steps
            or self.environ.get("SLURMD_NODENAME") in nodes
        ):
            return
        deadline = time.monotonic() + LATE_FILES_S
        while not read_exits(self.folder) and time.monotonic() < deadline:
            time.sleep(1.0)

    def _crashes(self, ranks: Collection[int]) -> dict[int, Crash]:
        """Where they crashed, of the ranks whose faulthandler has said so."""
        crashes = {}
        for rank in ranks:
            file = self.folder.rank_stacks(rank)
            with contextlib.suppress(OSError):  # it ended before it could open the file
                text = file.read_text(encoding="utf-8", errors="replace")
                crashes[rank] = crash_in_stacks(text, str(file.relative_to(self.run.path)))
        return {rank: crash for rank, crash in crashes.items() if crash is not None}

    def _disk_trouble(self) -> str:
        """Tried, not computed: a quota is in no file system's numbers."""
        try:
            write_text(self.folder.path / "disk-check", "x" * 4096)
        except OSError as error:
            return f"{error.strerror or error} ({self.folder.path})"
        (self.folder.path / "disk-check").unlink()
        return ""

    def _lost(self, nodes: Sequence[str]) -> tuple[str, ...]:
        if self.allocation.backend == "ssh":
            return silent_hosts(self.plan.hosts, nodes)
        return silent_nodes(nodes, self.addresses) if self.allocation.is_slurm else ()

    def _record(self, ending: AttemptOutcome, stop: StopCause) -> AttemptResult:
        self.look_for_beginning()
        self.look_for_notes()
        record_end(self.run, self.number, ending, self._steps())
        outcome = ending.outcome.value.replace("_", " ")
        self.log.say(f"attempt {self.number} ended: {outcome}: {ending.reason}")
        return AttemptResult(ending, stop)


def new_attempt(
    plan: Plan,
    allocation: Allocation,
    run: RunDir,
    environ: Mapping[str, str],
    signals: SupervisorSignals,
    log: SupervisorLog,
) -> Attempt:
    """Open the next attempt of the run: its folder, the `latest` link, its first line."""
    known = [record.attempt for record in attempts_in(read_events(run.events))]
    number = max(known, default=-1) + 1
    first = newest_step(run)
    attempt = Attempt(number, plan, allocation, run, environ, signals, log, assumed_first=first)
    attempt.folder.path.mkdir(parents=True, exist_ok=True)
    log.file = attempt.folder.supervisor_log
    if said := link_latest(run, number):
        leave_note(attempt.folder, said)
    unused = allocation.unused(environ, plan.shape)
    attempt.tell(
        EventKind.ATTEMPT_STARTED,
        job_id=allocation.job_id,
        restarts=allocation.restarts,
        nodes=list(allocation.nodes),
        host=socket.gethostname(),
        pid=os.getpid(),
        first_step=first,
        verb=plan.verb,
        weights=plan.weights,
        **({"weights_left_out": plan.weights_left_out} if plan.weights_left_out else {}),
        **({"unused": unused} if unused else {}),
    )
    if unused:
        log.say(f"not used: {unused}")
    attempt.tell_setup(told_in_variable(environ.get(FAILED, "")))
    return attempt
