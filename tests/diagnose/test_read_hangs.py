"""What the stacks of a run that hung say: who did not wait, or where each waited."""

from __future__ import annotations

from tests.diagnose.test_read_run import ended, first, made, write

__all__ = ["made"]

STACK = """Current thread 0x01 (most recent call first):
  File "/env/lib/python3.11/site-packages/hpc_train/training/heartbeat.py", line 221 in beat

Thread 0x02 (most recent call first):
{}"""
WAITS = """  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 2 in wait
  File "/home/u/train.py", line 7 in step
"""
SLEEPS = '  File "/home/u/train.py", line 42 in slow\n  File "/home/u/train.py", line 7 in step\n'


def test_of_a_hang_the_stacks_say_who_did_not_wait(made):
    ended(made, "hang", "nothing moved for 300 s (limit 300 s); late: ranks 0, 1, 2 on n1, n2")
    for rank in (0, 1, 2):
        text = STACK.format(SLEEPS if rank == 1 else WAITS)
        write(made.run.attempt(0).rank_stacks(rank), text)
    found = first(made)
    assert (found.name, found.rank) == ("hang", 1)
    said = [item.text for item in found.evidence[1:]]
    assert said[0] == "rank 1 was in slow (/home/u/train.py:42)"
    assert said[1].startswith("rank 0 was in step (/home/u/train.py:7), waiting for the others")
    assert found.evidence[1].line == 5


def test_of_a_hang_in_which_all_wait_each_place_is_told(made):
    ended(made, "hang", "nothing moved for 300 s (limit 300 s); late: ranks 0, 1, 2 on n1, n2")
    for rank in (0, 1, 2):
        text = STACK.format(WAITS.replace("line 7", "line 9") if rank == 1 else WAITS)
        write(made.run.attempt(0).rank_stacks(rank), text)
    found = first(made)
    assert found.cause.endswith("; the ranks wait for each other at different lines")
    assert found.fix.startswith("what all ranks have to call together (self.log with sync_dist")
    said = [item.text for item in found.evidence[1:]]
    assert said[0].startswith("rank 1 was in step (/home/u/train.py:9), waiting for the others")
    assert said[1].startswith("rank 0 was in step (/home/u/train.py:7), waiting for the others")
