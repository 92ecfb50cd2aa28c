"""What bash itself has said of a line of env.setup that ended the job's shell."""

from __future__ import annotations

import pytest

from hpc_train.plan.states import RunState
from hpc_train.runs.scheduler_view import SchedulerView
from tests.runs.told_status import SUBMITTED, told

BEGAN = "the job ended before its training began: "
ERROR = "hpc-train: error: env.setup ended the job's shell: `export A=$B/x`, exit code 1"
FIX = "fix: leave that command out of env.setup and of the files that it sources"
GIVE = "fix: export B=... in a line before it, or in the shell that submits; or write ${B:-}"


@pytest.mark.parametrize(
    ("bash", "error", "fix"),
    [
        (
            "/var/spool/job7/slurm_script: line 60: B: unbound variable",
            ": B: unbound variable",
            GIVE,
        ),
        ("bash: line 5: B: unbound variable", ": B: unbound variable", GIVE),
        (
            "/opt/site.sh: line 3: B: unbound variable",
            ": B: unbound variable (/opt/site.sh:3)",
            GIVE,
        ),
        ("slurm_script: line 60: B: name a folder", ": B: name a folder", FIX),
        ("loading the modules", "", FIX),
    ],
)
def test_the_reason_of_bash_is_told_with_the_line_that_it_ended(
    bash: str, error: str, fix: str
) -> None:
    words = ("loading", bash, ERROR, FIX)
    reason = told(SchedulerView(RunState.FAILED, "NonZeroExitCode", last_words=words), SUBMITTED)
    assert reason.reason.startswith(f"{BEGAN}{ERROR}{error}; {fix}")


def test_the_words_before_another_error_stay_where_they_are() -> None:
    other = "hpc-train: error: env.venv: there is no /x"
    words = ("bash: line 5: B: unbound variable", other, "fix: name another")
    said = told(SchedulerView(RunState.FAILED, "NonZeroExitCode", last_words=words), SUBMITTED)
    assert said.reason == f"{BEGAN}{other}; fix: name another"
