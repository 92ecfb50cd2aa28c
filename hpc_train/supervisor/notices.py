"""What a person who is away is told of a run: its start, its end, and trouble in between.

Each is sent beside the run, which waits for none; at its end the supervisor's process does, for as
long as `notify.timeout_s`.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hpc_train.config.schema import NotifyConfig
from hpc_train.plan.hostlist import folded
from hpc_train.plan.states import Action, Outcome, RunState
from hpc_train.runs.events import Event, EventKind, read_events
from hpc_train.runs.history import AttemptRecord, since_submission
from hpc_train.runs.history_text import printable
from hpc_train.runs.ranks import read_heartbeats
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.runs.status import RunStatus, run_status
from hpc_train.supervisor.send_notice import Notice, send

if TYPE_CHECKING:
    from hpc_train.supervisor.attempt import Attempt
    from hpc_train.supervisor.attempt_ended import AttemptEnded

PREEMPTIONS, DAY_S = 3, 24 * 3600.0
# Nodes are compared over so long, and as often as LOOK_EVERY_S: a save or a validation is shorter.
STRAGGLER_S, LOOK_EVERY_S = 300.0, 60.0
LATE_LOOKS = 3  # one after another, in which a node was late, before it is told
Say = Callable[[str], None]


def notify_of_end(event: AttemptEnded, say: Say) -> None:
    """A listener: the run's end, with the sentence of `status`, and its third preemption a day."""
    if not event.plan.notify.urls_from:
        return
    status = _status_after(event)
    if event.decision.action is Action.STOP:
        is_bad = status.state not in (RunState.COMPLETED, RunState.CANCELLED)
        title = f"{status.name} {status.state.value.replace('_', ' ')}"
        kind = "failure" if is_bad else "end"
        _tell(event.plan.notify, kind, title, _text(event, status, is_bad=is_bad), say)
    elif preempted_often(status.attempts):
        title = f"{status.name} was preempted {PREEMPTIONS} times in 24 h"
        _tell(event.plan.notify, "preemptions", title, _text(event, status, is_bad=False), say)


def notify_of_start(attempt: Attempt) -> None:
    """Tell that the ranks of a run's first attempt since its submission were started."""
    if not attempt.plan.notify.urls_from:
        return
    records = since_submission(read_events(attempt.run.events))
    if len(records) != 1:
        return
    nodes, run = folded(records[0].nodes), attempt.run
    job = f" as job {records[0].job_id}" if records[0].job_id else ""
    text = f"{run.name} ({run.run_id}) began on {nodes}{job}\nhpc-train status {run.run_id}"
    _tell(attempt.plan.notify, "start", f"{run.name} began", text, attempt.log.say)


def preempted_often(attempts: Sequence[AttemptRecord]) -> bool:
    """Whether the newest attempt is the third in a day that was preempted; told once a day."""
    ends = [it.ended for it in attempts if it.outcome is Outcome.PREEMPTED and it.ended]
    if not attempts or attempts[-1].outcome is not Outcome.PREEMPTED:
        return False
    told = None
    for number, end in enumerate(ends):
        often = sum(0 <= end - other < DAY_S for other in ends[: number + 1]) >= PREEMPTIONS
        is_news = often and (told is None or end - told >= DAY_S)
        told = end if is_news else told
    return told == ends[-1]


class StragglerWatch:
    """Called about once a second; compares the nodes once a minute, in a thread of its own."""

    def __init__(self, attempt: Attempt, window_s: float = STRAGGLER_S) -> None:
        self.attempt = attempt
        self.window_s = window_s
        self.look_at = time.monotonic() + window_s
        self.told: set[str] = set()
        self.late: Counter[str] = Counter()  # in how many looks, one after another

    def look(self) -> None:
        """Start a comparison where it is time."""
        if time.monotonic() < self.look_at:
            return
        self.look_at = time.monotonic() + LOOK_EVERY_S
        threading.Thread(target=self.compare, daemon=True).start()

    def compare(self) -> None:
        """Tell of each node that differs from the others while all train, once an attempt."""
        from hpc_train.report.node_use import late_nodes, odd_nodes

        beats = read_heartbeats(self.attempt.folder)
        if not any(beat.rank == 0 and beat.phase == "train" for beat in beats):
            return
        late = late_nodes(beats)
        self.late = Counter({node: self.late[node] + 1 for node in late})
        for node, what in late.items():
            if self.late[node] >= LATE_LOOKS:
                self._tell(node, f"{node} holds the other nodes up: {what}")
        minutes = f"{self.window_s / 60:g} min"
        for node, what in odd_nodes(self.attempt.run, self.window_s).items():
            self._tell(node, f"{node} differs from the other nodes for {minutes}: {what}")

    def _tell(self, node: str, text: str) -> None:
        if node in self.told:
            return
        self.told.add(node)
        run, say = self.attempt.run, self.attempt.log.say
        say(text)
        text = f"{run.name} ({run.run_id}): {text}\nhpc-train report {run.run_id}"
        title = f"{run.name}: {node} is a straggler"
        _tell(self.attempt.plan.notify, "straggler", title, text, say)


def _status_after(event: AttemptEnded) -> RunStatus:
    """The run as `status` will show it once the decision is carried out."""
    events = read_events(event.run.events)
    decision = event.decision
    if decision.action is Action.STOP:
        ended = {"state": decision.state.value, "reason": decision.reason}
        events.append(Event(time.time(), EventKind.RUN_ENDED, ended))
    view = SchedulerView(decision.state, decision.reason)
    return run_status(event.run, events, view, beat=None, metrics={}, now=time.time())


def _text(event: AttemptEnded, status: RunStatus, *, is_bad: bool) -> str:
    from hpc_train.diagnose.read_run import sentence_of

    sentence = ""
    with contextlib.suppress(OSError):  # a full or absent file system: the reason is enough
        sentence = sentence_of(event.run, status) if is_bad else ""
    lines = [
        f"{status.name} ({status.run}) is {status.state.value}: {status.reason}",
        f"cause: {sentence}" if sentence else "",
        f"step {status.step}, attempt {event.attempt.attempt}, job {status.job_id or '-'}",
        f"hpc-train {'diagnose' if is_bad else 'status'} {status.run}",
    ]
    return "\n".join(filter(None, lines))


def _tell(notify: NotifyConfig, kind: str, title: str, text: str, say: Say) -> None:
    """Send it where it is wanted, in a thread: it ends by itself, and the process waits for it."""
    if not notify.urls_from or kind not in notify.events:
        return
    lines = "\n".join(map(printable, text.split("\n")))
    notice = Notice(printable(f"hpc-train: {title}"), lines)

    def send_it() -> None:
        # scontrol requeue has Slurm send SIGTERM at once; the sender inherits this (execve(2)).
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        if troubles := "; ".join(send(notify, notice).troubles):
            say(f"the notice of {kind} was not sent: {troubles}; hpc-train notify CFG tries it")

    threading.Thread(target=send_it).start()
