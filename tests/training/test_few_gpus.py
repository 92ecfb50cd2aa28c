"""A GPU that is not there. torch's count of GPUs, and what it raises, are stand-ins here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.failures.few_gpus import few_gpus

FILE = str(Path(__file__).relative_to(Path.cwd()))
# As torch's own code stands in a traceback: its frames are not the user's.
_TORCHS = """
def move(*given):
    raise RuntimeError("CUDA error: invalid device ordinal")
def start(*given):
    raise RuntimeError("No CUDA GPUs are available")
"""
torchs: dict[str, Any] = {}
exec(compile(_TORCHS, "/usr/lib/python3/site-packages/torch/cuda/__init__.py", "exec"), torchs)
move, start = torchs["move"], torchs["start"]


class Model(pl.LightningModule):
    def training_step(self, batch: Any, index: int) -> Any:
        return move(batch, "cuda:1")


def numbered() -> None:
    move("cuda:3")


def named() -> None:
    device, other = torch.device("cuda:2"), "cuda:0"
    move(other, device)


def of_rank() -> None:
    move(int(os.environ["RANK"]))


def of_local_rank() -> None:
    move(int(os.environ["LOCAL_RANK"]))


def counted() -> None:
    move(1)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda count: monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


@pytest.fixture(autouse=True)
def _places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")


def told(call: Any, *given: Any, own: Path = Path("/nowhere"), **environ: str) -> str:
    with pytest.raises(RuntimeError) as caught:
        call(*given)
    return few_gpus(caught.value, environ, own)


def test_a_number_in_the_code(gpus) -> None:
    gpus(1)
    one = "this process sees 1 GPU (cuda:0): write"
    assert told(Model().training_step, 0, 0) == f'{one} self.device for "cuda:1"'
    assert told(numbered) == f'{one} "cuda" for "cuda:3"'
    assert told(named) == f'{one} "cuda" for "cuda:2"'
    gpus(3)
    assert told(named) == "this process sees 3 GPUs (cuda:0 to cuda:2)"
    three = "this process sees 3 GPUs (cuda:0 to cuda:2): write"
    assert told(numbered) == f'{three} "cuda" for "cuda:3"'
    assert told(counted) == "this process sees 3 GPUs (cuda:0 to cuda:2)"


def test_a_rank_that_has_no_gpu_of_its_own(gpus) -> None:
    gpus(1)
    sees = "this process sees 1 GPU (cuda:0), and"
    of = told(of_local_rank, RANK="1", LOCAL_RANK="1")
    assert of == f"{sees} LOCAL_RANK is 1: start it with --gpus 1"
    of = told(of_rank, RANK="1", LOCAL_RANK="1")
    assert of == f"{sees} RANK is 1: start it with --gpus 1"
    of = told(of_rank, RANK="1", LOCAL_RANK="0")
    assert of == f"{sees} RANK is 1: write LOCAL_RANK for it, which is 0"


def test_without_any_gpu_nothing_is_said_of_numbers(gpus) -> None:
    gpus(0)
    assert not told(numbered)


def sets() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = "5"
    start()


def test_a_script_that_hides_the_gpus_from_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # so that what `sets` leaves is taken back
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    own = tmp_path / "environ"
    line = next(
        number
        for number, it in enumerate(Path(__file__).read_text().splitlines(), 1)
        if it.strip().startswith('os.environ["CUDA_VISIBLE')
    )
    own.write_bytes(b"HOME=/root\0CUDA_VISIBLE_DEVICES=0,1\0A=b\0")
    said = f"the script sets CUDA_VISIBLE_DEVICES to '5' ({FILE}:{line})"
    of = told(sets, own=own, CUDA_VISIBLE_DEVICES="5")
    assert of == f"{said}, and it was started with 0,1: leave that out"
    own.write_bytes(b"HOME=/root\0")
    of = told(sets, own=own, CUDA_VISIBLE_DEVICES="5")
    assert of == f"{said}, and it was started without it: leave that out"
    own.write_bytes(b"CUDA_VISIBLE_DEVICES=5\0")
    assert not told(sets, own=own, CUDA_VISIBLE_DEVICES="5")  # it was so from the start
    assert not told(sets, own=own)
