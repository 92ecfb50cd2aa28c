"""docs/licences.md: what hpc-train needs at run time, and under which licences.

`python -m tests.licences_page` writes the page from the metadata of what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE = Path(__file__).parents[1] / "docs" / "licences.md"
BEGIN, END = "<!-- table: make licences -->\n", "<!-- end of the table -->\n"
# GPL and AGPL in any wording; the LGPL may be used from a program under another licence.
FORBIDDEN = re.compile(
    r"(?<!L)\bA?GPL|(?<!lesser )\b(affero )?general public licen[sc]e", re.IGNORECASE
)


@dataclass(frozen=True)
class Library:
    """A distribution that an installation brings."""

    name: str
    licence: str
    needed_by: str


def libraries(root: str = "hpc-train") -> list[Library]:
    """What `pip install hpc-train` brings on this machine, by name; `hpc-train` itself left out."""
    found: dict[str, Library] = {}
    seen: set[Requirement] = set()
    waiting = [(wanted, "") for wanted in required(Requirement(root))]
    while waiting:
        wanted, by = waiting.pop(0)
        if wanted in seen:
            continue
        seen.add(wanted)
        name = canonicalize_name(wanted.name)
        found.setdefault(name, Library(name, licence_of(name), by))
        waiting += [(next_one, name) for next_one in required(wanted)]
    return sorted(found.values(), key=lambda one: one.name)


def required(of: Requirement) -> Iterator[Requirement]:
    """What a distribution asks for here, with the extras that are wanted of it."""
    for line in metadata.requires(of.name) or []:
        wanted = Requirement(line)
        extras = {"", *of.extras}
        counts = [wanted.marker is None or wanted.marker.evaluate({"extra": one}) for one in extras]
        if any(counts) and installed(wanted.name):
            yield wanted


def installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def licence_of(name: str) -> str:
    """By its SPDX expression, its classifiers, or the first line of its licence field."""
    said = metadata.metadata(name)
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in said.get_all("Classifier") or []
        if line.startswith("License :: ") and not line.endswith(":: OSI Approved")
    ]
    field = (said.get("License") or "").strip().splitlines()
    short = field[0] if field and len(field[0]) < 60 else ""
    return said.get("License-Expression") or ", ".join(classifiers) or short


def page(text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    rows = "".join(
        f"| {one.name} | {one.licence} | {one.needed_by or 'hpc-train'} |\n" for one in libraries()
    )
    head = "| library | licence | asked for by |\n|---|---|---|\n"
    return f"{before}{BEGIN}\n{head}{rows}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
