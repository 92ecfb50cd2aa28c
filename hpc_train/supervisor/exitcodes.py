"""The exit code of a run's final state, for the job and for `--wait` alike."""

from __future__ import annotations

from hpc_train.errors import RunCancelledError, RunFailedError, RunTimedOutError
from hpc_train.plan.states import RunState

EXIT_CODES = {
    RunState.COMPLETED: 0,
    RunState.FAILED: RunFailedError.exit_code,
    RunState.LOST: RunFailedError.exit_code,
    RunState.TIMED_OUT: RunTimedOutError.exit_code,
    RunState.CANCELLED: RunCancelledError.exit_code,
}
