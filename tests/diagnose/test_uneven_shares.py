"""A hang in which some ranks have had their last batch and others have more: whose fault it is."""

from __future__ import annotations

import pytest

from hpc_train.backends.diagnose_run import diagnose_run
from hpc_train.diagnose.stacks import read_stacks
from hpc_train.diagnose.uneven_shares import UNEVEN, uneven_shares
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat
from tests.diagnose.test_read_hangs import STACK
from tests.diagnose.test_read_run import ended, first, made, write

__all__ = ["made"]

ENV = '  File "/env/lib/python3.11/site-packages/{}", line 2 in {}\n'
REDUCE = ENV.format("torch/distributed/distributed_c10d.py", "all_reduce")
FIT = ENV.format("pytorch_lightning/loops/fit_loop.py", "run")
EPOCH = ENV.format("pytorch_lightning/loops/training_epoch_loop.py", "advance") + FIT
BATCH = (
    ENV.format("torch/autograd/graph.py", "_engine_run_backward")
    + ENV.format("pytorch_lightning/loops/optimization/automatic.py", "run")
    + EPOCH
)
HOOK = REDUCE + '  File "/home/u/net.py", line 7 in on_train_epoch_end\n'
EPOCH_END = HOOK + ENV.format("pytorch_lightning/loops/fit_loop.py", "on_advance_end") + FIT
FIT_END = REDUCE + ENV.format("hpc_train/training/private/lightning_loops.py", "on_run_end") + FIT
ASKS = REDUCE + ENV.format("hpc_train/training/resume/step_controller.py", "evaluation_begins")
VALIDATES = (
    ASKS + ENV.format("hpc_train/training/private/lightning_loops.py", "on_advance_end") + EPOCH
)


def beat(rank, step, epoch=1, batch=None, **more):
    batch = step if batch is None else batch
    fields = {"node": f"n{rank}", "pid": 1, "time": 1.0, "moved": 1.0, "phase": "train", **more}
    return Heartbeat(rank=rank, step=step, epoch=epoch, batch=batch, **fields)


def said(folder, frames, beats):
    attempt = RunDir(folder).attempt(0)
    for rank, text in enumerate(frames):
        write(attempt.rank_stacks(rank), STACK.format(text))
    return uneven_shares(read_stacks(attempt), {one.rank: one for one in beats})


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("end", [EPOCH_END, FIT_END, VALIDATES])
def test_ranks_without_a_batch_and_ranks_with_more_are_told(tmp_path, world, is_first, end):
    short = 0 if is_first else world - 1
    validates = {"phase": "validate", "step": 15, "batch": 16} if end == VALIDATES else {}
    beats = [beat(rank, 16) for rank in range(world)]
    beats[short] = beat(short, **{"step": 16, **validates})
    text = said(tmp_path, [end if rank == short else BATCH for rank in range(world)], beats)
    others = [str(rank) for rank in range(world) if rank != short]
    who = f"rank {others[0]} has" if world == 2 else f"ranks {', '.join(others)} have"
    head = f"rank {short} has had its last batch of epoch 1 at step 16, and {who} more: {UNEVEN}: "
    assert text.startswith(f"{head}trainer.limit_train_batches=16, or a data set with a length")


def test_the_shorter_of_two_shares_is_the_limit(tmp_path):
    beats = [beat(0, 36, 2, 18), beat(1, 36, 2, 12), beat(2, 36, 2, 16)]
    text = said(tmp_path, [FIT_END, BATCH, FIT_END], beats)
    assert "ranks 0, 2 have had their last batch of epoch 2 at step 36, and rank 1 has" in text
    assert "limit_train_batches=16," in text


def test_a_number_that_a_validation_may_have_counted_is_no_limit(tmp_path):
    beats = [beat(0, 16, batch=16), beat(1, 16, batch=3, seconds={"validate": 1.0})]
    assert "limit_train_batches, or" in said(tmp_path, [BATCH, FIT_END], beats)


@pytest.mark.parametrize(
    ("frames", "beats"),
    [
        ([EPOCH_END, BATCH], [beat(0, 5), beat(1, 5, epoch=2, batch=5)]),  # an `if` of the user's
        ([BATCH, BATCH], [beat(0, 5), beat(1, 5)]),
        ([EPOCH_END, EPOCH_END], [beat(0, 5), beat(1, 5)]),
        ([BATCH, FIT_END], [beat(0, 4), beat(1, 5)]),  # still in the last step: the network
        ([BATCH, VALIDATES], [beat(0, 15), beat(1, 15, batch=16, phase="validate")]),
        ([BATCH, FIT_END, HOOK], [beat(0, 5), beat(1, 5), beat(2, 5)]),
        ([BATCH, FIT_END], [beat(0, 5, epoch=None), beat(1, 5, epoch=None)]),
        ([BATCH, FIT_END], [beat(0, 5)]),
        ([BATCH], [beat(0, 5)]),
        ([], []),
    ],
)
def test_another_hang_is_not_called_so(tmp_path, frames, beats):
    assert said(tmp_path, frames, beats) == ""


def test_diagnose_names_them_as_the_cause_with_what_to_do(made):
    uneven = said(
        made.run.path, [BATCH, VALIDATES], [beat(0, 16), beat(1, 15, batch=16, phase="validate")]
    )
    ended(made, "hang", f"nothing moved for 60 s (limit 60 s); {uneven}", error=UNEVEN)
    found = first(made)
    assert (found.name, found.rank, found.node) == ("uneven_shares", None, "")
    assert found.cause.startswith("rank 1 has had its last batch of epoch 1 at step 16, and rank 0")
    assert found.fix.startswith("trainer.limit_train_batches=16, or a data set with a length")
    shown = [item.text for item in diagnose_run(made.run).findings[0].evidence]
    assert any(text.startswith("rank 1 was in all_reduce") for text in shown)
