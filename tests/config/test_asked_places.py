"""Devices and nodes that a script's Trainer or Fabric asks for: all of a call told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

BOTH = (
    "submit it with --nodes 2 --gpus 4, or leave both out of the {of}; without GPUs add"
    " script.accelerator=cpu"
)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, "print(1)\n", "train.py")


@pytest.mark.parametrize(
    ("gpus", "nodes", "said", "fix"),
    [
        (2, 1, "(devices=4, num_nodes=2), and this run has 2 devices on 1 node", BOTH),
        (1, 1, "(devices=4, num_nodes=2), and this run has 1 device on 1 node", BOTH),
        (4, 1, "(num_nodes=2), and this run has 1", "submit it with --nodes 2, or leave num_nodes"),
        (2, 2, "(devices=4), and this run has 2", "submit it with --gpus 4, or leave devices out"),
        (4, 2, "", ""),
    ],
)
@pytest.mark.parametrize("of", ["Trainer", "Fabric"])
def test_devices_and_nodes_of_one_call_are_told_at_once(
    script: Path, gpus: int, nodes: int, said: str, fix: str, of: str
) -> None:
    script.write_text(f"import lightning as L\nt = L.{of}(num_nodes=2, devices=4)\nt.fit(n())\n")
    if not said:
        api.load("train.py", nodes=nodes, gpus=gpus)
        return
    with pytest.raises(ConfigError) as caught:
        api.load("train.py", nodes=nodes, gpus=gpus)
    assert caught.value.message.endswith(f"train.py:2 asks for {of}{said}")
    assert caught.value.hint.startswith(fix.format(of=of))
    assert caught.value.others == ()


def test_trainers_of_two_lines_are_told_together(script: Path) -> None:
    text = "L.Trainer(devices=4, num_nodes=3)\nL.Trainer(devices=8, num_nodes=2)\ngo()\n"
    script.write_text(f"import lightning as L\n{text}")
    with pytest.raises(ConfigError) as caught:
        api.load("train.py")
    told = [it.message.rpartition(": ")[2] for it in (caught.value, *caught.value.others)]
    assert told == [
        "train.py:2 asks for Trainer(devices=4), and this run has 1",
        "train.py:3 asks for Trainer(num_nodes=2), and this run has 1",
    ]
