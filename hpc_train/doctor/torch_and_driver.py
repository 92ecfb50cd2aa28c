"""Does torch load here, and does the driver do for its CUDA? torch is loaded by a child process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hpc_train.codec import decode
from hpc_train.config.python_text.distributions import install_here
from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.inventory.gpus import load_nvml

TORCH_LIMIT_S = 60.0  # a cold import from a busy file system takes tens of seconds
# Without garbage collection the import is shorter.
_ASK_TORCH = """
import gc, json
gc.disable()
import torch
nccl = torch.distributed.is_available() and torch.distributed.is_nccl_available()
print(json.dumps({
    "version": str(torch.__version__),
    "cuda": torch.version.cuda or "",
    "hip": torch.version.hip or "",
    "nccl": ".".join(map(str, torch.cuda.nccl.version())) if nccl else "",
    "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
}))
"""
_INSTALL = "install the build for your driver: https://pytorch.org/get-started/locally"


@dataclass(frozen=True, kw_only=True)
class TorchBuild:
    """What torch says of itself, in a process of its own."""

    version: str = ""
    cuda: str = ""  # that it was built for, as 12.8; empty in a CPU build
    hip: str = ""  # the same on ROCm
    nccl: str = ""  # the NCCL it carries; empty where it has none
    gpus: int = 0  # that it can use here
    error: str = ""  # why it says nothing


@dataclass(frozen=True, kw_only=True)
class DriverVersions:
    """NVIDIA's driver by NVML."""

    state: str = "absent"  # `ok`, `absent`, or NVML's error
    driver: str = ""
    cuda: tuple[int, int] = (0, 0)  # the newest CUDA it serves


def ask_torch(python: str = sys.executable, limit_s: float = TORCH_LIMIT_S) -> TorchBuild:
    """Import torch in a child; why it cannot be imported is an answer, too."""
    try:
        installed = version("torch")
    except PackageNotFoundError:
        return TorchBuild(error="torch is not installed here")
    try:
        done = subprocess.run(
            [python, "-c", _ASK_TORCH],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TorchBuild(version=installed, error=f"import torch takes more than {limit_s:g} s")
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return decode(TorchBuild, json.loads(lines[-1]))
    said = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
    return TorchBuild(version=installed, error=f"torch {installed} cannot be imported: {said}")


def ask_driver() -> DriverVersions:
    """The versions of the driver."""
    nvml, state = load_nvml()
    if nvml is None:
        return DriverVersions(state=state)
    try:
        number = int(nvml.nvmlSystemGetCudaDriverVersion_v2())  # 12040 is 12.4 (nvml.h)
        said: Any = nvml.nvmlSystemGetDriverVersion()
    except nvml.NVMLError as error:
        return DriverVersions(state=str(error))
    driver = said.decode() if isinstance(said, bytes) else str(said)
    return DriverVersions(state="ok", driver=driver, cuda=(number // 1000, number % 1000 // 10))


def check_torch(torch: TorchBuild, driver: DriverVersions, gpus: int) -> Iterator[Finding]:
    """Torch itself, its CUDA against the driver, and its NCCL. Pure.

    A driver serves every CUDA of its own major version and those before it (CUDA Compatibility,
    "minor version compatibility").

    Args:
        gpus: That the driver shows to this process.
    """
    if torch.error:
        fix = f"{install_here('torch')}, or name the environment that has it: env.conda, env.venv"
        yield Finding("", "", "torch", "fail", torch.error, fix)
        return
    build = next(
        (f"{name} {of}" for name, of in (("CUDA", torch.cuda), ("ROCm", torch.hip)) if of), "CPU"
    )
    yield Finding("", "", "torch", "ok", f"{torch.version}, built for {build}")
    yield _check_driver(torch, driver, gpus)
    if torch.nccl:
        yield Finding("", "", "nccl", "ok", f"{torch.nccl}, torch's own")
    elif gpus and not torch.hip:
        yield Finding("", "", "nccl", "fail", "this torch has none, and GPUs are here", _INSTALL)
    else:
        yield Finding("", "", "nccl", "ok", "none in this torch: ranks on CPUs use gloo")


def _check_driver(torch: TorchBuild, driver: DriverVersions, gpus: int) -> Finding:
    if driver.state == "absent":
        return Finding("", "", "driver", "ok", "no NVIDIA driver here: a machine without GPUs")
    if driver.state != "ok":
        fix = "nvidia-smi tells more; the driver's module and its library must be of one version"
        return Finding("", "", "driver", "fail", f"NVML: {driver.state}", fix)
    served = f"{driver.driver}, serves CUDA up to {driver.cuda[0]}.{driver.cuda[1]}"
    if not gpus:
        return Finding("", "", "driver", "ok", f"{served}; no GPU is visible to this process")
    if not torch.cuda:
        return Finding(
            "", "", "driver", "fail", f"{served}; torch is a build without CUDA", _INSTALL
        )
    if int(torch.cuda.partition(".")[0]) > driver.cuda[0]:
        text = f"{served}; torch is built for CUDA {torch.cuda}"
        return Finding("", "", "driver", "fail", text, f"a newer driver, or {_INSTALL}")
    if not torch.gpus:
        fix = "python -c 'import torch; torch.cuda.init()' says why"
        return Finding(
            "", "", "driver", "fail", f"{served}; torch can use none of {gpus} GPUs", fix
        )
    return Finding(
        "", "", "driver", "ok", f"{served}; torch uses {torch.gpus} GPU{'s' * (torch.gpus != 1)}"
    )
