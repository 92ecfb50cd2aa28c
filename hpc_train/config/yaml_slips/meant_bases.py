"""The file that a config means to build on, and names from another folder than its own."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from pathlib import Path

_ENDINGS = (".yaml", ".yml")
_MOST_ABOVE = 3


def base_elsewhere(name: str, config: Path, *, key: str, is_alone: bool) -> str:
    """What to write for a base that is not there as it is written; empty where no file is meant.

    Args:
        name: As it was written.
        config: The file that it stands in, from whose folder it is looked for.
        key: Below which it stands.
        is_alone: Whether no other stands there.
    """
    here = config.parent.resolve()
    for file in _meant(Path(name), here):
        if not file.is_file() or file.resolve() == config.resolve():
            continue
        written = os.path.relpath(file.resolve(), here)
        if Path(name).suffix not in _ENDINGS and file.suffix == ".yaml":
            written = written.removesuffix(".yaml")
        if written == name:
            continue
        write = (
            f"write {key}: {written}"
            if is_alone and key == "base"
            else f"write {written} in its place"
        )
        return f"{write} (a path begins at the folder of {config.name})"
    return ""


def _meant(name: Path, here: Path) -> Iterator[Path]:
    """From the working folder, beside the config, and in folders above it."""
    names = [name] if name.suffix in _ENDINGS else [Path(f"{name}{it}") for it in _ENDINGS]
    for one in names:
        yield Path.cwd() / one
        yield from (it / one for it in here.parents[:_MOST_ABOVE])
        yield here / one.name
        yield from (it / one.name for it in here.parents[:1])
