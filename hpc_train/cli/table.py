"""Columns of plain text, without any library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["table_lines"]


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The header and the rows; the last column is as long as it likes, so no line is wrapped."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in list(zip(*lines, strict=True))[:-1]]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        yield "  ".join([*cells, line[-1]]).rstrip()
