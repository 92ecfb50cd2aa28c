"""The history of a run that no supervisor looks after: a script of the user's with a Session.

With it `hpc-train list` and `status` show the run. Rank 0 alone writes.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from hpc_train.plan import env_names
from hpc_train.plan.states import Outcome, RunState
from hpc_train.runs.atomic import write_text
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.known_places import remember_root
from hpc_train.runs.latest_link import link_latest
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import UNSAVED, ExitRecord, leave_note, read_exits, read_notes
from hpc_train.runs.status import SESSION

_CONSEQUENCES = ("network", "saved", "finished")  # kinds of an exit that another rank's brings


class SessionHistory:
    """What is told of one attempt. Nothing of it can end a training, as on a full disk."""

    def __init__(self, run: RunDir, attempt: int, environ: Mapping[str, str], *, rank: int) -> None:
        self._run = run
        self._attempt = attempt
        self._environ = environ
        # Started by hpc-train, the run has a supervisor, which tells all this.
        self._tells = rank == 0 and env_names.RUN_DIR not in environ

    def begins(self) -> None:
        """The attempt begins."""
        if not self._tells:
            return
        run, environ, host = self._run, self._environ, socket.gethostname()
        job = {"job_id": environ.get("SLURM_JOB_ID") or f"pid-{os.getpid()}"}
        nodes = [environ.get("SLURMD_NODENAME", host)]
        with contextlib.suppress(OSError):
            if not run.session.exists():
                write_text(run.session, " ".join(sys.argv) + "\n")
            remember_root(environ, run.path.parent)
            if said := link_latest(run, self._attempt):
                leave_note(run.attempt(self._attempt), said)
        self._tell(EventKind.SUBMITTED, **job, backend=SESSION)
        first = newest_step(run)
        self._tell(
            EventKind.ATTEMPT_STARTED,
            **job, nodes=nodes, host=host, pid=os.getpid(), first_step=first,
        )  # fmt: skip

    def goes_on(self, step: int) -> None:
        """The ranks go on behind `step`."""
        self._tell(EventKind.RANKS_BEGAN, first_step=step)

    def note(self, text: str) -> None:
        """Have the run's history say this, once; without a supervisor the terminal as well."""
        attempt = self._run.attempt(self._attempt)
        if text in read_notes(attempt):
            return
        leave_note(attempt, text)
        self._tell(EventKind.NOTE, text=text)
        if self._tells:
            print(f"note: {text}", file=sys.stderr, flush=True)  # noqa: T201 - the user's terminal

    def ends(self, first_step: int) -> None:
        """The attempt ends, as the ranks' records say; the first failure is the reason."""
        records = read_exits(self._run.attempt(self._attempt)) if self._tells else []
        if not records:
            return
        failed = [record for record in records if record.kind not in _CONSEQUENCES]
        record, saved = (failed or records)[0], newest_step(self._run)
        outcome, state, reason = _end_of(record)
        self._tell(
            EventKind.ATTEMPT_ENDED,
            outcome=outcome.value, reason=reason, rank=record.rank, node=record.node,
            error=record.error, where=record.where,
            first_step=first_step, last_step=max(record.step or 0 for record in records),
            saved_step=saved,
        )  # fmt: skip
        goes_on = f"started again, the script goes on from step {saved}"
        why = outcome.follows.reason if state is RunState.COMPLETED else goes_on
        self._tell(EventKind.RUN_ENDED, state=state.value, reason=why)

    def _tell(self, kind: EventKind, **data: Any) -> None:
        if self._tells:
            with contextlib.suppress(OSError):
                told = {"attempt": self._attempt, **data}
                append_event(self._run.events, Event(time.time(), kind, told))


def _end_of(record: ExitRecord) -> tuple[Outcome, RunState, str]:
    if record.kind == "finished":
        return Outcome.COMPLETED, RunState.COMPLETED, "all ranks finished"
    if record.kind == "saved":
        return Outcome.CANCELLED, RunState.CANCELLED, f"stopped by {record.cause}"
    if record.kind == UNSAVED:
        return Outcome.USER_ERROR, RunState.FAILED, record.error
    where = f" ({record.where})" if record.where else ""
    return Outcome.USER_ERROR, RunState.FAILED, f"rank {record.rank}: {record.error}{where}"
