"""Processes that a rank forks: its Pools end, and a signal from outside leaves them to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAD = """\
import os, signal, subprocess, sys, time
from multiprocessing import Pipe, Pool, Process
from hpc_train.training.resume.stop import StopFlag

def square(number):
    return number * number

def wait(pipe, own):
    if own:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    pipe.send("here")
    while True:
        time.sleep(0.01)

def started(own=False):
    ours, theirs = Pipe()
    process = Process(target=wait, args=(theirs, own), daemon=True)
    process.start()
    ours.recv()
    return process

def from_outside(process):
    subprocess.run(["kill", "-TERM", str(process.pid)], check=True)
    time.sleep(0.3)

stop = StopFlag().install()
"""


def output_of(tmp_path: Path, text: str) -> list[str]:
    script = tmp_path / "rank.py"
    script.write_text(f"{HEAD}{text}", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.split()


def test_all_pools_of_a_script_end(tmp_path: Path) -> None:
    text = """
for _ in range(60):
    with Pool(4) as pool:
        assert sum(pool.imap(square, range(9))) == 204
print("ended", stop.reason)
"""
    assert output_of(tmp_path, text) == ["ended", "None"]


def test_a_child_hears_its_parent_and_no_signal_that_all_processes_of_a_job_get(
    tmp_path: Path,
) -> None:
    text = """
child = started()
from_outside(child)
print(child.is_alive())
child.terminate()
child.join()
print(child.exitcode in (-signal.SIGTERM, -signal.SIGKILL), stop.reason)
"""
    assert output_of(tmp_path, text) == ["True", "True", "None"]


def test_one_with_a_handler_of_its_own_or_another_program_ends_as_ever(tmp_path: Path) -> None:
    text = """
child = started(own=True)
child.terminate()
child.join()
print(child.exitcode)
child = started(own=True)
from_outside(child)
child.join()
print(child.exitcode)
other = subprocess.Popen(["sleep", "100"])
other.terminate()
print(other.wait() == -signal.SIGTERM)
os.kill(os.getpid(), signal.SIGTERM)
print(stop.reason)
"""
    assert output_of(tmp_path, text) == ["7", "7", "True", "SIGTERM"]
