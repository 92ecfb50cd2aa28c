"""Relative paths among the arguments of model and data that are not where the job begins."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.config.class_kind import locate
from hpc_train.config.data_paths import argument_texts, is_absent, is_read
from hpc_train.config.modules import find_module
from hpc_train.config.specs import read_object
from hpc_train.config.words import did_you_mean

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

_FILE = re.compile(r"\.[A-Za-z]\w{0,7}$")
_OF_A_FOLDER = re.compile(r"root|dir|director(?:y|ies)|folder")
# With one of these in its module a class may make the path itself, or look whether it is there.
_MAKES = re.compile(
    r"download|mkdir|makedirs|urlretrieve|load_dataset|prepare_data|exists\(|is_file\(|is_dir\("
    r"|isfile|isdir|\bsave(?!_hyperparameters)|\bdump|to_csv|to_parquet|write|FileNotFoundError|OSError"
)
_MOST_NAMES = 1000  # of a folder, where a near one is looked for


def notes_on_relative_paths(loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    """A line for each path that the class does not make itself, as far as its module tells.

    Args:
        workdir: Where the job begins.
    """
    config = loaded.config
    if config.container.image or config.hosts:
        return
    for key, spec in (("model", config.model), ("data", config.data)):
        class_path, arguments = read_object(spec, key, loaded.origins)
        found = {
            f"{key}.init_args.{name}": text
            for name, text in argument_texts(_plain(arguments)).items()
            if _is_meant(name, text, workdir) and is_absent(str(workdir / text))
        }
        if found and not _may_make(class_path, workdir):
            for full, text in found.items():
                said = f"{loaded.origins.prefix(full)}{full} is {text}, which is not in {workdir}"
                near = _near(text, workdir) or "put it there, or write the whole path"
                yield f"{said}, from where the job takes relative paths: {near}"


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Without objects, whose classes are others."""
    return {name: it for name, it in arguments.items() if isinstance(it, (str, list))}


def _is_meant(name: str, text: str, workdir: Path) -> bool:
    """Whether a text is a relative path to be read: `org/name` may be a model of a hub."""
    if text.startswith(("/", "~", "-")) or text in (".", "..") or not is_read(name, text):
        return False
    first, slash, _ = text.partition("/")
    is_there = bool(slash) and (first in (".", "..") or (workdir / first).is_dir())
    is_path = bool(_FILE.search(text)) or bool(_OF_A_FOLDER.search(name)) or is_there
    return is_path and " " not in text


def _may_make(class_path: str, workdir: Path) -> bool:
    """Whether the module of a class speaks of making files, or is not found."""
    found = locate(class_path, [str(workdir), *sys.path])
    module = find_module(found.module, [str(workdir), *sys.path])[0] if found else None
    if module is None or module.file is None or not module.file.is_relative_to(workdir):
        return True
    return _MAKES.search(module.file.read_text("utf-8", "replace")) is not None


def _near(text: str, workdir: Path) -> str:
    """`did you mean 'data/train.pt'?`, of what lies beside where it would be."""
    folder, name = (workdir / text).parent, Path(text).name
    try:
        with os.scandir(folder) as entries:
            names = sorted(it.name for it, _ in zip(entries, range(_MOST_NAMES), strict=False))
    except OSError:  # there is no such folder, or it may not be listed
        return ""
    return did_you_mean(name, names, prefix=text.removesuffix(name), cutoff=0.8)
