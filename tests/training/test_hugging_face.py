"""Hugging Face's Trainer itself, on two ranks: stopped, resumed, held against a quiet run.

transformers lies in a folder of its own, see tests/hugging_face.txt.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.ranks import read_beginning, read_notes
from tests.training.test_plain_script import records
from tests.training.test_script_fits import Scripted, same

FOLDER = Path(sys.prefix, "hugging-face")

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"make test installs transformers into {FOLDER}"
)


def script(path: Path, *args: str) -> Scripted:
    run = Scripted(path, "hugging_face", "--out", str(path / "out"), *args)
    run.folders = [str(FOLDER)]
    return run


def test_a_trainer_that_is_stopped_on_one_rank_ends_with_the_weights_of_a_quiet_run(
    tmp_path: Path,
) -> None:
    quiet, run = script(tmp_path / "quiet"), script(tmp_path / "run", "--slow", "0.1")
    assert quiet.go(2) == [0, 0], quiet.said()
    assert run.go(2, "stop@step=7:rank=1") == [75, 75], run.said()
    first, second = records(run)
    assert (first.kind, first.step) == (second.kind, second.step)
    assert first.kind == "saved"
    assert 7 <= first.step < 36
    assert first.step == newest_step(run.dir), "by its own callback, behind the agreed step"
    assert run.go(2) == [0, 0], run.said(1)
    assert f"goes on from {run.path}/out/checkpoint-{first.step}" in run.said(1)
    began = read_beginning(run.dir.attempt(1))
    assert began is not None
    assert began.step == first.step
    assert {record.step for record in records(run, 1)} == {36}
    often, undisturbed = (torch.load(it.path / "out/final.pt") for it in (run, quiet))
    assert often["step"] == undisturbed["step"] == 36
    assert same(often["model"], undisturbed["model"])
    of_the_stop = first.step // 5  # transformers does not save the sum of losses since its last log
    for losses in (often["losses"], undisturbed["losses"]):
        losses[of_the_stop] = None
    assert often["losses"] == undisturbed["losses"]
    assert len(often["losses"]) >= 7


def test_an_accelerator_knows_the_other_ranks_without_gpus(tmp_path: Path) -> None:
    run = Scripted(tmp_path, "accelerated", str(tmp_path / "saved"))
    run.folders = [str(FOLDER)]
    assert run.go(2) == [0, 0], run.said()
    for rank in (0, 1):
        assert "ranks 2 DistributedType.MULTI_CPU" in run.log(0, rank)
        assert "steps 8\n" in run.log(0, rank), "each takes its half of the batches"
    assert not [it for it in read_notes(run.dir.attempt(0)) if "exchanged nothing" in it]
    assert "both write" not in run.said()
    assert (tmp_path / "saved/optimizer.bin").is_file()
