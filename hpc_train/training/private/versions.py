"""Which versions of the libraries the private names were tried with, and which package to import.

Imports none of the libraries.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

# The oldest and the newest, see docs/versions.md. pyproject.toml has the same bounds.
TRIED = {
    "torch": ("2.6", "2.15"),
    "pytorch-lightning": ("2.5", "2.6"),
    "lightning": ("2.5", "2.6"),
    "torchmetrics": ("1.4", "1.9"),
    "submitit": ("1.5.4", "1.5"),
}


LIGHTNING_PACKAGES = ("pytorch_lightning", "lightning.pytorch")
_in_use: list[str] = []


def use_package(name: str) -> None:
    """Decide it by the first Trainer that is made, since a script may import both."""
    _in_use.append(name)


def lightning_package(imported: Container[str] = sys.modules) -> str:
    """Which of Lightning's two packages this process uses; their classes are not the same.

    Returns:
        `lightning.pytorch` where a script has imported that one alone, or it alone is installed,
        else `pytorch_lightning`.
    """
    if _in_use:
        return _in_use[0]
    packages = ("pytorch_lightning", "lightning")
    found = [name for name in packages if name in imported] or list(filter(find_spec, packages))
    return "lightning.pytorch" if found == ["lightning"] else "pytorch_lightning"


def untried_versions(installed: Callable[[str], str] = version) -> str:
    """One line that names what is older or newer than the contracts were tried with; "" if none."""
    words = []
    for name, (oldest, newest) in TRIED.items():
        try:
            found = installed(name)
        except PackageNotFoundError:
            continue
        numbers, least, most = map(_numbers, (found, oldest, newest))
        is_older = numbers[: len(least)] < least
        if is_older or numbers[: len(most)] > most:
            age = "older" if is_older else "newer"
            span = f"{oldest} to {newest}.x"
            words.append(f"{name} {found} is {age} than what this was tried with ({span})")
    if not words:
        return ""
    return f"{'; '.join(words)}: a run may fail, or not go on exactly where it stopped"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]
