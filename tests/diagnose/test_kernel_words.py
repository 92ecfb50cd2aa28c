"""What a GPU's kernel writes to stderr is the cause, and the exception behind it is not."""

from __future__ import annotations

import pytest

from hpc_train.runs.ranks import ExitRecord, write_exit
from tests.diagnose.test_read_run import ended, first, made, write

__all__ = ["made"]

# As torch 2.11 wrote it on an H100.
RAISED = """AcceleratorError: CUDA error: device-side assert triggered
Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/ for more information.
CUDA kernel errors might be asynchronously reported at some other API call
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
TRACEBACK = f"""Traceback (most recent call last):
  File "/home/u/nets.py", line 57, in training_step
    self.log("train_loss", loss)
torch.{RAISED}"""
LABEL = (
    "/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: "
    "block: [0,0,0], thread: [{},0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
)
INDEX = (
    "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [0,0,0], thread: "
    '[{},0,0] Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.\n'
)


def failed(made, log: str) -> None:
    message = RAISED.splitlines()[0]
    ended(made, "user_error", f"rank 0 on n1 failed at step 3: {message}", rank=0)
    write(made.run.attempt(0).rank_log(0), log)
    record = ExitRecord(
        rank=0, node="n1", code=1, kind="user", error=message, traceback=TRACEBACK, step=3, time=1.0
    )
    write_exit(made.run.attempt(0), record)


@pytest.mark.parametrize(
    ("line", "cause", "fix"),
    [
        (LABEL, "a label that is out of range of the classes", "labels go from 0 to the number of"),
        (INDEX, "an index that is out of range", "look at the min and the max of what indexes"),
    ],
)
@pytest.mark.parametrize("lines", [1, 3])
@pytest.mark.parametrize("before", ["", "epoch 1\n" * 200_000])
def test_the_kernels_words_are_the_cause(made, line, cause, fix, lines, before):
    failed(made, before + "".join(line.format(n) for n in range(lines)) + TRACEBACK)
    found = first(made)
    assert found.name == "gpu_assert"
    assert cause in found.cause
    assert found.fix.startswith(fix)
    assert "CUDA_LAUNCH_BLOCKING=1" in found.fix
    assert found.rank == 0


def test_without_them_the_exception_is_what_is_known(made):
    failed(made, TRACEBACK)
    assert first(made).name == "cuda_kernel"


def test_without_a_log_as_well(made):
    failed(made, "")
    made.run.attempt(0).rank_log(0).unlink()
    assert first(made).name == "cuda_kernel"
