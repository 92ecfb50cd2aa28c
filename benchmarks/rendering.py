"""What making a script costs beyond the two libraries that it cannot do without."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.measure import compare, process
from benchmarks.places import REPOSITORY, Places
from benchmarks.rows import Row, row_of

PAIRS = 21
TARGET = 2.0


def rows(places: Places) -> Iterator[Row]:
    """`hpc-train render` against the bare import of click and omegaconf."""
    ours = partial(process, [places.hpc_train, "render", "configs/digits.yaml"], cwd=REPOSITORY)
    peer = partial(process, [places.python, "-c", "import click, omegaconf"])
    compared = compare(ours, peer, pairs=PAIRS)
    yield row_of("hpc-train render : import click, omegaconf", compared, at_most=TARGET)
