"""The end of a script that starts its ranks itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hpc_train.errors import RunFailedError
from hpc_train.plan.plan import ScriptPlan
from hpc_train.training import script_node

COUNTED = (
    "import torch, torch.multiprocessing as mp\nmp.spawn(go, nprocs=torch.cuda.device_count())"
)


def check(
    folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, *, gpus: int
) -> RunFailedError | None:
    torch = SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: gpus))
    monkeypatch.setitem(script_node.sys.modules, "torch", torch)
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(f"{text}\n")
    try:
        script_node._check_spawns(ScriptPlan("train.py", [], "none"), 2)
    except RunFailedError as error:
        return error
    return None


def test_that_it_has_started_a_rank_for_each_of_no_gpus_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = check(tmp_path, COUNTED, monkeypatch, gpus=0)
    assert error is not None
    said = "train.py:2 started no process, since torch.cuda.device_count() is 0 here"
    assert error.message.endswith(f"took no optimizer step: {said}")
    assert error.hint == "write nprocs=2 there"


@pytest.mark.parametrize(("text", "gpus"), [(COUNTED, 2), ("mp.spawn(go, nprocs=2)", 0)])
def test_of_any_other_script_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, gpus: int
) -> None:
    assert check(tmp_path, text, monkeypatch, gpus=gpus) is None
