"""In a batch step, what the supervisor does once its ranks are gone: `python -m ... RUN ACTION`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Shape
from hpc_train.plan.policy import Decision
from hpc_train.plan.states import Action, RunState
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.resubmit import go_on
from hpc_train.supervisor.signals import SupervisorSignals
from tests.plan.configs import config


def main(run: RunDir, action: Action) -> None:
    SupervisorSignals().install()  # a requeue sends SIGTERM to this process as well
    place = Allocation.from_env(os.environ, Shape(nodes=1, ranks_per_node=1, gpus_per_node=0))

    def tell(kind: EventKind, **data: object) -> None:
        append_event(run.events, Event(time.time(), kind, data))

    tell(EventKind.ATTEMPT_STARTED, attempt=place.restarts, job_id=place.job_id)
    job = go_on(
        Decision(action=action, reason="", state=RunState.PENDING),
        place,
        run,
        make_plan(config(), workdir=Path.cwd(), python="python3"),
        requeued_already=False,
        say=lambda text: tell(EventKind.NOTE, text=text),
        before_resubmit=lambda: None,
    )
    tell(EventKind.WENT_ON, attempt=place.restarts, job_id=job)


if __name__ == "__main__":
    main(RunDir(Path(sys.argv[1])), Action(sys.argv[2]))
