"""Ranks that wait for each other: only where a log ends so, and only who is certain."""

from __future__ import annotations

import re

import pytest

from hpc_train.diagnose.read_logs import ReadLogs

BARRIER = (
    "INFO:root:Waiting in store based barrier to initialize process group for rank: {0}, key:"
    " store_based_barrier_key:1 (world_size=4, worker_count={1}, timeout=0:30:00)"
)
MEMBER = "Initializing distributed: GLOBAL_RANK: {0}, MEMBER: {1}/4"


def waits(*said: tuple[int, int]) -> list[str]:
    return [BARRIER.format(rank, count) for rank, count in said]


def members(*ranks: int) -> list[str]:
    return [MEMBER.format(rank, rank + 1) for rank in ranks]


def findings(*lines: str):
    logs = ReadLogs()
    for number, line in enumerate(lines, 1):
        logs.feed(line, "", number)
    return logs.findings()


HEALTHY = {
    "a wait that ended": [*waits((0, 3), (1, 3), (0, 3)), "step 1"],
    "a wait of ten seconds": waits((0, 3), (1, 3)),
    "all have come": waits((0, 3), (0, 4)),
    "one start": members(0, 1, 2, 3),
    "some came, and the log is cut there": members(0, 1, 3),
    "two Trainers, one after the other": members(0, 1, 2, 3, 0, 1, 2, 3),
    "one node's log of two starts": members(0, 1, 0, 1),
    "one start, all registered": [*members(0), "All distributed processes registered. Starting"],
    "a part of a start that goes on": [*members(0, 1), "Missing logger folder: /w"],
    "a start of which a step follows": [*members(0, 1), "step 1"],
    "it goes on": [*members(0, 0, 1, 1), *["step 1"] * 9],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_start_that_goes_on_is_no_failure(name):
    assert findings(*HEALTHY[name]) == ()


def test_of_ranks_that_wait_the_absent_are_named_only_where_the_count_agrees():
    (sure,) = findings(*waits((0, 3), (1, 3), (3, 3), (0, 3)))
    (unsure,) = findings(*waits((0, 3), (1, 3), (0, 3)))
    assert (sure.rank, sure.cause.endswith("barrier: rank 2")) == (2, True)
    assert (unsure.rank, unsure.cause.endswith("3 of 4 came")) == (None, True)


STOPPED_BY = (
    "slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-11-21T08:04:51 ***",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
)


def test_ranks_that_came_to_a_start_are_a_note_where_a_log_ends_with_them():
    logs = ReadLogs()
    for number, line in enumerate(members(0, 1, 3), 1):
        logs.feed(line, "", number)
    found = logs.diagnosis("a.log")
    assert found.findings == ()
    (note,) = found.notes
    assert "3 of 4 came, by what this log has; not in it: rank 2; a log that was cut" in note


@pytest.mark.parametrize("stopped", [STOPPED_BY[:1], STOPPED_BY])
def test_how_many_ranks_came_is_told_where_a_log_ends_while_they_wait(stopped):
    (of_members,) = findings(*members(0, 1, 3), *stopped)
    (of_barrier,) = findings(*waits((0, 3), (1, 3), (3, 3), (0, 3)), *stopped)
    assert {of_members.name, of_barrier.name} == {"cancelled_at_start"}
    assert "3 of 4 came, by what this log has; not in it: rank 2" in of_members.cause
    assert "3 of 4 came; did not come to the barrier: rank 2" in of_barrier.cause
    assert not of_members.is_known


@pytest.mark.parametrize("stopped", [STOPPED_BY[:1], STOPPED_BY])
def test_a_time_limit_while_ranks_wait_for_each_other_is_told_as_a_start(stopped):
    stopped = [re.sub(r" \*\*\*$", " DUE TO TIME LIMIT ***", line) for line in stopped]
    (of_members,) = findings(*members(0, 1, 3), *stopped)
    (of_barrier,) = findings(*waits((0, 3), (1, 3), (3, 3), (0, 3)), *stopped)
    assert {of_members.name, of_barrier.name} == {"limit_at_start"}
    assert "until the job's time limit: 3 of 4 came, by what this" in of_members.cause
    assert "srun has to stand in front of python" in of_members.fix
    assert "srun" not in of_barrier.fix
    (all_came,) = findings(*members(0, 1, 2, 3), *stopped)
    (stepped,) = findings(*members(0, 1, 3), "step 1", *stopped)
    assert {all_came.name, stepped.name} == {"time_limit"}


def test_a_step_between_a_wait_and_its_end_is_a_wait_that_was_over():
    assert findings(*members(0, 1), "step 1", STOPPED_BY[1]) == ()


def test_ranks_of_two_nodes_that_do_not_know_of_each_other_are_told():
    (found,) = findings(*members(1, 1, 0, 0))
    assert found.name == "begins_twice"
    assert "ranks 0-1 began more than once, and ranks 2-3 not at all" in found.cause
    assert found.rank is None


def test_to_ask_twice_counts_a_line_once():
    logs = ReadLogs()
    for number, line in enumerate(waits((0, 3), (0, 3)), 1):
        logs.feed(line, "", number)
    assert [logs.findings()[0].times, logs.findings()[0].times] == [1, 1]


SHELLS = {
    "Aborted (core dumped)": "a process ended with SIGABRT",
    "zsh: abort (core dumped)  python a.py": "a process ended with SIGABRT",
    "[2]    710 segmentation fault (core dumped)  python a.py": "a process crashed in native code",
    "[2]  + 71034 abort (core dumped)  python a.py": "a process ended with SIGABRT",
    "['python', '--local_rank=5', '--n', '1'] exits with return code = -6": "a process ended with",
    "['python', '--local_rank=5', 'a.py'] exits with return code = -9": "a process was killed",
    "subprocess.CalledProcessError: Command '['python', '-u', 'a.py', '--local_rank=1']' returned"
    " non-zero exit status 1.": "a process ended with exit code 1",
}


@pytest.mark.parametrize("line", SHELLS)
def test_how_a_process_ended_is_read_in_a_shells_words(line):
    (found,) = findings(line)
    assert found.cause.startswith(SHELLS[line])


@pytest.mark.parametrize("line", ["to abort (core dumped) press q", "the killed  python was old"])
def test_words_of_a_shell_within_a_sentence_are_none(line):
    assert findings(line) == ()


STOPPED = """Traceback (most recent call last):
  File "/env/bin/deepspeed", line 6, in <module>
    main()
  File "/env/deepspeed/launcher/runner.py", line 548, in sigkill_handler
    result_kill = subprocess.Popen(kill_cmd, env=env)
NameError: {}"""
NAME_ERRORS = (
    "free variable 'kill_cmd' referenced before assignment in enclosing scope",
    "cannot access free variable 'kill_cmd' where it is not associated with a value",
)


@pytest.mark.parametrize("error", NAME_ERRORS)
def test_a_launcher_of_deepspeeds_that_was_told_to_stop_has_no_cause_of_its_own(error):
    (found,) = findings(*STOPPED.format(error).splitlines())
    assert found.name == "deepspeed_stopped"
    assert not found.is_known
    oom = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    (found,) = findings(*STOPPED.format(error).splitlines(), oom)
    assert found.name == "torch_oom"
    raised = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "KeyError: 'x'"]
    (found,) = findings(*raised, *STOPPED.format(error).splitlines())
    assert found.cause == "a process raised KeyError: 'x'"


def test_a_launcher_of_deepspeeds_that_says_its_signal_was_told_to_stop():
    said = "[2026-11-21 08:04:51,885] [INFO] [launch.py:434:sigkill_handler] Main process received"
    (found,) = findings(f"{said} SIGTERM, exiting")
    assert found.name == "deepspeed_stopped"
    assert findings(f"{said} 3 messages") == ()


def test_an_exception_before_a_traceback_without_its_end_is_told():
    begun = ["Traceback (most recent call last):", *['  File "a.py", line 1, in f'] * 9]
    (found,) = findings("ValueError: no such axis", *begun)
    assert found.cause == "the last exception that a log tells is ValueError: no such axis"
    assert [it.cause for it in findings("ValueError: no such axis", *begun, "KeyError: 3")] == [
        "a process raised KeyError: 3"
    ]
