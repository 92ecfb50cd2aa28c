"""`os._exit` in a training: told with its line, and no other process's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.plan.plan import ObjectSpec
from hpc_train.runs.ranks import ENDED_ITSELF, read_exits
from tests.training.launched import make_plan, run_ranks

ENDING = """
import atexit
import os
import threading
from hpc_train.examples.digits import DigitsClassifier

class AtStep(DigitsClassifier):
    def __init__(self, status=0, rank=0):
        super().__init__()
        self.status, self.rank = status, rank

    def on_train_batch_start(self, batch, batch_idx):
        if self.global_rank == self.rank and self.global_step == 3:
            os._exit(self.status)

class InAThread(DigitsClassifier):
    def on_train_batch_start(self, batch, batch_idx):
        if self.global_step == 3:
            thread = threading.Thread(target=lambda: os._exit(0))
            thread.start()
            thread.join()

class InAChild(DigitsClassifier):
    def on_train_start(self):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

class AtTheEnd(DigitsClassifier):
    def on_train_start(self):
        atexit.register(os._exit, 0)
"""


def end(tmp_path: Path, name: str, ranks: int = 1, **arguments: object):
    (tmp_path / "ending.py").write_text(ENDING)
    plan = make_plan(
        tmp_path, ranks_per_node=ranks, model=ObjectSpec(f"ending.{name}", dict(arguments))
    )
    return run_ranks(plan, tmp_path / "run")


@pytest.mark.parametrize(("status", "code"), [(0, 1), (75, 1), (7, 7), (256, 1)])
def test_it_is_told_with_its_line_and_is_no_success(tmp_path: Path, status: int, code: int) -> None:
    ended = end(tmp_path, "AtStep", status=status)
    assert ended.codes == [code], ended.log(0)
    (record,) = read_exits(ended.attempt)
    assert (record.kind, record.code, record.step) == (ENDED_ITSELF, code, 3)
    assert record.error == f"os._exit({status}) before the run was complete"
    line = 1 + ENDING.splitlines().index("            os._exit(self.status)")
    assert record.where == f"{tmp_path / 'ending.py'}:{line}"
    assert f"error: {record.error} ({record.where})" in ended.log(0)
    assert "on_train_batch_start" in ended.log(0)


def test_the_rank_that_ended_itself_says_so_before_the_others_lose_it(tmp_path: Path) -> None:
    ended = end(tmp_path, "AtStep", ranks=2, rank=1)
    kinds = {record.rank: record.kind for record in read_exits(ended.attempt)}
    assert kinds[1] == ENDED_ITSELF, ended.log(1)
    assert ended.codes[1] == 1


def test_a_thread_ends_the_process_as_well(tmp_path: Path) -> None:
    (record,) = read_exits(end(tmp_path, "InAThread").attempt)
    assert record.kind == ENDED_ITSELF


@pytest.mark.parametrize("name", ["InAChild", "AtTheEnd"])
def test_what_ends_no_training_is_left_alone(tmp_path: Path, name: str) -> None:
    ended = end(tmp_path, name)
    assert ended.codes == [0], ended.log(0)
    (record,) = read_exits(ended.attempt)
    assert record.kind == "finished"


def test_this_process_ends_as_it_always_did() -> None:
    assert os._exit.__module__ == "posix"
