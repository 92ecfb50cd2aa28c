"""What an attempt takes for evidence: real files, a real launcher, and Slurm's words as needed."""

from __future__ import annotations

import signal
import time

import pytest

from hpc_train.plan.states import Outcome, RankExit
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.provenance import code_files, code_state
from tests.supervisor.attempted import NODES, Scene, beat, say, scene

__all__ = ["scene"]

PREEMPTED = "JobState=RUNNING Requeue=0 Restarts=0 PreemptTime=2026-11-21T07:48:36"


def test_a_complete_training_needs_no_questions(scene: Scene) -> None:
    attempt = scene.attempt()
    beat(attempt, 30)
    scene.save(20)
    say(attempt, 0, 0)
    scene.job = PREEMPTED  # it may be, and it does not matter any more
    result = scene.carry_out(attempt, "exit 0")
    assert result.ending.outcome is Outcome.COMPLETED
    assert (result.stop.outcome, result.stop.requeued) == (None, False)
    ended = scene.ended()
    assert ended.nodes == NODES
    assert (ended.first_step, ended.last_step, ended.saved_step) == (0, 30, 30)
    assert ended.steps_lost == 0, "what is complete need not be taken again"
    assert scene.slurm.asked("scontrol") == []
    (srun,) = scene.slurm.asked("srun")
    assert "--nodelist=n1,n2" in srun


def test_a_ranks_own_error_is_in_the_history_with_all_that_it_said(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = scene.attempt()
    beat(attempt, 12)
    scene.save(10)
    say(attempt, 1, 1, error="ValueError: bad label", where="model.py:12", step=13)
    scene.carry_out(attempt, "exit 1")
    ended = scene.ended()
    assert ended.outcome is Outcome.USER_ERROR
    assert (ended.rank, ended.node, ended.failed_step) == (1, "n2", 13)
    assert (ended.error, ended.where) == ("ValueError: bad label", "model.py:12")
    assert (ended.first_step, ended.last_step, ended.saved_step) == (0, 13, 10)
    assert ended.steps_lost == 3
    said = capsys.readouterr().out
    assert "attempt 0: 2 ranks on n1, n2" in said
    assert "attempt 0 ended: user error: rank 1 on n2 failed" in said


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("SystemExit: 2", "SystemExit: 2, after 'train.py: error: no --lrr'"),
        ("SystemExit: gave up", "SystemExit: gave up"),
    ],
)
def test_an_exit_code_is_told_with_what_was_printed_before_it(
    error: str, told: str, scene: Scene
) -> None:
    attempt = scene.attempt()
    attempt.folder.rank_log(1).write_text(
        "usage: train.py\ntrain.py: error: no --lrr\n\n"
        f"Traceback (most recent call last):\n  File x\n{error}\n\nerror: {error}\n"
    )
    say(attempt, 1, 2, error=error)
    scene.carry_out(attempt, "exit 2")
    assert scene.ended().error == told


def test_a_preemption_is_told_by_slurm_and_keeps_what_was_saved(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.save(42)
    for rank in range(2):
        say(attempt, rank, RankExit.SAVED, kind="saved", step=42)
    scene.job = PREEMPTED
    result = scene.carry_out(attempt, "exit 75")
    assert result.ending.outcome is Outcome.PREEMPTED
    assert result.ending.reason == "preempted by Slurm; saved at step 42"
    assert (result.stop.requeued, result.stop.may_requeue) == (False, False)
    assert not scene.asked_for_nodes, "the stop explains it all"


def test_an_old_checkpoint_is_not_what_this_attempt_saved(scene: Scene) -> None:
    scene.save(42)
    attempt = scene.attempt()
    scene.job = PREEMPTED
    assert "nothing new was saved" in scene.carry_out(attempt, "exit 75").ending.reason
    assert scene.ended().first_step == 42


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGINT, "Ctrl-C in the foreground"),
        (signal.SIGHUP, "its terminal was closed (SIGHUP)"),
    ],
)
def test_ctrl_c_and_a_closed_terminal_are_a_cancel_and_slurm_is_not_asked(
    scene: Scene, number: signal.Signals, reason: str
) -> None:
    attempt = scene.attempt()
    scene.signals.received[number] = 1
    result = scene.carry_out(attempt, "exit 75")
    assert result.ending.outcome is Outcome.CANCELLED
    assert result.ending.reason.startswith(reason)
    assert not scene.asked_for_job


