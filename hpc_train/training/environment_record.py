"""What rank 0 of an attempt writes down of where it runs; torch is asked only if it is loaded."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from hpc_train.codec import read_object
from hpc_train.runs.atomic import write_text
from hpc_train.runs.installed import what_is_installed
from hpc_train.runs.layout import AttemptDir


def write_environment(attempt: AttemptDir) -> None:
    """Complete the attempt's `environment.json`, which holds the code already, once.

    Raises:
        OSError: it cannot be written.
    """
    known = read_object(attempt.environment)  # empty where no supervisor has started this
    if "packages" in known:
        return
    document = {**known, **what_is_installed(os.environ), "torch": _torch()}
    write_text(attempt.environment, json.dumps(document, indent=2) + "\n", durable=False)


def _torch() -> dict[str, Any]:
    """How the torch of this process was built."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    nccl = torch.distributed.is_available() and torch.distributed.is_nccl_available()
    return {
        "version": str(torch.__version__),
        "git": torch.version.git_version,
        "cuda": torch.version.cuda or "",
        "hip": torch.version.hip or "",
        "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if nccl else "",
        "gpus": _gpus(torch),
        "build": [line.strip(" -") for line in torch.__config__.show().splitlines()],
    }


def _gpus(torch: Any) -> list[str]:
    """Names of the GPUs, where this process uses them already; CUDA is not started for it."""
    if not torch.cuda.is_initialized():
        return []
    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
