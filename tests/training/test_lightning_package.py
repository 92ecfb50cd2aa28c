"""Classes of the package `lightning` (lightning.pytorch) train as those of pytorch_lightning do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plan.plan import ObjectSpec
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_exits
from tests.training.launched import Ended, make_plan, run_ranks

DIGITS = Path(__file__).parents[2] / "hpc_train" / "examples" / "digits.py"
STOP_ONCE = """

import os
import signal


class StopsOnce(DigitsClassifier):
    def on_train_batch_start(self, batch, batch_idx):
        if self.global_rank == 1 and self.global_step == 9 and "GO_ON" not in os.environ:
            os.kill(os.getpid(), signal.SIGUSR2)
"""
# Named as most people's configs name it, whatever package the model is of.
TRAINER = {
    "max_epochs": 2,
    "callbacks": [{"class_path": "pytorch_lightning.callbacks.LearningRateMonitor"}],
}


def write_module(folder: Path, imports: str) -> None:
    text = DIGITS.read_text(encoding="utf-8").replace("pytorch_lightning", imports)
    (folder / "mine.py").write_text(text + STOP_ONCE, encoding="utf-8")
    shutil.copy(DIGITS.with_suffix(".csv.gz"), folder)


def train(folder: Path, imports: str, model: str = "mine.StopsOnce", **environ: str) -> Ended:
    plan = make_plan(
        folder,
        model=ObjectSpec(model, {}),
        data=ObjectSpec("mine.DigitsData", {}),
        trainer=TRAINER,
        loggers=["csv"],
    )
    attempt, forked = int(bool(environ)), imports == "pytorch_lightning"  # which is there already
    return run_ranks(plan, folder / "run", environ=environ, attempt=attempt, forked=forked)


def final_metrics(folder: Path) -> dict[str, Any]:
    metrics = json.loads((RunDir(folder / "run").metrics / "final.json").read_text())
    return dict(metrics)


def test_it_is_stopped_and_goes_on_to_the_same_result_as_the_other_package(tmp_path: Path) -> None:
    results = []
    for imports in ("lightning.pytorch", "pytorch_lightning"):
        folder = tmp_path / imports
        folder.mkdir()
        write_module(folder, imports)
        if imports == "lightning.pytorch":
            stopped = train(folder, imports)
            assert stopped.codes == [75, 75], stopped.log(0)
        ended = train(folder, imports, GO_ON="1")
        assert ended.codes == [0, 0], ended.log(0)
        results.append(final_metrics(folder))
    assert results[0] == results[1], "stopped and resumed, and undisturbed"


def test_a_model_of_one_and_data_of_the_other_are_told_in_a_line(tmp_path: Path) -> None:
    write_module(tmp_path, "lightning.pytorch")
    plan = make_plan(tmp_path, ranks_per_node=1, model=ObjectSpec("mine.DigitsClassifier", {}))
    ended = run_ranks(plan, tmp_path / "run", forked=False)
    assert ended.codes == [3]
    (record,) = read_exits(ended.attempt)
    assert record.kind == "check"
    assert record.error.startswith("data.class_path: hpc_train.examples.digits.DigitsData is no ")
    assert "import the same of the two" in ended.log(0)


@pytest.mark.parametrize("imports", ["lightning.pytorch", "pytorch_lightning"])
def test_one_rank_of_each_package(tmp_path: Path, imports: str) -> None:
    write_module(tmp_path, imports)
    plan = make_plan(
        tmp_path,
        ranks_per_node=1,
        model=ObjectSpec("mine.DigitsClassifier", {}),
        data=ObjectSpec("mine.DigitsData", {}),
        trainer={"max_steps": 2},
    )
    ended = run_ranks(plan, tmp_path / "run", forked=imports == "pytorch_lightning")
    assert ended.codes == [0], ended.log(0)
