"""Where the data files are: inside the package of a wheel, or at the root of the repository."""

from __future__ import annotations

from pathlib import Path

from hpc_train.errors import HpcTrainError

_PACKAGE = Path(__file__).resolve().parent.parent


def template_dir() -> Path:
    """Folder of the `*.sbatch.in` files."""
    return _find("sbatch_templates")


def config_dir() -> Path:
    """Folder of the configs that come with hpc-train, and of `clusters/`."""
    return _find("configs")


def project_template_dir() -> Path:
    """Folder of the files that `hpc-train init` writes."""
    return _find("project_template")


def _find(name: str) -> Path:
    # A wheel carries the folder inside the package; an editable install only beside it.
    for parent in (_PACKAGE, _PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise HpcTrainError(
        f"the folder {name} of hpc-train is missing beside {_PACKAGE}",
        "the installation is damaged: install hpc-train again",
    )
