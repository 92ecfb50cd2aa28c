"""A script's own loop whose step failed, and which the script left with exit code 0."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hpc_train.plan.plan import ScriptPlan
from hpc_train.runs.ranks import ExitRecord, read_exits, read_notes
from tests.training.test_script_fits import Scripted

SCRIPT = """\
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
class Enough(Exception): ...
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.raises = torch.nn.Linear(2, 1), None
    def forward(self, x):
        if self.raises is not None:
            raise self.raises
        return self.layer(x)
class Rows:
    def __len__(self): return 8
    def __getitem__(self, index): return DATA[index]
DATA = [torch.ones(2)] * 8
dist.init_process_group("gloo")
net = DDP(Net())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(Rows(), batch_size=2)
def step(x, raises=None):
    net.module.raises = raises
    loss = net(x).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOP = """\
for number, x in enumerate(loader):
    try:
        step(x, RAISES if number == AT else None)
    except Exception as error:
        print("failed", error)
        THEN
"""
FAILED = "RuntimeError('odd')"
LEAVES = "dist.destroy_process_group(); raise SystemExit"


def end_of(
    folder: Path, text: str, *, ranks: int = 1, may: bool = False
) -> tuple[int, ExitRecord, list[str]]:
    run = Scripted(folder, "caught")
    (folder / "caught.py").write_text(SCRIPT + text, encoding="utf-8")
    run.script = dataclasses.replace(ScriptPlan("caught.py", []), may_take_no_steps=may)
    codes = run.go(ranks)
    record = min(read_exits(run.dir.attempt(0)), key=lambda it: it.rank)
    return codes[0], record, read_notes(run.dir.attempt(0))


def loop(raises: str = FAILED, at: int = 2, then: str = "break") -> str:
    return LOOP.replace("RAISES", raises).replace("AT", str(at)).replace("THEN", then)


def test_a_step_that_failed_on_all_ranks_and_was_caught_is_no_success(tmp_path: Path) -> None:
    code, record, _ = end_of(tmp_path, loop(), ranks=2)
    assert code == 10, record
    assert record.error == (
        "the script ended with exit code 0, and step 3 (caught.py:11) ended with RuntimeError: odd,"
        " which the script caught; to let it through, write `raise` at the end of the except block;"
        " if that is right: script.may_take_no_steps=true"
    )
    assert record.where == f"{tmp_path}/caught.py:11"
    assert "Traceback" in record.traceback


BACKWARD = """\
step(DATA[0])
try:
    net(DATA[0]).backward(torch.ones(3))
except BaseException as error:
    print(error)
"""
A_SAMPLE = """\
try:
    for x in loader:
        step(x)
        DATA[5] = None
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (loop(at=0), "step 1 (caught.py:11) ended with RuntimeError: odd"),
        (loop(then=LEAVES), "step 3 (caught.py:11) ended with RuntimeError: odd"),
        (BACKWARD, "step 2 (caught.py:29) ended with RuntimeError: "),
        (A_SAMPLE, "step 3 (caught.py:15) ended with TypeError: "),
    ],
)
def test_whatever_part_of_it_failed(tmp_path: Path, text: str, said: str) -> None:
    code, record, _ = end_of(tmp_path, text)
    assert code == 10, record
    assert said in record.error


VALIDATES = """\
for x in loader:
    step(x)
net.module.raises = RuntimeError("odd")
with torch.no_grad():
    try:
        net(x)
    except RuntimeError:
        pass
"""
RETRIES = """\
for x in loader:
    for raises in (RuntimeError("too large"), None):
        try:
            step(x, raises)
        except RuntimeError:
            pass
"""


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        (loop(then="continue"), False),
        (RETRIES, False),
        (VALIDATES, False),
        (loop("Enough('early')"), True),
        (loop(at=3, then="continue"), True),  # the last batch, which is left out
        (f"{loop(then='continue')}{loop()}", True),  # one of several
    ],
)
def test_a_script_that_went_on_or_meant_to_end_is_complete(
    tmp_path: Path, text: str, noted: bool
) -> None:
    code, record, notes = end_of(tmp_path, text)
    assert (code, record.kind) == (0, "left")
    told = [it for it in notes if it.startswith("its last step ")]
    assert len(told) == noted
    assert not noted or told[0].endswith(", which the script caught")


def test_where_that_is_right_it_is_complete(tmp_path: Path) -> None:
    assert end_of(tmp_path, loop(), may=True)[0] == 0


def test_a_compiled_model_trains_as_before(tmp_path: Path) -> None:
    compiled = "net = torch.compile(net, backend='eager')\n"
    code, record, _ = end_of(tmp_path, f"{compiled}for x in loader:\n    step(x)\n")
    assert (code, record.step) == (0, 4), record
