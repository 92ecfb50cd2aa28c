"""A rank's own children: `terminate()` ends them, and the signals of Slurm do not.

Each runs in a process of its own, as a rank does: what is changed there stays changed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """\
import os, signal, sys, time
from multiprocessing import Pipe, Pool, Process
from hpc_train.training.resume.stop import StopFlag, shielded_from_signals

def square(x):
    return x * x

def stay(ready=None):
    if ready:
        ready.send("here")
    while True:
        time.sleep(1)

def clean_up(ready):
    def leave(*_):
        ready.send("cleaned up")
        sys.exit(3)
    signal.signal(signal.SIGTERM, leave)
    stay(ready)

def started(work):
    here, there = Pipe()
    child = Process(target=work, args=(there,), daemon=True)
    child.start()
    assert here.recv() == "here"
    return child, here

flag = StopFlag().install()
"""


def printed(folder: Path, body: str) -> str:
    """What the program has printed, once it has ended by itself."""
    script = folder / "program.py"
    script.write_text(HEAD + body)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    return done.stdout.strip()


def test_a_pool_ends_each_time(tmp_path: Path) -> None:
    """Pools without a rank's handlers do; with them one of a few waited for ever."""
    body = """
for _ in range(100):
    with Pool(3) as pool:
        assert list(pool.imap(square, range(9)))[-1] == 64
print("done", flag.reason)
"""
    assert printed(tmp_path, body) == "done None"


@pytest.mark.parametrize("wait", ["child.join()", "while child.is_alive(): time.sleep(0.05)"])
def test_a_child_that_is_terminated_ends_as_ever(tmp_path: Path, wait: str) -> None:
    body = f"""
codes = []
for _ in range(5):  # at once, before it has begun, and later
    child = Process(target=stay)
    child.start()
    child.terminate()
    {wait}
    codes.append(child.exitcode)
child, _ = started(stay)
child.terminate()
{wait}
print(codes, child.exitcode)
"""
    assert printed(tmp_path, body) == "[-15, -15, -15, -15, -15] -15"


def test_python_ends_where_a_daemon_is_left(tmp_path: Path) -> None:
    assert printed(tmp_path, "started(stay)\nprint('done')\n") == "done"


def test_the_signals_of_slurm_are_passed_over_by_a_child(tmp_path: Path) -> None:
    body = """
child, _ = started(stay)
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    os.kill(child.pid, number)
child.join(1)
print(child.exitcode, flag.reason)
"""
    assert printed(tmp_path, body) == "None None"


def test_a_handler_of_the_childs_own_is_called_once(tmp_path: Path) -> None:
    body = """
child, pipe = started(clean_up)
child.terminate()
child.join()
said = [pipe.recv()]
try:
    said.append(pipe.recv())
except EOFError:
    pass
print(said, child.exitcode)
"""
    assert printed(tmp_path, body) == "['cleaned up'] 3"


def test_a_child_that_hears_no_signal_is_killed(tmp_path: Path) -> None:
    """As a data worker, which is born with the signals blocked."""
    body = """
with shielded_from_signals():
    child, _ = started(stay)
os.kill(child.pid, signal.SIGTERM)
child.join(0.5)
before = child.exitcode
child.terminate()
child.join()
print(before, child.exitcode)
"""
    assert printed(tmp_path, body) == "None -9"


def test_a_child_of_a_child_is_ended_by_it(tmp_path: Path) -> None:
    body = """
def nested(ready):
    inner = Process(target=stay)
    inner.start()
    inner.terminate()
    inner.join()
    ready.send(inner.exitcode)
    stay()

here, there = Pipe()
child = Process(target=nested, args=(there,), daemon=False)
child.start()
print(here.recv())
child.terminate()
"""
    assert printed(tmp_path, body) == "-15"


def test_who_is_given_the_number_of_an_ended_child_lives(tmp_path: Path) -> None:
    """A system has 32,768 of them by default, and a long training may start as many children."""
    body = """
from hpc_train.training.private.terminated_children import _is_marked

child, _ = started(stay)
child.terminate()
marked = _is_marked(child.pid)
child.join()
child.terminate()
print(marked, _is_marked(child.pid))
"""
    assert printed(tmp_path, body) == "True False"


def test_a_child_that_somebody_else_has_reaped_is_not_waited_for(tmp_path: Path) -> None:
    body = """
child, _ = started(stay)
child.terminate()
os.waitpid(child.pid, 0)
child.join()
print(child.exitcode)
os._exit(0 if sys.stdout.flush() is None else 1)
"""
    assert printed(tmp_path, body) == "None"


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_a_child_that_is_no_fork_of_the_rank_ends_and_leaves_no_mark(
    tmp_path: Path, way: str
) -> None:
    body = f"""
import multiprocessing
from hpc_train.training.private.terminated_children import _is_marked

if __name__ == "__main__":
    child = multiprocessing.get_context({way!r}).Process(target=time.sleep, args=(100,))
    child.start()
    child.terminate()
    child.join()
    print(child.exitcode, _is_marked(child.pid))
"""
    assert printed(tmp_path, body) == "-15 False"
