"""What is installed and set where a process runs: packages, kernel, driver, chosen variables."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.secrets import looks_secret

# NAME-VERSION.dist-info; in a name "-" is written "_" (the packaging specifications).
_DIST_INFO = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)\.(?:dist|egg)-info\Z")
_DRIVER = Path("/proc/driver/nvidia/version")
# The only variables whose values are kept: those that change a result or its speed.
_KEPT = re.compile(
    r"(?:NCCL|GLOO|OMP|MKL|CUDA|CUDNN|CUBLAS|UCX|FI|TORCH|PYTORCH)_[A-Z0-9_]+\Z"
    r"|(?:SLURM_(?:JOB_ID|JOB_PARTITION|JOB_NUM_NODES|CLUSTER_NAME|MPI_TYPE)|PYTHONHASHSEED)\Z"
    r"|(?:LOADEDMODULES|CONDA_DEFAULT_ENV|VIRTUAL_ENV|APPTAINER_CONTAINER|SINGULARITY_CONTAINER)\Z"
)


def installed_packages(path: Sequence[str]) -> dict[str, str]:
    """Version by name of every package in these folders, the first one of a name.

    The names of the folders say it: to open the metadata of each takes ten times as long.
    """
    found: dict[str, str] = {}
    for folder in path:
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries]
        except OSError:
            continue  # an archive, or a folder that is not there
        for match in filter(None, map(_DIST_INFO.match, names)):
            found.setdefault(match["name"].lower().replace("_", "-"), match["version"])
    return dict(sorted(found.items()))


def what_is_installed(environ: Mapping[str, str]) -> dict[str, Any]:
    """Of this process, beside the code: Python and its packages, system, driver, variables."""
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "host": platform.node(),
        "system": _system(),
        "kernel": platform.release(),
        "driver": _driver(),
        "modules": [name for name in environ.get("LOADEDMODULES", "").split(":") if name],
        "variables": {
            name: value
            for name, value in sorted(environ.items())
            if _KEPT.match(name) and not looks_secret(name)
        },
        "packages": installed_packages(sys.path),
    }


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def _driver() -> str:
    try:
        text = _DRIVER.read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"\b\d+\.\d+(?:\.\d+)?\b", text)
    return found.group() if found else text.strip()
