"""A line of the result, and how the table looks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.measure import BenchError, Compared
from benchmarks.places import Places

__all__ = ["Row", "memory_row", "print_benchmark", "print_header", "row_of"]

HEADER = ("what", "ours", "peer", "ratio", "CPU ratio", "target", "ok")
WIDTHS = (58, 9, 9, 6, 9, 7, 3)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One comparison.

    Attributes:
        ok: None for a row without a target, which is there to be looked at.
    """

    what: str
    ours: str
    peer: str
    ratio: str
    cpu_ratio: str = ""
    target: str = ""
    ok: bool | None = None


def row_of(what: str, compared: Compared, *, at_most: float | None = None) -> Row:
    """The row of two commands; the target is for the ratio by the clock."""
    return Row(
        what=what,
        ours=_ms(compared.ours.wall_s),
        peer=_ms(compared.peer.wall_s),
        ratio=f"{compared.wall_ratio:.2f}",
        cpu_ratio=f"{compared.cpu_ratio:.2f}",
        target="" if at_most is None else f"<= {at_most}",
        ok=None if at_most is None else compared.wall_ratio <= at_most,
    )


def memory_row(what: str, used_mb: float, *, at_most_mb: float) -> Row:
    """The row of the memory of our command, which has no peer."""
    return Row(
        what=what,
        ours=f"{used_mb:.0f} MB",
        peer="",
        ratio="",
        target=f"<= {at_most_mb:g} MB",
        ok=used_mb <= at_most_mb,
    )


def print_header() -> None:
    """The names of the columns."""
    _print(HEADER)
    _print(["-" * width for width in WIDTHS])


def print_benchmark(name: str, places: Places) -> int:
    """Print a benchmark's rows; how many of its targets are missed."""
    missed = 0
    try:
        for row in importlib.import_module(f"benchmarks.{name}").rows(places):
            _print_row(row)
            missed += row.ok is False
    except BenchError as error:
        _print_row(Row(what=f"{name}: not run", ours="", peer="", ratio=""))
        print(f"{name}: {error}", file=sys.stderr)
        missed += 1
    return missed


def _print_row(row: Row) -> None:
    """One line, at once: a benchmark takes a while."""
    verdict = "" if row.ok is None else "yes" if row.ok else "NO"
    _print([row.what, row.ours, row.peer, row.ratio, row.cpu_ratio, row.target, verdict])


def _print(cells: Iterable[str]) -> None:
    padded = (cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))
    print("| " + " | ".join(padded) + " |", flush=True)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"
