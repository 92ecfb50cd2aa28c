"""Groups of Hydra in a list of defaults: `- model: small` chooses the file model/small.yaml.

Source: Hydra's page "The Defaults List".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Group(NamedTuple):
    """`- model: small` in a list of defaults."""

    name: str
    choice: str
    file: Path
    place: str  # of the list
    kept: str  # the files that stand beside it, as a list in a line


def groups_of(names: Sequence[Any], folder: Path, place: str) -> list[Group]:
    """The groups among what a list of defaults holds; a choice that is null chooses nothing.

    Args:
        names: The elements.
        folder: Of the file that has the list.
        place: Of the list, for messages.
    """
    kept = ", ".join(it for it in names if isinstance(it, str) and it != "_self_")
    found = []
    for key, choice in ((k, v) for it in names if isinstance(it, Mapping) for k, v in it.items()):
        if not is_group({key: choice}, folder):
            continue
        words = re.sub(r"^(?:override|optional)\s+", "", str(key))
        name = words.lstrip("/").partition("@")[0]
        for one in choice if isinstance(choice, list) else [choice]:
            file = folder / name / f"{str(one).removesuffix('.yaml')}.yaml"
            found += [Group(name, str(one), file, place, kept)] if one is not None else []
    return found


def is_group(element: object, folder: Path) -> bool:
    """Whether an element of defaults is Hydra's: a name that chooses a file of its folder."""
    if not isinstance(element, Mapping) or not element:
        return False
    return not any(
        str(it).endswith((".yaml", ".yml")) and not (folder / str(key) / str(it)).is_file()
        for key, it in element.items()
    )
