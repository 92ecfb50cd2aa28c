"""CUDA's errors: each sentence of cudaGetErrorString has its own fix, whoever passes it on."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.read_logs import ReadLogs

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n'
STARTS = (
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling"
    " NumCudaDevices() that might have already set an error? Error {0}: {1}"
)
FORMS = {
    "a call": TRACEBACK + "RuntimeError: CUDA error: {1}",
    "the start": "RuntimeError: " + STARTS,
    "a warning": "torch/cuda/__init__.py:52: UserWarning: CUDA initialization: "
    + STARTS
    + " (Triggered internally at  /p/c10/cuda/CUDAFunctions.cpp:115.)",
    "NCCL": "gpu07:4100:4188 [3] init.cc:462 NCCL WARN Cuda failure {0} '{1}'",
}
# Number, sentence, rule, a word of what to do.
ERRORS = [
    (3, "initialization error", "cuda_init", "spawn"),
    (34, "CUDA driver is a stub library", "cuda_stub", "stubs"),
    (
        35,
        "CUDA driver version is insufficient for CUDA runtime version",
        "cuda_old_driver",
        "newest CUDA",
    ),
    (36, "API call is not supported in the installed CUDA driver", "cuda_old_driver", "newer"),
    (46, "CUDA-capable device(s) is/are busy or unavailable", "gpu_busy", "compute mode"),
    (100, "no CUDA-capable device is detected", "no_gpu", "--nv"),
    (101, "invalid device ordinal", "device_ordinal", "local rank"),
    (209, "no kernel image is available for execution on the device", "gpu_code", "compute_cap"),
    (222, "the provided PTX was compiled with an unsupported toolchain.", "cuda_ptx", "no newer"),
    (802, "system not yet initialized", "system_not_ready", "fabricmanager"),
    (
        803,
        "system has unsupported display driver / cuda driver combination",
        "driver_halves",
        "reboot",
    ),
    (
        804,
        "forward compatibility was attempted on non supported HW",
        "cuda_compat",
        "/usr/local/cuda/compat",
    ),
    (
        805,
        "MPS client failed to connect to the MPS control daemon or the MPS server",
        "cuda_mps",
        "CUDA_MPS_PIPE_DIRECTORY",
    ),
    (900, "operation not permitted when stream is capturing", "cuda_capture", "without graphs"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("number", "sentence", "name", "todo"), ERRORS)
def test_an_error_of_cuda_has_its_own_fix_whoever_passes_it_on(form, number, sentence, name, todo):
    logs = ReadLogs()
    for at, line in enumerate(FORMS[form].format(number, sentence).splitlines(), 1):
        logs.feed(line, "", at)
    first = logs.findings()[0]
    assert (first.name, first.is_known) == (name, True)
    assert todo in first.fix
