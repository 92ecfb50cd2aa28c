"""What a user waits for the list of commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.measure import BenchError, compare, process
from benchmarks.places import Places
from benchmarks.rows import Row, row_of

PAIRS = 21
TARGET = 0.7


def rows(places: Places) -> Iterator[Row]:
    """`hpc-train --help` against each peer's; the target is for torchx."""
    ours = partial(process, [places.hpc_train, "--help"])
    for name, at_most in (("torchx", TARGET), ("seml", None)):
        try:
            peer = partial(process, [places.peer(name), "--help"])
        except BenchError as error:
            if at_most is not None:
                raise
            print(error, file=sys.stderr)  # pip may be unable to install both into one venv
            continue
        compared = compare(ours, peer, pairs=PAIRS)
        yield row_of(f"hpc-train --help : {name} --help", compared, at_most=at_most)
