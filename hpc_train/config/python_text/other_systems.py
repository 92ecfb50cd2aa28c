"""Files named as modules of Python for other systems, which it tries to import on this one too."""

from __future__ import annotations

from pathlib import Path

from hpc_train.config.python_text.modules import read_names

# subprocess takes a system that has it for Windows.
_TELLS_WINDOWS = "msvcrt"
# pathlib and mimetypes import them where they are, in the middle of their own import.
_TRIED = ("nt", "winreg")
_OF_TRAININGS = ("torch", "pytorch_lightning", "lightning", "lightning_fabric", "hpc_train")


def tried_in_vain(folder: Path) -> Path | None:
    """A file of the folder's that every rank would run for such a module, and end with an error.

    A short nt.py that imports nothing which itself imports pathlib does no harm.
    """
    for name in (_TELLS_WINDOWS, *_TRIED):
        for file in (folder / f"{name}.py", folder / name / "__init__.py"):
            if file.is_file() and (name == _TELLS_WINDOWS or _imports_torch(file, folder, set())):
                return file if file.stem == name else file.parent
    return None


def _imports_torch(file: Path, folder: Path, seen: set[Path]) -> bool:
    """Whether a file imports torch or what needs it, itself or by another file of the folder."""
    seen.add(file)
    for needed in read_names(file).needs:
        first = needed.module.lstrip(".").partition(".")[0]
        own = [
            it for it in (folder / f"{first}.py", folder / first / "__init__.py") if it.is_file()
        ]
        if not own and first in _OF_TRAININGS:
            return True
        if any(_imports_torch(it, folder, seen) for it in own if it not in seen):
            return True
    return False
