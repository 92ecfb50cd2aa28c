"""What two numbers of a line say together: who holds a full GPU, and who is missing."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.diagnosis import Culprit
from hpc_train.diagnose.read_logs import ReadLogs

# torch's CUDACachingAllocator.cpp, before 2.1 and from then on.
OLD = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB (GPU 2; {total}"
    " GiB total capacity; 8.00 GiB already allocated; {free} free; {own} GiB reserved in total by"
    " PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
)
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 2 has a total"
    " capacity of {total} GiB of which {free} is free.{others} Including non-PyTorch memory, this"
    " process has {own} memory in use. Of the allocated memory 8.00 GiB is allocated by PyTorch"
)


def finding(line: str) -> Culprit:
    logs = ReadLogs()
    logs.feed(line, "", 1)
    (found,) = logs.findings()
    return found


@pytest.mark.parametrize(
    ("line", "held"),
    [
        (OLD.format(total="79.35", free="709.69 MiB", own="34.91"), "43.7 GiB"),
        (OLD.format(total="23.69", free="0 bytes", own="9.50"), "14.2 GiB"),
        (NEW.format(total="79.15", free="512.00 MiB", own="70.00 GiB", others=""), "8.7 GiB"),
        (
            NEW.format(
                total="79.15",
                free="1.15 GiB",
                own="40.00 GiB",
                others=" Process 17 has 38.00 GiB memory in use.",
            ),
            "38.0 GiB",
        ),
    ],
)
def test_what_others_hold_of_a_full_gpu_is_told_first(line, held):
    found = finding(line)
    assert found.cause.startswith(f"a GPU ran out of memory, and {held} of it are not held by this")
    assert found.fix.startswith(f"who has those {held}?")


@pytest.mark.parametrize(
    "line",
    [
        # CUDA's context and NCCL's buffers are the process's own as well.
        OLD.format(total="79.35", free="1.50 GiB", own="74.00"),
        NEW.format(total="79.15", free="512.00 MiB", own="78.40 GiB", others=""),
        # In a container the driver does not know the process.
        NEW.format(total="79.15", free="512.00 MiB", own="0 bytes", others=""),
        NEW.format(total="79.15", free="512.00 MiB", own="17179869184.00 GiB", others=""),
    ],
)
def test_where_the_process_itself_fills_the_gpu_nobody_else_is_blamed(line):
    found = finding(line)
    assert "not held" not in found.cause
    assert found.fix.startswith("less memory a rank")


BARRIER = (
    "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key:"
    " store_based_barrier_key:1 (world_size=8, worker_count={}, timeout=0:30:00)"
)


@pytest.mark.parametrize(
    ("count", "said", "todo"),
    [
        (16, "8 too many, of this start or of an earlier one", "another MASTER_PORT"),
        (5, "3 did not start, or ended", "what the other 3 wrote"),
    ],
)
def test_too_many_at_a_barrier_came_twice_and_too_few_did_not_come(count, said, todo):
    found = finding(BARRIER.format(count))
    assert found.cause.endswith(said) or f"{said} " in found.cause
    assert found.fix.startswith((todo, f"a new store for each start ({todo}"))
