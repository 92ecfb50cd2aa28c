"""The lines that may tell something: the same by grep as by the reader in Python."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from pathlib import Path

import pytest

from hpc_train.diagnose import first_pass
from hpc_train.diagnose.first_pass import telling_lines
from hpc_train.diagnose.read_logs import ReadLogs, diagnose_logs
from hpc_train.errors import HpcTrainError
from tests.diagnose.nccl_lines_made import examples as nccl_examples
from tests.diagnose.test_causes import LOOK_ALIKES, examples

pytestmark = pytest.mark.slow


@pytest.fixture
def always_grep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_pass, "_SMALL_BYTES", 0)


def findings(path: Path):
    logs = ReadLogs()
    logs.read(str(path))
    return logs.findings()


def both(path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is found by grep, and by the reader alone."""
    monkeypatch.setattr(first_pass, "_SMALL_BYTES", 0)
    by_grep = findings(path)
    monkeypatch.setattr(first_pass, "_SMALL_BYTES", 1 << 40)
    return by_grep, findings(path)


CASES = [*examples(), *nccl_examples()]


@pytest.mark.parametrize("number", range(0, len(CASES), 20))
def test_grep_lets_each_example_through_with_its_number(number, tmp_path, monkeypatch):
    for name, said, text in CASES[number : number + 20]:
        path = tmp_path / "a.log"
        path.write_text("step 1 loss 2\n" * 3 + text + "\n" + "step 2 loss 1\n" * 3)
        by_grep, alone = both(path, monkeypatch)
        assert by_grep == alone, (name, said)


@pytest.mark.parametrize("seed", range(8))
def test_grep_and_the_reader_find_the_same_in_mixed_logs(seed, tmp_path, monkeypatch):
    rng = random.Random(seed)
    parts = [text for _, _, text in rng.sample(CASES, 3)]
    parts += rng.sample([*LOOK_ALIKES.values()], 3)
    parts += [f"step {i} loss 0.{i}\rstep {i + 1} loss 0.1" for i in range(300)]
    parts += ["\x1b[31mstep 7\x1b[0m", "\x00\xff\x80" * 5, "", "x" * 200_000]
    rng.shuffle(parts)
    path = tmp_path / "a.log"
    path.write_bytes("\n".join(parts).encode("latin-1", "replace"))
    by_grep, alone = both(path, monkeypatch)
    assert by_grep == alone


def test_an_exception_at_the_end_counts_without_its_traceback(tmp_path, monkeypatch):
    path = tmp_path / "a.log"
    path.write_text("step 1\n" * 5000 + "KeyError: 'labels'\nbye\n\n")
    by_grep, alone = both(path, monkeypatch)
    assert by_grep == alone
    assert by_grep[0].name == "ends_with"
    path.write_text("KeyError: 'labels'\n" + "step 1\n" * 5000)
    assert both(path, monkeypatch) == ((), ())


def test_without_grep_all_is_read_all_the_same(tmp_path, monkeypatch, always_grep):
    path = tmp_path / "a.log"
    path.write_text("step 1\nModuleNotFoundError: No module named 'a'\n")
    monkeypatch.setattr(first_pass, "_GREP", "exit 127")
    assert [item.name for item in findings(path)] == ["missing_module"]


def test_what_grep_cannot_hold_is_read_from_where_it_was(tmp_path, monkeypatch, always_grep):
    path = tmp_path / "a.log"
    lines = ["step 1", "CUDA out of memory. Tried to allocate 2.00 GiB.", "step 2", "MemoryError"]
    path.write_text("\n".join(lines))
    monkeypatch.setattr(first_pass, "_GREP", 'echo "2:$(sed -n 2p "$2")"; exit 2')
    found = list(telling_lines(str(path)))
    assert found[0] == (2, lines[1])
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    assert found[-1] == (4, "MemoryError")


def test_one_endless_line_and_a_flood_are_read_in_bounded_memory(tmp_path):
    bar, flood = tmp_path / "bar.log", tmp_path / "flood.log"
    piece = "".join(f"\rEpoch 1: {i % 100}%|### | {i}/9999 loss=0.{i}" for i in range(20_000))
    with bar.open("w") as stream:
        for _ in range(40):
            stream.write(piece)
        stream.write("\rtorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n")
    with flood.open("w") as stream:
        for i in range(60_000):
            stream.write(f"[rank{i % 512}]: RuntimeError: Connection closed by peer [{i}]:{i}\n")
        stream.write("[rank7]: torch.OutOfMemoryError: CUDA out of memory\n")
    tracemalloc.start()
    try:
        assert [item.name for item in findings(bar)] == ["torch_oom"]
        (found,) = findings(flood)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.name, found.rank) == ("torch_oom", 7)
    assert peak < 60 << 20


def test_binary_rubbish_and_a_cut_archive_are_no_failure(tmp_path, always_grep):
    (tmp_path / "a.log").write_bytes(random.Random(1).randbytes(3_000_000))
    with pytest.raises(HpcTrainError, match=r"a\.log: that is no text"):
        diagnose_logs([str(tmp_path / "a.log")])
    (tmp_path / "b.log").write_text("step 1\n")
    assert diagnose_logs([str(tmp_path)]).findings == (), "beside a log"
    whole = gzip.compress(b"step 1\n" * 99 + b"MemoryError\n" + random.Random(2).randbytes(90_000))
    (tmp_path / "b.log.gz").write_bytes(whole[:50_000])
    assert diagnose_logs([str(tmp_path / "b.log.gz")]).traceback == ()


def test_clocks_that_jump_and_times_that_are_none_do_no_harm(tmp_path):
    text = "2026-99-99 99:99:99 step 1\n2026-11-21 08:00:00 step 5\n1970-01-01 00:00:00 step 6\n"
    (tmp_path / "a.log").write_text(f"{text}CUDA out of memory. Tried to allocate 1.00 GiB.\n")
    (found,) = diagnose_logs([str(tmp_path / "a.log")]).findings
    assert found.step == 6
    assert found.evidence[0].line == 4


def test_one_culprit_is_found_in_a_folder_of_two_thousand_files(tmp_path):
    for rank in range(2000):
        (tmp_path / f"rank-{rank}.log").write_text(f"step {rank}\n" * (rank % 3))
    bar = "\r".join(f"\x1b[32mEpoch 1: {i}%\x1b[0m" for i in range(100))
    error = "\x1b[31mModuleNotFoundError: No module named 'einops'\x1b[0m"
    (tmp_path / "rank-1234.log").write_text(f"{bar}\r{error}\n")
    (found,) = diagnose_logs([str(tmp_path)]).findings
    assert (found.name, found.rank, found.evidence[0].line) == ("missing_module", 1234, 1)


def test_many_short_lines_are_read_in_bounded_memory(tmp_path):
    path = tmp_path / "a.log"
    with path.open("w") as stream:
        for begin in range(0, 2_000_000, 10_000):
            stream.write("".join(f"{i}\n" for i in range(begin, begin + 10_000)))
        stream.write("torch.OutOfMemoryError: CUDA out of memory\n")
    tracemalloc.start()
    try:
        (found,) = findings(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.name, found.evidence[0].line) == ("torch_oom", 2_000_001)
    assert peak < 20 << 20
