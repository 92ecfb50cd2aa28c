"""A file of a model's or the data's class in a script's place: the config that trains it."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.class_kind import derives_from, locate

_KEYS = {"LightningModule": "model", "LightningDataModule": "data"}
_MOST = 50  # configs of a folder


def config_of_classes(file: Path, names: Sequence[str], search_path: Sequence[str]) -> str:
    """What to submit for classes of a file: a config that names one, or what a config is to say.

    Args:
        file: As it was found.
        names: Of its classes.
        search_path: As `sys.path`.
    """
    dotted = _module(file)
    path = [str(Path.cwd()), *search_path]
    keys: dict[str, str] = {}
    for name in names if dotted else ():
        found = locate(f"{dotted}.{name}", path)
        wanted = [it for it in _KEYS if found and derives_from(found, it, path)]
        for it in wanted:
            keys.setdefault(_KEYS[it], f"{dotted}.{name}")
    for config, name in itertools.product(_configs() if keys else (), keys.values()):
        if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", _text(config)):
            return f"submit {shlex.quote(str(config))}, which names its {name}"
    lines = [f"{key}: {{class_path: {name}}}" for key, name in keys.items()]
    return f"submit a config that names its classes: {' and '.join(lines) or 'class_path: ...'}"


def _module(file: Path) -> str:
    """The module that the file is in the folder of the submission; empty where it is none."""
    here = Path.cwd().resolve()
    words = file.relative_to(here).with_suffix("").parts if file.is_relative_to(here) else ()
    return ".".join(words) if all(it.isidentifier() for it in words) else ""


def _configs() -> Iterator[Path]:
    files = (it for folder in (Path(), Path("configs")) for it in sorted(folder.glob("*.y*ml")))
    return itertools.islice(files, _MOST)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
