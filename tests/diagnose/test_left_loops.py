"""A hang of a script in which some ranks have left their loop over the batches, and others not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.diagnose.left_loops import left_loops
from hpc_train.diagnose.stacks import read_stacks
from hpc_train.diagnose.uneven_shares import UNEVEN
from hpc_train.runs.layout import RunDir
from tests.diagnose.test_read_hangs import STACK
from tests.diagnose.test_read_run import ended, first, made, write

__all__ = ["made"]

LOOP = """\
def main():
    for epoch in range(3):
        for x, y in loader:
            loss = f(x, y)
            loss.backward()
        if rank == 0:
            print(loss)
        dist.barrier()
    dist.all_reduce(x)
main()
"""
WAITS = '  File "/env/lib/python3.11/site-packages/torch/distributed/c10d.py", line 2 in barrier\n'


def said(folder: Path, text: str, *lines: int, functions: tuple[str, ...] = ()) -> str:
    """Of ranks that wait at these lines of the script."""
    script = folder / "ddp.py"
    write(script, text)
    attempt = RunDir(folder / "run").attempt(0)
    for rank, line in enumerate(lines):
        function = functions[rank] if functions else "main"
        frames = f'{WAITS}  File "{script}", line {line} in {function}\n'
        write(attempt.rank_stacks(rank), STACK.format(frames))
    return left_loops(read_stacks(attempt))


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        ((5, 8), "rank 1 has left its loop of ddp.py:3, and waits at ddp.py:8, and rank 0 has not"),
        ((8, 5), "rank 0 has left its loop of ddp.py:3, and waits at ddp.py:8, and rank 1 has not"),
        ((5, 8, 5), "rank 1 has left its loop of ddp.py:3, and waits at ddp.py:8, and ranks 0, 2"),
        ((8, 8, 5), "ranks 0, 1 have left their loop of ddp.py:3, and wait at ddp.py:8, and rank"),
        ((9, 5), "rank 0 has left its loop of ddp.py:2, and waits at ddp.py:9, and rank 1 has not"),
    ],
)
def test_who_has_left_it_is_told(tmp_path: Path, lines: tuple[int, ...], who: str) -> None:
    text = said(tmp_path, LOOP, *lines)
    assert text.startswith(who)
    assert f", at ddp.py:5: {UNEVEN}: give each rank as many batches" in text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (LOOP, (5, 5)),
        (LOOP, (5, 4)),  # both in the loop
        (LOOP, (7, 8)),  # none in it
        (LOOP, (5, 7)),  # under a condition: it may be the one of an epoch before
        (LOOP.replace("loss = f(x, y)", "if done: break"), (5, 8)),
        (LOOP.replace("print(loss)", "continue"), (5, 8)),
        (LOOP.replace("for x, y in loader", "while more()"), (5, 8)),
        ("def f(:\n", (5, 8)),
    ],
)
def test_what_may_have_another_cause_is_not(
    tmp_path: Path, text: str, lines: tuple[int, ...]
) -> None:
    assert said(tmp_path, text, *lines) == ""


def test_nor_are_two_functions(tmp_path: Path) -> None:
    assert said(tmp_path, LOOP, 5, 8, functions=("main", "other")) == ""


def test_diagnose_names_them_as_the_cause_with_what_to_do(made, tmp_path: Path) -> None:
    uneven = said(tmp_path, LOOP, 5, 8)
    ended(made, "hang", f"nothing moved for 60 s (limit 60 s); {uneven}", error=UNEVEN)
    found = first(made)
    assert (found.name, found.rank, found.node) == ("uneven_shares", None, "")
    assert found.cause.startswith("rank 1 has left its loop of ddp.py:3, and waits at ddp.py:8")
    assert found.fix.startswith("give each rank as many batches, as DataLoader(data, sampler=")
