"""What `run` shows of a rank that failed: its traceback in short, and each sentence once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpc_train import api
from hpc_train.cli import foreground
from hpc_train.runs.events import EventKind
from hpc_train.runs.ranks import ExitRecord, leave_note, write_exit
from tests.cli.test_following import tell, training

__all__ = ["training"]

HEAD = "Traceback (most recent call last):"
LIBRARY = '  File "/env/lib/python3.11/site-packages/a.py", line 3, in fit\n    run()\n'
OURS = '  File "/env/lib/python3.11/site-packages/hpc_train/training/rank.py", line 9, in run\n'
OWN = '  File "/home/u/nets.py", line 34, in training_step\n    f(x)\n'


def failed_rank(rank: int, error: str, frames: str = 5 * LIBRARY + OWN) -> ExitRecord:
    return ExitRecord(rank=rank, node="n1", time=5.0, code=1, error=error, where="nets.py:34",
                      traceback=f"{HEAD}\n{frames}{error}\n")  # fmt: skip


def test_in_the_foreground_the_reason_of_the_last_end_stands_in_the_traceback_alone(
    training, capfd
):
    error = "ValueError: no such axis"
    record = failed_rank(0, error)
    with foreground.shown(api.Run(training)):
        write_exit(training.attempt(0), record)
        training.attempt(0).rank_log(0).write_text(
            f"error: of the program's own\n{record.traceback}\nerror: {error} (nets.py:34)\n"
        )
        print(f"12:00:00 hpc-train: attempt 0 ended: preempted: {error}")
        print("12:00:01 hpc-train: decided: requeue: it goes on")
        print(f"12:00:02 hpc-train: attempt 1 ended: user error: rank 0 failed: {error}")
        print("12:00:03 hpc-train: decided: stop: it is not tried again")
    said = capfd.readouterr().out.splitlines()
    assert "error: of the program's own" in said
    ended = f"12:00:00 hpc-train: attempt 0 ended: preempted: {error}"
    assert sorted(line for line in said if error in line) == [ended, error]
    assert "12:00:02 hpc-train: attempt 1 ended: user error" in said


def test_a_note_of_a_rank_is_said_once_by_the_supervisor_and_the_users_own_is_shown(
    training, capfd
):
    with foreground.shown(api.Run(training)):
        leave_note(training.attempt(0), "loss is NaN at step 3")
        training.attempt(0).rank_log(0).write_text("note: loss is NaN at step 3\nnote: mine\n")
        print("12:00:00 hpc-train: note: loss is NaN at step 3")
    said = capfd.readouterr().out
    assert said.count("loss is NaN at step 3") == 1
    assert "note: mine\n" in said


@pytest.mark.parametrize("rank", [0, 1])
def test_the_words_of_another_rank_that_failed_first_come_last(training, rank):
    error = "ValueError: no such axis"
    write_exit(training.attempt(0), failed_rank(rank, error))
    tell(training, EventKind.ATTEMPT_ENDED, attempt=0, outcome="user_error", reason=error,
         rank=rank, node="n1")  # fmt: skip
    tell(training, EventKind.RUN_ENDED, state="failed", reason="it is not tried again")
    words = foreground.words_of_culprit(training, api.Run(training).status())
    assert bool(words) is (rank == 1)
    if words:
        log = training.attempt(0).rank_log(1)
        left_out = f"  (5 frames of libraries are left out: {log})\n"
        assert words == f"rank 1 on n1:\n{HEAD}\n{left_out}{OWN}{error}\n"


@pytest.mark.parametrize("of_rank_0", ["no such axis", "another"])
def test_of_ranks_that_failed_alike_one_traceback_is_shown(training, of_rank_0):
    for rank, said in ((0, of_rank_0), (1, "no such axis")):
        write_exit(training.attempt(0), failed_rank(rank, f"ValueError: {said}"))
    tell(training, EventKind.ATTEMPT_ENDED, attempt=0, outcome="user_error", rank=1, node="n1")
    tell(training, EventKind.RUN_ENDED, state="failed", reason="it is not tried again")
    words = foreground.words_of_culprit(training, api.Run(training).status())
    alike = "rank 1 on n1: the same error at the same place\n"
    assert (words == alike) == (of_rank_0 == "no such axis")
    assert (OWN in words) == (of_rank_0 != "no such axis")


@pytest.mark.parametrize(
    ("frames", "shown"),
    [
        (OWN + 7 * LIBRARY, f"(6 frames{OWN}{LIBRARY}"),  # the last one says where it was raised
        (3 * LIBRARY + OWN + 3 * LIBRARY + OWN, f"(6 frames{OWN}{OWN}"),
        (9 * LIBRARY, f"(8 frames{LIBRARY}"),
        (2 * LIBRARY + OWN, 2 * LIBRARY + OWN),
        (OWN * 9, OWN * 9),
    ],
)
def test_of_rank_0s_traceback_the_users_frames_and_the_last_one_are_shown(
    training, capfd, frames, shown
):
    error = "ValueError: no such axis"
    record = failed_rank(0, error, frames)
    with foreground.shown(api.Run(training)):
        write_exit(training.attempt(0), record)
        training.attempt(0).rank_log(0).write_text(f"before\n{record.traceback}\nafter\n")
    rest = f" of libraries are left out: {training.latest_attempt.rank_log(0)})\n"
    shown = shown.replace("(6 frames", f"  (6 frames{rest}").replace(
        "(8 frames", f"  (8 frames{rest}"
    )
    assert capfd.readouterr().out == f"before\n{HEAD}\n{shown}{error}\n\nafter\n"


@pytest.mark.parametrize(
    ("frames", "fix", "shown"),
    [
        (OURS * 3 + OWN, "", f"  (3 frames of hpc-train are left out: LOG)\n{OWN}"),
        (OURS + LIBRARY + OWN, "", f"  (2 frames of libraries are left out: LOG)\n{OWN}"),
        (OURS + OWN + LIBRARY, "", f"  (1 frame of hpc-train is left out: LOG)\n{OWN}{LIBRARY}"),
        (9 * LIBRARY + OURS, "use it", "  (10 frames of libraries are left out: LOG)\n"),
        (OWN + OURS, "use it", f"  (1 frame of hpc-train is left out: LOG)\n{OWN}"),
        (OURS * 2 + OWN + OURS, "", f"{OURS * 2}{OWN}{OURS}"),
        (OURS + 5 * LIBRARY + OURS, "",
         f"  (5 frames of libraries are left out: LOG)\n{2 * OURS}"),
    ],
)  # fmt: skip
def test_frames_of_hpc_train_are_shown_only_where_the_error_may_be_its_own(
    training, frames, fix, shown
):
    record = replace(failed_rank(1, "ValueError: no such axis", frames), fix=fix)
    write_exit(training.attempt(0), record)
    tell(training, EventKind.ATTEMPT_ENDED, attempt=0, outcome="user_error", rank=1, node="n1")
    tell(training, EventKind.RUN_ENDED, state="failed", reason="it is not tried again")
    words = foreground.words_of_culprit(training, api.Run(training).status())
    shown = shown.replace("LOG", str(training.attempt(0).rank_log(1)))
    assert words == f"rank 1 on n1:\n{HEAD}\n{shown}ValueError: no such axis\n"


def test_a_full_disk_is_no_error_of_hpc_trains(training):
    record = failed_rank(1, "OSError: [Errno 28] No space left on device", OWN + OURS)
    write_exit(training.attempt(0), record)
    tell(training, EventKind.ATTEMPT_ENDED, attempt=0, outcome="user_error", rank=1, node="n1")
    tell(training, EventKind.RUN_ENDED, state="failed", reason="it is not tried again")
    words = foreground.words_of_culprit(training, api.Run(training).status())
    assert OWN in words
    assert OURS not in words
