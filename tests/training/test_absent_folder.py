"""What is written into a folder that is not there: the line that makes it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.demos.boring_classes import BoringModel

from hpc_train.config.scripts.absent_checkpoints import INSTEAD
from hpc_train.training.failures.failure_words import fix_of

SAMPLE = torch.zeros(1)


def fix(make: Callable[[], object]) -> str:
    with pytest.raises((RuntimeError, OSError)) as caught:
        make()
    return fix_of(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.save(SAMPLE, "out/net.pt"),
        lambda: np.save("out/net.npy", [1]),
        lambda: Path("out/a.txt").write_text("x"),
        lambda: json.dump([], open("out/a.json", "w")),  # noqa: PTH123, SIM115
        lambda: open("out/a.json", mode="ab"),  # noqa: PTH123, SIM115
    ],
)
def test_the_folder_is_named_with_the_line_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], object]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(globals(), "os", os)
    made = 'write os.makedirs("out", exist_ok=True) in front of that line'
    assert fix(make) == f"there is no folder {tmp_path / 'out'}: {made}"


PLOTS = "out/a.txt"


@pytest.mark.parametrize(
    ("make", "has_path", "made"),
    [
        (lambda: Path(PLOTS).write_text("x"), True, "Path(PLOTS).parent.mkdir(parents=True, "),
        (lambda: torch.save(SAMPLE, PLOTS), True, 'Path("out").mkdir(parents=True, '),
        (lambda: torch.save(SAMPLE, PLOTS), False, 'import os, and os.makedirs("out", '),
    ],
)
def test_the_line_that_makes_it_runs_in_that_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[], object],
    has_path: bool,
    made: str,
) -> None:
    """A file that has no `import os` ended with a NameError once it had the line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(globals(), "os")
    if not has_path:
        monkeypatch.setitem(globals(), "Path", None)
    assert f"there is no folder {tmp_path / 'out'}: write {made}exist_ok=True)" in fix(make)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.load("out/net.npy"),
        lambda: Path("out/a.txt").read_text(),
        lambda: open("out/a.json"),  # noqa: PTH123, SIM115
        lambda: torch.load("out/net.pt"),
        lambda: Path("a.txt").rename("out/a.txt"),
    ],
)
def test_what_is_read_is_told_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], object]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "makedirs" not in fix(make)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_checkpoint_that_a_fit_begins_with_and_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path if is_whole else 'logs'}/a/last.ckpt"
    trainer = pl.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    with pytest.raises(FileNotFoundError) as caught:
        trainer.fit(BoringModel(), ckpt_path=path)
    folder = f"{tmp_path}/a" if is_whole else f"logs, which would be in {tmp_path}"
    assert fix_of(caught.value) == f"there is no folder {folder}: {INSTEAD}"
