"""Which jobs have to end well so that a sweep is complete, as its points move to other jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpc_train.errors import CheckError
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.states import RunState
from hpc_train.plan.sweep_plan import SweepPlan, SweepPoint
from hpc_train.runs.atomic import write_text
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir, make_point, make_sweep
from hpc_train.runs.sweep_status import PointStatus, SweepStatus
from hpc_train.supervisor.dependents import carriers, wait_for
from tests.plan.configs import config


@pytest.fixture
def sweep(tmp_path: Path) -> SweepDir:
    """Three points, submitted as array 7."""
    plan = make_plan(config(), workdir=tmp_path, python="/usr/bin/python3", for_script=False)
    points = tuple(SweepPoint({"seed": k}, []) for k in range(3))
    made = SweepDir(tmp_path / "runs" / "digits" / "20261121-000000-ab")
    placed = SweepPlan(plan=plan, points=points).placed(str(tmp_path), str(tmp_path / "runs"))
    make_sweep(made, placed, {})
    submitted(made, "7")
    return made


def submitted(sweep: SweepDir, job_id: str, **more: Any) -> None:
    data = {"job_id": job_id, "backend": "slurm", **more}
    append_event(sweep.events, Event(1.0, EventKind.SUBMITTED, data))


def moved(sweep: SweepDir, number: int, job_id: str) -> None:
    data = {"job_id": job_id, "attempt": 0}
    append_event(make_point(sweep, number).events, Event(2.0, EventKind.WENT_ON, data))


def test_an_array_stands_for_its_tasks_until_another_job_carries_one(sweep: SweepDir) -> None:
    assert carriers(sweep) == ("7",)
    write_text(make_point(sweep, 0).done, "")
    assert carriers(sweep) == ("7",), "a task that has ended well does no harm"
    moved(sweep, 1, "9")
    assert carriers(sweep) == ("9", "7_2"), "7_1 has not ended well, and the first is complete"


def test_points_that_were_submitted_again_are_an_array_of_their_own(sweep: SweepDir) -> None:
    for number in (0, 1):
        event = Event(2.0, EventKind.SUBMITTED, {"job_id": f"8_{number}", "backend": "slurm"})
        append_event(make_point(sweep, number).events, event)
    submitted(sweep, "8", points=[0, 1])
    assert carriers(sweep) == ("8", "7_2")
    for number in range(3):
        write_text(make_point(sweep, number).done, "")
    assert carriers(sweep) == ()


def test_what_waits_for_all_points_waits_for_none_of_them_alone(sweep: SweepDir) -> None:
    data = {"job_id": "10", "dependency": ""}
    append_event(sweep.events, Event(2.0, EventKind.DEPENDENT, data))
    kinds = [event.kind for event in read_events(make_point(sweep, 0).events)]
    assert kinds == [EventKind.SUBMITTED]


@pytest.mark.parametrize("failed", [[1], [0, 2]])
def test_a_sweep_with_points_that_have_failed_is_not_waited_for(
    sweep: SweepDir, failed: list[int]
) -> None:
    states = dict.fromkeys(failed, RunState.FAILED)
    with pytest.raises(CheckError) as caught:
        wait_for(Seen(status(sweep, states)), None, "slurm")
    one = f"{sweep.sweep_id}-{failed[0]}"
    assert f"its point {one} is failed (no luck)" in caught.value.message
    fix = one if failed == [1] else sweep.sweep_id
    assert caught.value.hint == f"go on with it first: hpc-train resume {fix}"


def test_a_complete_sweep_is_not_waited_for(sweep: SweepDir) -> None:
    done = status(sweep, dict.fromkeys(range(3), RunState.COMPLETED))
    assert wait_for(Seen(done), None, "slurm") is None
    going_on = wait_for(Seen(status(sweep, {0: RunState.COMPLETED})), "singleton", "slurm")
    assert going_on is not None
    assert going_on.options[0] == "--dependency=afterok:7,singleton"


class Seen:
    """A sweep whose status is that."""

    def __init__(self, status: SweepStatus) -> None:
        self._status = status

    def status(self) -> SweepStatus:
        return self._status


def status(sweep: SweepDir, states: dict[int, RunState]) -> SweepStatus:
    points = [
        PointStatus(
            number,
            {},
            RunStatus(
                run=f"{sweep.sweep_id}-{number}",
                name="digits",
                run_dir=str(sweep.point(number).path),
                state=states.get(number, RunState.RUNNING),
                job_id=f"7_{number}",
                backend="slurm",
                reason="no luck",
            ),
        )
        for number in range(3)
    ]
    return SweepStatus(
        sweep=sweep.sweep_id,
        name="digits",
        sweep_dir=str(sweep.path),
        job_id="7",
        submitted=1.0,
        points=tuple(points),
    )
