"""Which of Lightning's two packages a fix names: the one that the project imports.

Their classes are not the same: no Trainer of one takes a class that derives from the other's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.class_kind import derives_from, lightning_package, locate
from hpc_train.config.python_text.modules import Names, find_module, read_names
from hpc_train.errors import ConfigError

OLD, NEW = "pytorch_lightning", "lightning.pytorch"
_EITHER = re.compile(r"\b(?:pytorch_lightning|lightning\.pytorch)\b")
_MOST_FILES = 50  # of the folder: a few milliseconds each


def own_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The Python files of the user's folder that can be imported, by their modules."""
    try:
        files = [*sorted(folder.glob("*.py")), *sorted(folder.glob("[!._]*/**/*.py"))]
    except OSError:  # of a folder that goes meanwhile, as those of /proc do
        files = sorted(folder.glob("*.py"))
    for file in files[:_MOST_FILES]:
        words = file.relative_to(folder).with_suffix("").parts
        if all(map(str.isidentifier, words)):  # nothing imports it by any other name
            yield ".".join(words), file


def package_of_project(search_path: Sequence[str] | None = None, model: str = "") -> str:
    """`pytorch_lightning` or `lightning.pytorch`: that of the model, else of the user's files.

    Args:
        search_path: As `sys.path`, with the user's folder first.
        model: Its class, where it is known.

    Returns:
        Where nothing tells, one that is installed.
    """
    path = [str(Path.cwd()), *sys.path] if search_path is None else search_path
    if package := lightning_package(model, path) if model else "":
        return package
    read = dict(_own_names(Path(path[0])))
    imported = {it for names in read.values() for it in packages_in(names)}
    if len(imported) == 1:
        return imported.pop()
    classes = (f"{module}.{it}" for module, names in read.items() for it in names.definitions)
    models = (it for it in classes if imported and _is_model(it, path))
    if package := next(filter(None, (lightning_package(it, path) for it in models)), ""):
        return package
    return NEW if find_module(OLD, path)[0] is None and find_module(NEW, path)[0] else OLD


def packages_in(names: Names) -> set[str]:
    """Those of the two that a module surely imports."""
    needed = {it.module for it in names.needs if not it.module.startswith("lightning.fabric")}
    words = {it.partition(".")[0] for it in needed}
    return {NEW if word == "lightning" else OLD for word in words & {OLD, "lightning"}}


def of_project(text: str, search_path: Sequence[str] | None = None, model: str = "") -> str:
    """A text with the classes of Lightning in it as the project imports them."""
    if not _EITHER.search(text):
        return text
    return _EITHER.sub(package_of_project(search_path, model), text)


def _own_names(folder: Path) -> Iterator[tuple[str, Names]]:
    for module, file in own_files(folder):
        try:
            yield module, read_names(file)
        except ConfigError:  # it is told where the config names it
            continue


def _is_model(dotted: str, path: Sequence[str]) -> bool:
    found = locate(dotted, path)
    return found is not None and derives_from(found, "LightningModule", path) is True
