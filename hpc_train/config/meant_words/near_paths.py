"""The file or folder that may be meant by the path of none, as far as this machine has it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.words import near_words

_MOST_NAMES = 1000  # of a folder, where a near one is looked for
_MOST_PARTS = 20
_CUTOFF = 0.8


def meant_path(text: str, folder: Path) -> str:
    """`did you mean 'data/train.pt'?`; empty where nothing near is there.

    Args:
        text: The path, absolute or relative.
        folder: Where a relative one begins.
    """
    parts = Path(text).parts
    if not 0 < len(parts) <= _MOST_PARTS or "\0" in text or text.startswith("~"):
        return ""
    found = [*dict.fromkeys(_near(Path(), folder, parts))]
    found = _without_ups(parts, folder) or found or _one_below(Path(text), folder)
    found = found or _above(Path(text), folder)
    return f"did you mean {' or '.join(repr(str(it)) for it in found[:2])}?" if found else ""


def path_from(text: str, beside: Path, folder: Path) -> str:
    """The same file as `text` names in a config's folder, as a path that begins in another folder.

    Empty where that folder has none.
    """
    whole = Path(os.path.normpath((folder / beside).absolute() / text))
    return os.path.relpath(whole, folder) if text and os.path.lexists(whole) else ""


def _without_ups(parts: tuple[str, ...], folder: Path) -> list[Path]:
    """`data/x.csv` for `../data/x.csv`, as it is written in a config below the project's folder."""
    ups = next((at for at, it in enumerate(parts) if it != ".."), 0)
    rest = Path(*parts[ups:])
    return [rest] if ups and os.path.lexists(folder / rest) else []


def _above(path: Path, folder: Path) -> list[Path]:
    """`../x.csv` for the `x.csv` of a job that begins in a folder of the project."""
    above = Path("..") / path
    is_file = bool(path.suffix) and not path.is_absolute() and path.parts[:1] != ("..",)
    return [above] if is_file and (folder / above).is_file() else []


def _near(begun: Path, folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Paths that are there and whose names are the parts, or near to them."""
    if not parts:
        yield begun
        return
    name, *rest = parts
    whole = folder / begun / name
    if whole.is_dir() if rest else os.path.lexists(whole):
        yield from _near(begun / name, folder, tuple(rest))
        return
    for it in near_words(name, _names(folder / begun, name), cutoff=_CUTOFF):
        if not rest or (folder / begun / it).is_dir():
            yield from _near(begun / it, folder, tuple(rest))


def _names(folder: Path, name: str) -> list[str]:
    """The names in a folder but for those that differ in a number: `7.png` is no slip for `6.png`.

    Empty where there is no such folder, or it may not be listed.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(it.name for it, _ in zip(entries, range(_MOST_NAMES), strict=False))
    except OSError:
        return []
    return [it for it in names if _without_numbers(it) != _without_numbers(name)]


def _without_numbers(name: str) -> str:
    return re.sub(r"[-_]?\d+", "", name)


def _one_below(path: Path, folder: Path) -> list[Path]:
    """The one file of that name and ending in a folder beside where it was looked for."""
    above = path.parent
    if not path.suffix or path.is_absolute():
        return []
    names = [it for it in _names(folder / above, path.name) if not it.startswith(".")]
    found = [above / it / path.name for it in names if (folder / above / it / path.name).is_file()]
    return found if len(found) == 1 else []
