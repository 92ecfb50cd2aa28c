"""Which process is the controller of a local run: a `submit --wait` looks at once, as it begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.backends.observe import is_submitit


@pytest.mark.parametrize(
    ("words", "has_program", "is_it"),
    [
        (b"python\0-m\0submitit.local._local\0", True, True),
        (b"", True, True),  # in the middle of its exec: it was told as lost
        (b"", False, False),  # a zombie, or a thread of the kernel's
        (b"vim\0train.py\0", True, False),
        (None, False, False),
    ],
)
def test_a_controller_is_known_by_its_words_and_while_it_has_none(
    tmp_path: Path, words: bytes | None, has_program: bool, is_it: bool
) -> None:
    process = tmp_path / "7"
    process.mkdir()
    if words is not None:
        (process / "cmdline").write_bytes(words)
    if has_program:
        (process / "exe").symlink_to(sys.executable)
    assert is_submitit(7, tmp_path) is is_it


def test_an_ended_child_that_nobody_has_reaped_is_none() -> None:
    with subprocess.Popen([sys.executable, "-c", "'submitit'"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_submitit(child.pid)
