"""What is printed into a full disk or a closed pipe is lost, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PRINTS = """
import sys
from hpc_train.runs.lost_output import survive_lost_output
survive_lost_output()
input()
for number in range(3):
    print("x" * 100_000, flush=True)
    print("y", file=sys.stderr)
sys.exit(7)
"""


@pytest.mark.parametrize("where", ["closed pipe", "full disk"])
def test_a_process_goes_on_to_its_own_end(where: str) -> None:
    reader, writer = os.pipe()
    out = writer if where == "closed pipe" else os.open("/dev/full", os.O_WRONLY)
    process = subprocess.Popen(
        [sys.executable, "-c", PRINTS], stdin=subprocess.PIPE, stdout=out, stderr=out
    )
    os.close(reader)
    os.close(writer)
    process.communicate(b"\n", timeout=60)
    assert process.returncode == 7


def test_what_is_taken_is_written_as_before() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINTS], input="\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(done.stdout), done.stderr) == (7, 300_003, "y\ny\ny\n")
