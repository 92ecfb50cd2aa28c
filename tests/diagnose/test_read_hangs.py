"""Which rank was the first: of a hang by the stacks, where each waited; of a kill by its signal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpc_train.backends.diagnose_run import diagnose_run
from hpc_train.diagnose.stacks import APART, TOGETHER, line_of_place, places_apart, read_stacks
from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from tests.diagnose.test_read_run import ended, first, left, made, write

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


@pytest.mark.parametrize("stack", [WAITS, SLEEPS])
def test_of_a_hang_of_one_rank_its_place_is_told_and_it_waits_for_nobody(made, stack):
    ended(made, "hang", "nothing moved for 300 s (limit 300 s); late: rank 0 on n1")
    write(made.run.attempt(0).rank_stacks(0), STACK.format(stack))
    place = "slow (/home/u/train.py:42)" if stack == SLEEPS else "step (/home/u/train.py:7)"
    assert first(made).cause.endswith(f"; late: rank 0 on n1; rank 0 was in {place}")


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


def test_what_the_history_tells_of_the_places_is_not_told_twice(made):
    apart = f"{APART}: rank 1 was in step (/home/u/train.py:9)"
    ended(made, "hang", f"nothing moved for 20 s; {apart}; {TOGETHER}", error=apart)
    for rank in (0, 1):
        text = STACK.format(WAITS.replace("line 7", "line 9") if rank == 1 else WAITS)
        write(made.run.attempt(0).rank_stacks(rank), text)
    found = first(made)
    assert found.cause == f"it hung: nothing moved for 20 s; {apart}"
    assert found.fix.count(TOGETHER) == 1


def test_the_places_of_an_attempt_before_are_told_whole_while_the_run_goes_on(made):
    apart = f"{APART}: rank 1 was in step (/home/u/train.py:9); rank 0 was in step (/home/u/a.py:7)"
    ended(
        made, "hang", f"nothing moved for 20 s; no rank is behind the others; {apart}; {TOGETHER}"
    )
    at = {"attempt": 1, "job_id": "7", "nodes": list(made.nodes)}
    made.tell(120, EventKind.ATTEMPT_STARTED, **at)
    diagnosis = diagnose_run(made.run)
    assert any(TOGETHER in note and apart in note for note in diagnosis.notes)


@pytest.mark.parametrize(("ranks", "told"), [(2, True), (3, True), (1, False)])
def test_places_are_the_same_in_the_next_attempt(tmp_path, ranks, told):
    attempt = RunDir(tmp_path).attempt(0)
    for rank in range(ranks):
        text = STACK.format(WAITS.replace("line 7", "line 9") if rank == 0 else WAITS)
        write(attempt.rank_stacks(rank), text)
    places = [f"rank {k} was in step (/home/u/train.py:{line})" for k, line in ((0, 9), (1, 7))]
    assert list(places_apart(read_stacks(attempt))) == (places if told else [])
    assert [line_of_place(place) for place in places] == ["train.py:9", "train.py:7"]
    for rank in range(ranks):
        write(attempt.rank_stacks(rank), STACK.format(WAITS))
    assert places_apart(read_stacks(attempt)) == (), "all at one place: that may be the network"


@pytest.mark.parametrize("killed", [True, False])
def test_what_followed_on_another_rank_is_not_shown_as_the_cause_of_a_kill(made, killed):
    error = {"error": "was killed by SIGKILL"} if killed else {}
    reason = "rank 5 on n2 was killed by SIGKILL first, by x"
    ended(made, "node_failure", reason, rank=5, node="n2", **error)
    left(made, 0, "RuntimeError: Read error: Connection reset", kind="network")
    found = first(made)
    for key in ("slurm.mem", "num_workers", "dmesg"):
        assert key in found.fix
    assert found.fix.index("slurm.mem") < found.fix.index("dmesg")
    assert bool(diagnose_run(made.run).traceback) is not killed


def test_a_fix_names_the_run(made):
    """It said `hpc-train resume RUN`, though the run is known."""
    ended(made, "cancelled", "scancel ended it")
    found = first(made)
    assert f"hpc-train resume {made.run.run_id}" in found.fix
    assert "RUN" not in found.fix


NET = """
import lightning.pytorch as pl

class Net(pl.LightningModule):
    def on_train_epoch_end(self):
        TEST
            self.trainer.save_checkpoint("a.ckpt")
"""


@pytest.mark.parametrize("alone", [True, False])
def test_a_call_that_the_text_has_rank_0_alone_make_is_the_fix(made, tmp_path, alone):
    """The ranks wait in Lightning then, and no stack has the line of the call."""
    write(
        tmp_path / "nets.py", NET.replace("TEST", "if self.global_rank == 0:" if alone else "if 1:")
    )
    plan = read_plan(made.run)
    model = replace(plan.training.model, class_path="nets.Net")
    training = replace(plan.training, model=model)
    made.run.plan.write_text(replace(plan, workdir=str(tmp_path), training=training).to_json())
    ended(made, "hang", f"nothing moved for 20 s; {APART}: rank 0 was in barrier (a.py:1)")
    for rank in (0, 1):
        text = STACK.format(WAITS.replace("line 7", "line 9") if rank == 1 else WAITS)
        write(made.run.attempt(0).rank_stacks(rank), text)
    fix = first(made).fix
    assert fix.startswith("nets.py:7: self.trainer.save_checkpoint(...) stands under `if") == alone
    assert fix.startswith(TOGETHER) != alone