def test_a_sigterm_that_slurm_does_not_explain_is_a_cancel(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.signals.received[signal.SIGTERM] = 1
    assert scene.carry_out(attempt, "exit 75").ending.reason == "the job was cancelled (scancel)"


def cancel(scene: Scene, at: float) -> None:
    append_event(scene.run.events, Event(at, EventKind.CANCEL_REQUESTED, {"by": "me"}))


def test_a_cancel_counts_for_the_attempt_in_which_it_was_asked_for(scene: Scene) -> None:
    attempt = scene.attempt()
    cancel(scene, time.time())
    result = scene.carry_out(attempt, "exit 75")
    assert result.ending.reason == "`hpc-train cancel` asked for it"
    append_event(scene.run.events, Event(time.time(), EventKind.SUBMITTED, {"job_id": "8"}))
    resumed = scene.attempt()
    say(resumed, 0, 1, error="KeyError: 'x'")
    assert scene.carry_out(resumed, "exit 1").ending.outcome is Outcome.USER_ERROR


def test_a_cancel_at_the_very_start_counts(scene: Scene) -> None:
    attempt = scene.attempt()
    (started,) = read_events(scene.run.events)
    cancel(scene, started.time)
    assert attempt.cancel_requested()


def test_nobody_has_cancelled_a_run_without_a_history(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.run.events.unlink()
    assert not attempt.cancel_requested()


def test_a_stop_file_counts_if_it_was_made_while_the_ranks_ran(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.run.stop.touch()  # of the attempt before
    say(attempt, 0, 1, error="KeyError: 'x'")
    assert scene.carry_out(attempt, "exit 1").ending.outcome is Outcome.USER_ERROR
    attempt = scene.attempt()
    result = scene.carry_out(attempt, f"touch '{scene.run.stop}'; exit 75")
    assert result.ending.outcome is Outcome.CANCELLED
    assert "the file `stop`" in result.ending.reason


@pytest.mark.parametrize(
    "words",
    [
        "srun: error: n2: task 1: Out Of Memory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.",
    ],
)
def test_a_kernel_that_kills_for_memory_says_so_through_slurm(words: str, scene: Scene) -> None:
    attempt = scene.attempt()
    beat(attempt, 3)
    killed = "srun: error: n2: task 1: Killed"
    launcher = f"echo '{words}' >&2; echo '{killed}' >&2; exit 137"
    assert scene.carry_out(attempt, launcher).ending.outcome is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("StepId=7.0 exceeded memory limit (2568224768 > 2147483648), being killed", "2449 MiB"),
        ("Job 7 exceeded memory limit (2568224768 > 2147483648), being killed", "2449 MiB"),
        ("Detected 2 oom-kill event(s) in StepId=7.0.", "used up its memory"),
        ("Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have", "used up"),
    ],
)
def test_slurm_says_in_a_ranks_own_log_that_it_killed_it_for_memory(
    said: str, words: str, rank: int, scene: Scene
) -> None:
    """srun says of all of a step's tasks that they were killed, and of none why."""
    attempt = scene.attempt()
    log = attempt.folder.rank_log(rank)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(
        f"training from step 0 on 2 ranks\nslurmstepd-n{rank + 1}: error: {said}\n"
        "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-25T21:38:39 ***\n"
    )
    killed = "; ".join(f"echo 'srun: error: n{n + 1}: task {n}: Killed' >&2" for n in (0, 1))
    ending = scene.carry_out(attempt, f"{killed}; exit 137").ending
    assert (ending.outcome, ending.rank) == (Outcome.OUT_OF_MEMORY, rank)
    assert words in ending.reason
    assert ending.reason.endswith("slurm.mem, mem_per_gpu or mem_per_cpu gives it more")


def test_a_rank_killed_without_a_word_of_memory_is_no_memory_trouble(scene: Scene) -> None:
    attempt = scene.attempt()
    result = scene.carry_out(attempt, "echo 'srun: error: n2: task 1: Killed' >&2; exit 137")
    assert result.ending.outcome is Outcome.NODE_FAILURE
    assert result.ending.reason.startswith("rank 1 on n2 was killed by SIGKILL first")


def test_a_node_that_does_not_answer_is_found_where_nothing_else_explains(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.ports["n2"] = scene.gone
    result = scene.carry_out(attempt, "exit 1")
    assert result.ending.outcome is Outcome.NODE_FAILURE
    assert (result.ending.blamed, result.ending.gone) == (("n2",), ("n2",))
    assert scene.ended().blamed == ("n2",)


def test_without_scontrol_no_node_is_called_lost(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.slurm.does("srun", f"rm '{scene.slurm.bin}/scontrol'; exit 1")
    scene.slurm.says("scontrol")
    assert attempt.carry_out(NODES, {}, {}).ending.blamed == ()


@pytest.mark.parametrize(
    ("beats", "words"),
    [
        (0, "the ranks never started (the launcher exited 3): srun: no such step"),
        (1, "the launcher exited 3 and no rank says why: srun: no such step"),
    ],
)
def test_whether_any_rank_gave_a_sign_of_life_is_told(beats: int, words: str, scene: Scene) -> None:
    attempt = scene.attempt()
    for rank in range(beats):
        beat(attempt, 1, rank)
    result = scene.carry_out(attempt, "echo 'srun: no such step' >&2; exit 3")
    assert result.ending.reason == words
    assert not (attempt.folder.path / "disk-check").exists()


def test_a_run_directory_that_cannot_be_written_explains_silent_ranks(scene: Scene) -> None:
    attempt = scene.attempt()
    (attempt.folder.path / "disk-check").mkdir()
    result = scene.carry_out(attempt, "exit 1")
    assert result.ending.outcome is Outcome.USER_ERROR
    assert result.ending.error == f"Is a directory ({attempt.folder.path})"


def test_where_a_stop_explains_the_end_the_disk_is_not_tried(scene: Scene) -> None:
    attempt = scene.attempt()
    (attempt.folder.path / "disk-check").mkdir()
    scene.job = PREEMPTED
    assert scene.carry_out(attempt, "exit 75").ending.outcome is Outcome.PREEMPTED


def test_code_that_was_edited_before_an_attempt_began_by_itself_is_noted(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    nets = scene.run.path.parent / "nets.py"
    nets.write_text("1")
    for name, text in code_files(code_state(nets.parent)).items():
        (scene.run.path / name).write_text(text)
    keep = "; a run that was submitted with snapshot=git keeps its code"
    notes = []
    for text in ("1", "2", "2", "3"):
        nets.write_text(text)
        scene.carry_out(scene.attempt(), "exit 1")
        notes.append(scene.ended().notes)
    assert notes == [
        (),
        (f"the code is not that of attempt 0: nets.py{keep}",),
        (),
        (f"the code is not that of attempt 2: nets.py{keep}",),
    ]
    assert "note: the code is not that of attempt 0: nets.py" in capsys.readouterr().out


def test_code_that_was_edited_while_the_run_waited_is_noted(scene: Scene) -> None:
    nets = scene.run.path.parent / "nets.py"
    nets.write_text("1")
    for name, text in code_files(code_state(nets.parent)).items():
        (scene.run.path / name).write_text(text)
    nets.write_text("2")
    scene.carry_out(scene.attempt(), "exit 1")
    (note,) = scene.ended().notes
    assert note.startswith("the code is not that of the submission: nets.py; ")
