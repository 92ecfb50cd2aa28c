"""What a shell offers at TAB: runs, keys of the config, values, classes; nothing is imported."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from hpc_train.config.keys import TYPES
from hpc_train.errors import HpcTrainError
from hpc_train.runs.registry import folders

_NEWEST = 30  # ids of runs, before a first letter is typed
_MOST_FILES, _MOST_BYTES = 200, 500_000
_CLASS = re.compile(r"^class[ \t]+(\w+)[ \t]*(?:\(([^)]*)\))?[ \t]*:", re.MULTILINE)
_SKIPPED = re.compile(r"\.|__pycache__|runs\Z|venv|env\Z|node_modules|site-packages|build\Z|dist\Z")
# Of sections that are mappings of anything: what stands there most.
_BELOW = ("model.class_path=", "model.init_args.", "data.class_path=", "data.init_args.")
_CLASS_KEYS = ("class_path", "_target_")


def run_words(incomplete: str, runs_dir: Path | None) -> list[str]:
    """Names and ids of runs by the names of their folders; no file is opened."""
    names: set[str] = set()
    ids: set[str] = set()
    with contextlib.suppress(OSError, HpcTrainError):
        for folder in folders(runs_dir):
            here = {path for path in folder.iterdir() if not path.name.startswith(".")}
            names.update(path.name for path in here)
            for path in here:
                with contextlib.suppress(OSError), os.scandir(path) as inner:
                    ids.update(child.name for child in inner)
    known = sorted((run for run in ids if run[:1].isalnum()), reverse=True)
    offered = known if incomplete else known[:_NEWEST]
    return [word for word in (*sorted(names), *offered) if word.startswith(incomplete)]


def key_words(typed: Sequence[str], incomplete: str) -> list[str]:
    """Keys with their `=`, or the values of one.

    Args:
        typed: The words before. To bash `key=value` is three words, of which the last is offered
            alone; to zsh and fish it is one.
    """
    # click makes nothing of a sign alone.
    if not incomplete and typed and "=" not in typed[-1] and typed[-2:-1] != ["="]:
        return _values(typed[-1], "")
    if typed[-1:] == ["="] and len(typed) > 1:
        return _values(typed[-2], incomplete)
    key, sign, value = incomplete.partition("=")
    if sign:
        return [f"{key}={word}" for word in _values(key, value)]
    keys = (*(f"{key}=" for key in TYPES), *_BELOW)
    return sorted(word for word in keys if word.startswith(incomplete))


def _values(key: str, begun: str) -> list[str]:
    if key.rpartition(".")[2] in _CLASS_KEYS:
        return class_paths(Path.cwd(), begun, key.partition(".")[0])
    kind = TYPES.get(key, "")
    words = ["true", "false"] if kind == "bool" else re.findall(r"'([^']+)'", kind)
    return [word for word in words if word.startswith(begun)]


def class_paths(folder: Path, begun: str, section: str = "") -> list[str]:
    """Classes in the modules of a folder and of the folders in it, by their text.

    Args:
        begun: What is typed of it.
        section: For `data` those that say to be a DataModule, for `model` the others.
    """
    found: dict[str, bool] = {}
    for file in islice(_modules(folder), _MOST_FILES):
        module = ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        if not (module.startswith(begun) or begun.startswith(f"{module}.")):
            continue
        with contextlib.suppress(OSError), file.open("rb") as stream:
            text = stream.read(_MOST_BYTES).decode(errors="replace")
            for name, bases in _CLASS.findall(text):
                found[f"{module}.{name}"] = "DataModule" in bases
    wanted = {path for path, is_data in found.items() if is_data == (section == "data")}
    return sorted(path for path in wanted or found if path.startswith(begun))


def _modules(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        inner = [
            path for path in folder.iterdir() if path.is_dir() and not _SKIPPED.match(path.name)
        ]
        for place in chain([folder], sorted(inner)):
            yield from (path for path in sorted(place.glob("*.py")) if path.stem.isidentifier())
