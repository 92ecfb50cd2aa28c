"""Where the time of a run went: every second in one part, known numbers from made histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.report.goodput import PARTS
from hpc_train.runs.events import EventKind
from tests.report.made import BEGAN, make_run, night


def test_a_night_with_a_preemption_and_a_hang_is_shared_out_to_the_second(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    ended = night(made)
    shares = made.report().goodput
    assert shares.seconds == pytest.approx(
        {
            "training": 100 + 80 + 320,
            "evaluation": 12,
            "saving": 3,
            "lost": 20 + 60,  # 40 steps of half a second, and the minute of the hang
            "startup": 60,
            "preflight": 30,
            "ending": 15,
            "queue": 60 + 120 + 30,
        },
        abs=0.1,
    )
    assert shares.wall_s == pytest.approx(ended, rel=0.01)
    assert shares.notes == ()
    assert shares.share == pytest.approx(512 / ended, abs=0.001)


def test_gpu_hours_are_of_the_nodes_that_were_held_and_none_in_the_queue(tmp_path: Path) -> None:
    one, three = make_run(tmp_path, nodes=("n1",)), make_run(tmp_path, nodes="abc", number=1)
    for made in (one, three):
        made.end(made.attempt(0, 60, steps=(0, 100)))
    held = [sum(made.report().goodput.device_seconds.values()) for made in (one, three)]
    assert held == pytest.approx([90 * 4, 90 * 12], abs=1)
    assert one.report().device == "GPU"


def test_the_time_between_an_end_and_a_resume_by_hand_is_nobodys(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    made.end(made.attempt(0, 10, steps=(0, 50), outcome="cancelled"), "cancelled")
    made.tell(9_000, EventKind.SUBMITTED, job_id="8", backend="slurm")
    made.end(made.attempt(1, 9_020, steps=(50, 100)))
    shares = made.report().goodput
    assert shares.seconds["queue"] == pytest.approx(30)
    assert shares.wall_s == pytest.approx(2 * 65 + 30)


def test_a_running_attempt_has_lost_nothing_yet(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    silent = made.attempt(0, 5, steps=(0, 100), outcome=None)
    shares = made.report(now=silent).goodput
    assert shares.seconds["lost"] == 0
    assert shares.seconds["training"] == pytest.approx(50)
    assert shares.wall_s == pytest.approx(silent)


def test_a_run_that_waits_has_waited_until_now(tmp_path: Path) -> None:
    shares = make_run(tmp_path).report(now=40).goodput
    assert shares.seconds == pytest.approx({**dict.fromkeys(PARTS, 0), "queue": 40})
    assert shares.share == 0
    assert shares.device_share is None


@pytest.mark.parametrize("skew_s", [-3600.0, -20.0, 20.0, 3600.0])
def test_clocks_of_nodes_that_are_wrong_move_nothing_but_the_ends(
    tmp_path: Path, skew_s: float
) -> None:
    made = make_run(tmp_path)
    ended = made.attempt(0, 60, steps=(0, 200), skew_s=skew_s)
    made.end(ended)
    shares = made.report().goodput
    assert shares.seconds["training"] == pytest.approx(100)
    assert shares.wall_s == pytest.approx(ended, rel=0.01)
    assert min(shares.seconds.values()) >= 0


def test_a_supervisors_clock_that_jumps_is_said(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    made.tell(60, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7", nodes=["n1"])
    made.tell(-500, EventKind.ATTEMPT_ENDED, attempt=0, outcome="completed", last_step=3)
    made.end(-500)
    shares = made.report().goodput
    assert shares.seconds["queue"] == pytest.approx(60)
    assert any("a clock was changed" in note for note in shares.notes)


def test_a_version_whose_ranks_did_not_count_is_estimated_and_says_so(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    ended = made.attempt(0, 60, steps=(0, 200), seconds=False)
    made.end(ended)
    shares = made.report().goodput
    assert shares.seconds["training"] == pytest.approx(110)  # saves and the end are in it
    assert shares.wall_s == pytest.approx(ended)
    assert any("did not count" in note for note in shares.notes)


def test_an_attempt_that_was_killed_before_its_first_step_lost_all_it_trained(
    tmp_path: Path,
) -> None:
    made = make_run(tmp_path)
    made.attempt(0, 60, steps=(0, 0), outcome="hang", still_s=300)
    seconds = made.report(now=500).goodput.seconds
    assert (seconds["training"], seconds["lost"]) == (0, pytest.approx(300))


def test_steps_of_a_checkpoint_that_a_later_attempt_found_damaged_are_lost(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    ended = made.attempt(0, 60, steps=(0, 200), outcome="preempted")
    made.end(made.attempt(1, ended, steps=(0, 100)))
    seconds = made.report().goodput.seconds
    assert seconds["lost"] == pytest.approx(100)
    assert seconds["training"] == pytest.approx(50)


def test_the_rate_of_an_attempt_is_of_its_training_alone(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    night(made)
    report = made.report()
    rates = [it.steps_per_s for it in report.goodput.attempts]
    assert rates[0] == pytest.approx(2)
    assert rates[2] == pytest.approx(2)
    assert rates[1] == pytest.approx(200 / 160)  # it stood for a minute
    assert report.samples_per_s == pytest.approx(96 * report.steps_per_s)
    assert report.throughput is not None
    assert report.throughput.most == pytest.approx(2)
    assert report.throughput.points[0][0] == pytest.approx(95, abs=1)
    assert report.origin == BEGAN
