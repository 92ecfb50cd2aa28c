"""Scripts that start as many ranks as they see GPUs, where there is none."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.config.files import told_of_script

HEAD = "import torch\nimport torch.multiprocessing as mp\ndef work(rank, n): train(rank)\n"
COUNT = "torch.cuda.device_count()"
NAMED = f"{HEAD}world = {COUNT}\nmp.spawn(work, args=(world,), nprocs=world)\n"
CPU, NONE = "script.accelerator=cpu", "script.launcher=none"
IS_0 = f"starts no process: {COUNT} is 0 (script.accelerator=cpu)"

told = partial(told_of_script, about=COUNT)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "line", "write"),
    [
        (NAMED, 5, "write world = 3 in line 4"),
        (f"{HEAD}mp.spawn(work, nprocs={COUNT})\n", 4, "write nprocs=3 there"),
        (f"{HEAD}mp.spawn(work, (), {COUNT})\n", 4, "write nprocs=3 there"),
        (
            NAMED.replace("=world", "=n").replace("mp.s", "n = world\nmp.s"),
            6,
            "write world = 3 in line 4",
        ),
        (
            f"{HEAD}def main():\n    n = {COUNT} * 1\n    mp.spawn(work, nprocs=n)\nmain()\n",
            6,
            "write n = 3 in line 5",
        ),
        (
            NAMED.replace("import torch\n", "from torch import cuda\n").replace(
                "torch.cuda", "cuda"
            ),
            5,
            "write world = 3 in line 4",
        ),
    ],
)
def test_on_cpus_it_starts_none_which_is_noted_with_what_to_write(
    tmp_path: Path, text: str, line: int, write: str
) -> None:
    assert told(tmp_path, text, CPU, NONE, gpus=3) == (None, [f"train.py:{line} {IS_0}: {write}"])
    refused, (note,) = told(tmp_path, text, CPU, gpus=3)
    assert refused is None
    assert f"{write} ({COUNT} is 0 on CPUs), add script.launcher=none, and it starts all" in note


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}mp.spawn(work, nprocs={COUNT} or 2)\n",
        f"{HEAD}mp.spawn(work, nprocs=max(2, {COUNT}))\n",
        NAMED.replace("\nmp", "\nif not world: world = 2\nmp"),
        f"{HEAD}print({COUNT})\nmp.spawn(work, nprocs=2)\n",
        f"{HEAD}def go(world): mp.spawn(work, nprocs=world)\ngo({COUNT})\n",
    ],
)
def test_another_number_is_the_scripts_business(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text, CPU, NONE) == (None, [])


def test_where_there_may_be_gpus_nothing_is_said(tmp_path: Path) -> None:
    assert told(tmp_path, NAMED, NONE) == (None, [])
