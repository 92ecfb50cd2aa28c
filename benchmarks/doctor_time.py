"""How long a look at one machine takes, beside the import of torch that it contains."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from benchmarks.measure import compare, process
from benchmarks.places import REPOSITORY, Places
from benchmarks.rows import Row, row_of

PAIRS = 7
AT_MOST_S = 3.0


def rows(places: Places) -> Iterator[Row]:
    """`hpc-train doctor` against the bare import of torch; the target is in seconds."""
    ours = partial(process, [places.hpc_train, "doctor"], cwd=REPOSITORY)
    peer = partial(process, [places.python, "-c", "import torch"])
    compared = compare(ours, peer, pairs=PAIRS)
    row = row_of("hpc-train doctor : import torch", compared)
    ok = compared.ours.wall_s < AT_MOST_S
    yield dataclasses.replace(row, target=f"< {AT_MOST_S:g} s", ok=ok)
