"""How ranks ended, in srun's words, in torch's elastic launcher's and in faulthandler's."""

from __future__ import annotations

import sysconfig

import pytest

from hpc_train.plan.states import Outcome
from hpc_train.supervisor.deaths import (
    Death,
    crash_in_stacks,
    deaths_in_elastic_log,
    deaths_in_srun_log,
)
from hpc_train.supervisor.evidence import AttemptEvidence
from hpc_train.supervisor.outcome import classify
from tests.supervisor.rank_ends import SRUN_KILLED, killed

ELASTIC_FAILED = """\
E1121 08:04:20.1 1 torch/distributed/elastic/multiprocessing/api.py:1] failed (exitcode: -9)
============================================================
hpc_train.training FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-21_08:04:20
  host      : vm
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 120)
  error_file: <N/A>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_08:04:19
  host      : vm
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 121)
  error_file: <N/A>
============================================================
"""


def test_srun_names_the_killed_task_and_not_those_it_stopped_afterwards() -> None:
    assert deaths_in_srun_log(SRUN_KILLED) == [Death(rank=5, node="node2", signal=9)]


def test_srun_exit_codes_and_lists_of_tasks_are_read() -> None:
    deaths = deaths_in_srun_log("srun: error: rack1n01: tasks 1,3-4: Exited with exit code 75\n")
    assert [(death.rank, death.code) for death in deaths] == [(1, 75), (3, 75), (4, 75)]


def test_a_task_killed_for_memory_is_read_as_killed() -> None:
    assert deaths_in_srun_log("srun: error: node1: task 0: Out Of Memory\n")[0].signal == 9


def test_the_elastic_launchers_root_cause_comes_first() -> None:
    deaths = deaths_in_elastic_log(ELASTIC_FAILED)
    assert [(death.rank, death.signal, death.code) for death in deaths] == [(1, 9, 0), (0, 0, 1)]


def test_ranks_that_srun_ends_as_it_loses_a_node_are_not_the_first_to_die() -> None:
    killed_0 = "srun: error: node1: task 0: Killed\n"
    lost = "srun: error: Node failure on node2\nsrun: Terminating StepId=3.0\n"
    assert deaths_in_srun_log(lost + killed_0) == []
    (first,) = deaths_in_srun_log(killed_0 + lost)
    assert (first.rank, first.signal) == (0, 9)


@pytest.mark.parametrize(
    ("line", "deaths"),
    [
        ("srun: error: n1: task 3: Segmentation fault", [(3, 0, 11)]),
        ("srun: error: n1: task 3: Segmentation fault (core dumped)", [(3, 0, 11)]),
        ("srun: error: n1: task 0: Exited with exit code 1", [(0, 1, 0)]),
        ("srun: error: n1: tasks 0-2: Exit code 12", [(0, 12, 0), (1, 12, 0), (2, 12, 0)]),
        ("srun: error: n1: tasks [4,6-7]: Killed", [(4, 0, 9), (6, 0, 9), (7, 0, 9)]),
        ("srun: error: n1: task 1: something new", [(1, 0, 0)]),
        ("n1: training: srun: is a word in a log", []),
    ],
)
def test_sruns_ways_to_say_how_a_task_ended(line: str, deaths: list[tuple[int, int, int]]) -> None:
    found = deaths_in_srun_log(f"{line}\n")
    assert [(death.rank, death.code, death.signal) for death in found] == deaths


def test_what_srun_says_of_itself_before_any_task_ended_ends_nothing() -> None:
    text = "srun: Terminating StepId=2.0\nsrun: error: n1: task 1: Killed\n"
    assert [death.rank for death in deaths_in_srun_log(text)] == [1]
    forced = "srun: error: n1: task 1: Killed\nsrun: Force Terminated StepId=3.0\n"
    late = "srun: error: n1: task 0: Terminated\n"
    assert [death.rank for death in deaths_in_srun_log(forced + late)] == [1]


STACKS = """Fatal Python error: Segmentation fault

Thread 0x00007f12348246c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait

Current thread 0x00007f126d064b80 (most recent call first):
  File "{stdlib}/ctypes/__init__.py", line 519 in string_at
  File "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 7 in forward
  File "/home/me/my_net.py", line 11 in training_step
  File "/home/me/train.py", line 2 in <module>

Extension modules: numpy.random (total: 1)
"""


def test_a_crash_is_told_with_its_first_frame_the_users_line_and_the_file_of_its_stack() -> None:
    stdlib = sysconfig.get_path("stdlib")
    crash = crash_in_stacks(STACKS.format(stdlib=stdlib), "attempts/0/stacks/rank-1.txt")
    seen = AttemptEvidence(
        world_size=2, launcher_code=139, deaths=[killed(signal=11)], crashes={1: crash}
    )
    ending = classify(seen)
    assert ending.reason == (
        "rank 1 on node1 was killed by SIGSEGV first, in string_at"
        f" ({stdlib}/ctypes/__init__.py:519), called from /home/me/my_net.py:11;"
        " its stack is in attempts/0/stacks/rank-1.txt"
    )
    assert (ending.outcome, ending.where) == (Outcome.USER_ERROR, "/home/me/my_net.py:11")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", None),
        ("Thread 0x1 (most recent call first):\n", None),  # stacks that the watchdog asked for
        ("Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n", ""),
        ("Fatal Python error: Bus error\n\nCurrent thread 0x1 (most recent call first):\n", ""),
    ],
)
def test_a_crash_outside_of_python_has_no_frame_and_stacks_alone_are_no_crash(
    text: str, place: str | None
) -> None:
    crash = crash_in_stacks(text, "f")
    assert (crash.frame if crash else None) == place
    if crash:
        seen = AttemptEvidence(
            world_size=1, launcher_code=1, deaths=[killed(signal=6)], crashes={1: crash}
        )
        assert classify(seen).reason.endswith("first, in no Python code; its stack is in f")


def test_a_rank_that_left_no_record_is_told_with_the_end_of_its_log() -> None:
    words = {1: "ModuleNotFoundError: No module named 'torch'", 0: "of another rank"}
    seen = AttemptEvidence(
        world_size=2, launcher_code=1, deaths=[killed(code=1)], last_words=words, started=True
    )
    assert classify(seen).reason == f"rank 1 on node1 exited 1 first, its log ends with: {words[1]}"
