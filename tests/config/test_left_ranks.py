"""A call of all ranks behind `if rank != 0: return` is noted: the others do not come to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_rank_zero_scripts import CALLBACK, noted, raw

BARRIER = "dist.barrier()"


@pytest.mark.parametrize(
    ("test", "zero"),
    [
        ("rank != 0", "rank == 0"),
        ("0 != rank", "rank == 0"),
        ("dist.get_rank() > 0", "dist.get_rank() == 0"),
        ("args.rank >= 1", "args.rank == 0"),
        ("rank", "rank == 0"),
        ("not rank == 0", "rank == 0"),
        ("not is_main", "is_main"),
        ("not is_main_process()", "is_main_process()"),
        ("world_size > 1 and rank != 0", "rank == 0"),
        ("is_distributed and rank > 0", "rank == 0"),
    ],
)
def test_it_is_noted_with_the_condition_of_rank_0(tmp_path: Path, test: str, zero: str) -> None:
    lines = (f"if {test}:", "    continue", "torch.save({}, 'a.pt')", BARRIER)
    (note,) = noted(tmp_path, raw(*lines))
    assert note == (
        f"train.py:12 calls dist.barrier(...) behind `if {test}: continue` (line 9), and all ranks"
        " have to call it: with several they wait for each other there; put what rank 0 does alone"
        f" under `if {zero}:`, and this call behind that"
    )


@pytest.mark.parametrize(
    ("lines", "line", "call"),
    [
        (["if rank != 0:", "    return", BARRIER], 11, BARRIER),
        (["if rank != 0: return None", "if epoch == 2:", f"    {BARRIER}"], 11, BARRIER),
        (["if epoch % 2 == 0:", "    if rank: continue", "    f()", BARRIER], 12, BARRIER),
        (["if rank == 0:", "    f()", "else:", "    continue", BARRIER], 13, BARRIER),
        (["if rank != 0:", "    print(1)", "    sys.exit()", BARRIER], 12, BARRIER),
        (["if not rank:", f"    {BARRIER}"], 10, BARRIER),
        (["if not rank != 0:", f"    {BARRIER}"], 10, BARRIER),
        (["if rank < 1:", f"    {BARRIER}"], 10, BARRIER),
        (["if rank: continue", "net(x).backward()"], 10, "net()"),
        (
            ["if rank: continue", "other = DistributedDataParallel(y)"],
            10,
            "DistributedDataParallel()",
        ),
        (
            ["if not accelerator.is_main_process: return", "accelerator.wait_for_everyone()"],
            10,
            "accelerator.wait_for_everyone()",
        ),
        (["if fabric.is_global_zero: fabric.save('a', {})"], 9, "fabric.save()"),
        (["if not fabric.is_global_zero: return", "fabric.barrier()"], 10, "fabric.barrier()"),
    ],
)
def test_where_the_others_leave_before_it(
    tmp_path: Path, lines: list[str], line: int, call: str
) -> None:
    (note,) = noted(tmp_path, raw(*lines))
    assert note.startswith(f"train.py:{line} calls {call[:-1]}...) ")


def test_what_follows_the_loop_is_not_reached_after_a_return(tmp_path: Path) -> None:
    text = raw("if rank != 0:", "    return").replace("\nmain()", "\n    dist.barrier()\nmain()")
    (note,) = noted(tmp_path, text)
    assert note.startswith("train.py:11 calls dist.barrier(...) behind `if rank != 0: return` (")
    assert noted(tmp_path, text.replace("return", "continue")) == []
    assert noted(tmp_path, text.replace("return", "break")) == []


def test_a_callback_of_a_script_that_leaves_on_other_ranks(tmp_path: Path) -> None:
    text = CALLBACK.format(test="not trainer.is_global_zero", body="")
    text = text.replace("            trainer.save", "            return\n        trainer.save")
    (note,) = noted(tmp_path, text)
    assert note.startswith(
        "train.py:7 calls trainer.save_checkpoint(...) behind `if not trainer.is_global_zero:"
        " return` (line 5), and all ranks have to call it"
    )
    assert note.endswith("under `if trainer.is_global_zero:`, and this call behind that")


@pytest.mark.parametrize(
    "lines",
    [
        ["if rank != 0: continue", "torch.save({}, 'a.pt')"],
        ["if rank != 0:", f"    {BARRIER}", "    continue", "f()", BARRIER],
        ["if rank != 0:", f"    {BARRIER}", "if rank != 0: continue", "f()", BARRIER],
        ["if rank == 0: return", BARRIER, "if rank != 0: return", BARRIER],
        ["if rank != 0 and epoch == 2: continue", BARRIER],
        ["if rank != 3: continue", BARRIER],
        ["if local_rank != 0: continue", BARRIER],
        ["if rank != 0: continue", "dist.all_reduce(x, group=mine)"],
        ["if rank != 0: print(1)", BARRIER],
        ["if rank != 0: continue", "def later(): dist.barrier()"],
        ["if rank != 0: continue", "probe(x).backward()", "net.module(x)"],
        ["if rank != 0: continue", "net(x)"],
        ["if rank == 0: return", "else: return", BARRIER],
        ["if not accelerator.is_main_process: return", "board.gather(x)"],
        ["for it in range(3):", "    if rank: break", "    f()", BARRIER],
    ],
)
def test_what_all_ranks_may_come_to_is_not_noted(tmp_path: Path, lines: list[str]) -> None:
    assert noted(tmp_path, raw(*lines)) == []


def test_what_others_do_in_a_function_of_theirs_counts(tmp_path: Path) -> None:
    lines = ("if rank != 0: wait()", "if rank != 0: continue", "f()", BARRIER)
    text = raw(*lines).replace("\nmain()", "\ndef wait():\n    dist.barrier()\nmain()")
    assert noted(tmp_path, text) == []


def test_a_script_that_calls_its_main_under_the_usual_condition_is_read_alike(
    tmp_path: Path,
) -> None:
    """`__main__` has the word main in it, and its body was taken for that of some ranks."""
    text = raw("if rank != 0: continue", BARRIER)
    guarded = text.replace("\nmain()", '\nif __name__ == "__main__":\n    main()')
    assert guarded != text
    assert noted(tmp_path, guarded) == noted(tmp_path, text) != []
