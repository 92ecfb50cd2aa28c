"""What is installed and set where a process runs: packages, kernel, driver, chosen variables."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

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


def install_command(*, pip: str = "pip", extra: str = "") -> str:
    """What installs hpc-train as it is installed here: from a clone, a wheel, or a repository.

    Args:
        pip: Of the environment that is to have it.
        extra: Of the optional parts, one; where hpc-train is installed its name is enough.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution("hpc-train")
    except PackageNotFoundError:
        source, is_there = _clone(), False
    else:
        source, is_there = _source(installed.read_text("direct_url.json") or ""), True
    what = "hpc-train" if extra and is_there else source or "/path/to/hpc-train"
    command = shlex.join([*shlex.split(pip), "install", f"{what}[{extra}]" if extra else what])
    return command if what != "/path/to/hpc-train" else f"{command}, as the README has it"


def _source(direct_url: str) -> str:
    """The folder, file or repository that pip was given (PEP 610); empty where it is not there."""
    try:
        told = json.loads(direct_url)
        url, vcs = str(told["url"]), told.get("vcs_info", {}).get("vcs", "")
    except (ValueError, KeyError, AttributeError, TypeError):
        return _clone()
    if vcs:
        return f"{vcs}+{url}"
    path = Path(unquote(urlsplit(url).path))
    return str(path) if url.startswith("file:") and path.exists() else ""


def _clone() -> str:
    """The project that this very module lies in, where it was not copied out of it."""
    top = Path(__file__).parents[2]
    return str(top) if (top / "pyproject.toml").is_file() else ""


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
