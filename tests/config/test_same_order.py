"""A DistributedSampler without set_epoch, and a DistributedDataParallel without a group: notes."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.scripts.same_order import notes_on_groups

SCRIPT = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group()
sampler = DistributedSampler(data)
loader = DataLoader(data, sampler=sampler)
model = DDP(torch.nn.Linear(1, 1))
for epoch in range(3):
    for x in loader:
        model(x).backward()
"""
SAID = "makes a DistributedSampler, and nothing calls its set_epoch: each epoch has the same order"


def told(folder: Path, text: str, said: str = SAID, **own: str) -> list[object]:
    """The note that says it."""
    file = folder / "train.py"
    file.write_text(text)
    for name, its in own.items():
        (folder / f"{name}.py").write_text(its)
    found = notes_on_groups(ast.parse(text), file, [str(folder), *sys.path])
    return [part for it in found if it[1] == said for part in it]


@pytest.mark.parametrize(
    ("old", "new", "line", "write"),
    [
        ("", "", 7, "sampler.set_epoch(epoch) at the head of the loop in line 10"),
        ("(data)\n", "(data, shuffle=True)\n", 7, "sampler.set_epoch(epoch) at"),
        ("for epoch in", "for an_epoch in", 7, "sampler.set_epoch(an_epoch) at"),
        (
            "sampler = DistributedSampler(data)\nloader = DataLoader(data, sampler=sampler)",
            "loader = DataLoader(data, sampler=DistributedSampler(data))",
            7,
            "loader.sampler.set_epoch(epoch) at the head of the loop in line 9",
        ),
    ],
)
def test_a_sampler_that_is_told_no_epoch(
    tmp_path: Path, old: str, new: str, line: int, write: str
) -> None:
    found = told(tmp_path, SCRIPT.replace(old, new) if old else SCRIPT)
    assert found[:2] == [line, SAID]
    assert str(found[2]).startswith(f"write {write}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    for x", "    sampler.set_epoch(epoch)\n    for x"),
        ("(data)\n", "(data, shuffle=False)\n"),
        ("(data)\n", "(data, shuffle=is_train)\n"),
        ("(data)\n", "(data, 2, 0, False)\n"),
        ("for epoch in range(3)", "for epoch in range(1)"),
        ("for epoch in range(3)", "for part in range(3)"),
        ("import torch\n", "import torch\nimport unheard_of\n"),
        ("import torch\n", "import torch\nfrom accelerate import Accelerator\n"),
    ],
)
def test_one_that_may_be_told_or_does_not_shuffle(tmp_path: Path, old: str, new: str) -> None:
    assert old in SCRIPT
    assert told(tmp_path, SCRIPT.replace(old, new, 1)) == []


def test_what_an_own_module_does_counts(tmp_path: Path) -> None:
    text = SCRIPT.replace("import torch\n", "import torch\nimport loops\n", 1)
    assert told(tmp_path, text, loops="def f(s, e): s.set_epoch(e)\n") == []
    assert told(tmp_path, text, loops="def f(s, e): return s\n")


NO_GROUP = "wraps a model in DistributedDataParallel, and nothing makes a process group"
WITHOUT = SCRIPT.replace("dist.init_process_group()\n", "")


def test_a_wrap_that_no_process_group_is_made_for(tmp_path: Path) -> None:
    assert told(tmp_path, WITHOUT, NO_GROUP) == [
        8,
        NO_GROUP,
        "write torch.distributed.init_process_group() in front of it",
    ]


@pytest.mark.parametrize(
    "more",
    [
        "dist.init_process_group()",
        "init_distributed_mode(args)",
        "setup(rank, 2)",
        "deepspeed.init_distributed()",
        "import unheard_of",
        "Fabric().launch()",
        "from hpc_train import Session",  # which makes it
    ],
)
def test_where_somebody_may_make_one_nothing_is_said(tmp_path: Path, more: str) -> None:
    assert told(tmp_path, f"{more}\n{WITHOUT}", NO_GROUP) == []


def test_both_are_told_at_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("data = [1]\n" + SCRIPT)
    notes = api.load("train.py", nodes=1, gpus=2).notes
    assert [it for it in notes if SAID in it]
    Path("train.py").write_text(
        "data = [1]\n" + WITHOUT.replace("    for x", "    sampler.set_epoch(epoch)\n    for x")
    )
    notes = api.load("train.py", nodes=1, gpus=2).notes
    assert [it for it in notes if "nothing makes a process group; write torch.distr" in it]
