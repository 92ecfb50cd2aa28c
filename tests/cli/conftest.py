"""The command line, called in this process, in an empty folder, without any Slurm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hpc_train.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "configs" / "digits.yaml")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def hpc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    """`hpc("status", "x")` gives exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SLURM_CONF", "SLURM_JOB_ID", "HPC_TRAIN_RUNS_DIR"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> Said:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        out, err = capfd.readouterr()
        code = caught.value.code
        return Said(code if isinstance(code, int) else 0, out, err)

    return call


@pytest.fixture
def without_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH on which there are no Slurm commands."""
    monkeypatch.setenv("PATH", "/nowhere")
