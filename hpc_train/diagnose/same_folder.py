"""Errors of files below one folder -> one sentence: as a rule their file system has failed."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING

from hpc_train.diagnose.rules import MAX_SAYINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hpc_train.diagnose.rules import Evidence, Failure

_RULES = ("io_error",)
_BEFORE = ": /"


def with_folder(failure: Failure) -> Failure:
    """Return a failure of several files with the folder that they share and their number."""
    if failure.name not in _RULES or not failure.others:
        return failure
    said = [one.cause.partition(_BEFORE) for one in (failure, *failure.others)]
    files = {f"/{file}" for _, found, file in said if found}
    folder = posixpath.commonpath([posixpath.dirname(file) for file in files]) if files else "/"
    if len(files) < 2 or folder == "/":
        return failure
    both = (failure, *failure.others)
    count = f"{'at least ' * (len(both) >= MAX_SAYINGS)}{len(files)} files under {folder}"
    return replace(
        failure,
        cause=f"{said[0][0]}: {count}",
        times=failure.times + failure.alike,
        alike=0,
        others=(),
        firsts=_firsts(both),
        hosts=tuple(sorted({host for one in both for host in one.hosts})),
        ranks=frozenset().union(*(one.ranks for one in both)),
        labels=frozenset().union(*(one.labels for one in both)),
        nodes=frozenset().union(*(one.nodes for one in both)),
    )


def _firsts(failures: Iterable[Failure]) -> tuple[Evidence, ...]:
    """The first line of each file."""
    found: dict[str, Evidence] = {}
    for place in (place for one in failures for place in one.firsts):
        known = found.setdefault(place.file, place)
        if place.line < known.line:
            found[place.file] = place
    return tuple(found.values())
