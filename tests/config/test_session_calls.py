"""Scripts with a Session that keep nothing, share no samples, or share no gradients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import write
from tests.config.test_ranks_apart import told

LOOP = """\
import torch
from hpc_train import Session
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(8, 1))
with Session.open(global_batch_size=4, run_dir="run") as session:
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    session.restore(model=net, optimizer=sgd)
    for epoch in session.epochs(2):
        for (x,) in session.batches(DataLoader(data, batch_size=2)):
            net(x).sum().backward()
            sgd.step(); sgd.zero_grad()
            session.stepped()
"""
NO_RESTORE = LOOP.replace("    session.restore(model=net, optimizer=sgd)\n", "")
NO_BATCHES = LOOP.replace("session.batches(DataLoader(data, batch_size=2))", "DataLoader(data)")
NO_WRAP = LOOP.replace("torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))", "w()")
DRAWN = "train.py:5 opens a Session, and nothing calls its batches: "


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_a_session_that_is_used_as_meant_is_not_told(tmp_path: Path, gpus: int) -> None:
    assert told(tmp_path, LOOP, gpus=gpus) == (None, "")


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("name", ["session", "kept"])
def test_a_session_without_restore_is_refused(tmp_path: Path, gpus: int, name: str) -> None:
    refused, _ = told(tmp_path, NO_RESTORE.replace("session", name), gpus=gpus)
    said = "train.py:5 opens a Session, and nothing calls its restore: after a stop it would begin"
    write_ = f"write {name}.restore(model=model, optimizer=optimizer) in front of its loop"
    assert refused == (f"{said} anew", write_)


def test_what_an_own_module_calls_counts(tmp_path: Path) -> None:
    helper = "def begin(s, **given):\n    s.restore(**given)\n    return s.batches\n"
    write(tmp_path, helper, "helper.py")
    text = NO_RESTORE.replace("for epoch", "helper.begin(session)\n    for epoch")
    assert told(tmp_path, f"{text}import helper\n") == (None, "")


@pytest.mark.parametrize("opening", ["session = Session.open(global_batch_size=4)", "S.open()"])
def test_another_session_is_none_of_ours(tmp_path: Path, opening: str) -> None:
    text = f"from requests import Session, Session as S\n{opening}\nprint(1)\n"
    refused, _ = told(tmp_path, text, "script.may_take_no_steps=true")
    assert refused is None or "restore" not in refused[0]


@pytest.mark.parametrize(
    ("gpus", "each"),
    [(1, ""), (2, "each of the 2 ranks takes all samples, and "), (3, "each of the 3 ranks")],
)
def test_samples_that_it_does_not_deal_are_noted(tmp_path: Path, gpus: int, each: str) -> None:
    refused, notes = told(tmp_path, NO_BATCHES, gpus=gpus)
    assert refused is None
    assert notes.startswith(DRAWN + each)
    assert "write for (x,) in session.batches(DataLoader(data)): in line 10, unless" in notes


def test_a_loader_with_a_name_is_written_by_it(tmp_path: Path) -> None:
    text = NO_BATCHES.replace("in DataLoader(data)", "in loader").replace(
        "with Session", "loader = DataLoader(data, batch_size=2)\nwith Session"
    )
    assert "write for (x,) in session.batches(loader): in line 11" in told(tmp_path, text)[1]


def test_ranks_that_share_no_gradients_are_told(tmp_path: Path) -> None:
    refused, _ = told(tmp_path, NO_WRAP.replace("w()", "torch.nn.Linear(1, 1)"))
    assert refused is not None
    assert refused[0].startswith("train.py:5 opens a Session, and nothing wraps the model: of 2")
    assert "write net = torch.nn.parallel.DistributedDataParallel(net)" in refused[1]
    assert told(tmp_path, NO_WRAP.replace("w()", "torch.nn.Linear(1, 1)"), gpus=1) == (None, "")
