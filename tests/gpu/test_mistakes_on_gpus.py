"""Mistakes that a GPU alone shows, each typed as `hpc-train run`: what the screen says of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.conftest import ROOT
from tests.gpu.slips import SLIPS


@pytest.mark.parametrize("name", SLIPS)
def test_it_is_told_with_its_place_and_what_to_write(tmp_path: Path, needs_gpu, name: str):
    slip = SLIPS[name]
    words = slip.write(tmp_path)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    state = str(tmp_path / "state")
    # These name how many GPUs there are: one, whatever the machine has.
    env = {**os.environ, "PYTHONPATH": path, "XDG_STATE_HOME": state, "CUDA_VISIBLE_DEVICES": "0"}
    argv = [sys.executable, "-m", "hpc_train.cli", "run", *words]
    options = {"capture_output": True, "text": True, "timeout": 300, "check": False}
    done = subprocess.run(argv, cwd=tmp_path, env=env, **options)
    screen = f"{done.stdout}\n{done.stderr}"
    assert done.returncode not in (0, 1), screen
    for wanted in (slip.where, *slip.wants):
        assert wanted in screen, (wanted, screen)
