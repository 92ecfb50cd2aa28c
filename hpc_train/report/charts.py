"""Line charts as SVG paths, with everything that is text left to HTML. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_train.report.series import Series
from hpc_train.report.text import is_logarithmic, number

WIDTH, HEIGHT = 1000, 200  # the picture is stretched to the page; its lines are not (CSS)
ROWS = 12  # of the table with the numbers


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One line of a chart."""

    label: str
    path: str
    last: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart: `marks` are (label, x in percent), `rows` are the numbers for who reads tables."""

    title: str
    said: str
    lines: tuple[Drawn, ...]
    marks: tuple[tuple[str, float], ...]
    top: str
    bottom: str
    left: str
    right: str
    x_name: str
    rows: tuple[tuple[str, ...], ...]
    logarithmic: bool


def line_chart(
    title: str,
    series: Sequence[tuple[str, Series]],
    *,
    x_name: str,
    marks: Sequence[tuple[str, float]] = (),
    from_zero: bool = False,
) -> Chart | None:
    """A chart of one series or several; None where none has a number.

    Args:
        series: Each with its label.
        marks: Where an attempt began: its label and x.
        from_zero: The picture begins at 0, as that of a rate should.
    """
    drawn = [(label, it) for label, it in series if it.least is not None]
    if not drawn:
        return None
    xs = [x for _, it in drawn for x, _ in it.points]
    ys = [y for _, it in drawn for _, y in it.points if y is not None]
    low_x, high_x, high = min(xs), max(xs), max(ys)
    low = min(0.0, *ys) if from_zero else min(ys)
    logarithmic = not from_zero and all(is_logarithmic(it) for _, it in drawn)
    scale = _Scale(low_x, high_x, low, high, logarithmic=logarithmic)
    lines = tuple(
        Drawn(label=label, path=scale.path(it.points), last=number(it.last)) for label, it in drawn
    )
    first = drawn[0][1]
    bad = f"; {first.bad} values are no numbers, the first at {number(first.first_bad)}"
    said = f"from {number(low)} to {number(high)} over {x_name} {number(low_x)} to {number(high_x)}"
    return Chart(
        title=title,
        said=said + (bad if first.bad else ""),
        lines=lines,
        marks=tuple((label, scale.percent(x)) for label, x in marks if low_x <= x <= high_x),
        top=number(high),
        bottom=number(low),
        left=number(low_x),
        right=number(high_x),
        x_name=x_name,
        rows=tuple(_rows(drawn)),
        logarithmic=logarithmic,
    )


class _Scale:
    """From numbers to places in the picture."""

    def __init__(
        self, low_x: float, high_x: float, low: float, high: float, *, logarithmic: bool
    ) -> None:
        self._map = math.log if logarithmic else float
        self._low_x, self._span_x = low_x, (high_x - low_x) or 1.0
        self._low = self._map(low)
        self._span = (self._map(high) - self._low) or 1.0

    def percent(self, x: float) -> float:
        return round(100 * (x - self._low_x) / self._span_x, 2)

    def path(self, points: Sequence[tuple[float, float | None]]) -> str:
        """`M` begins anew behind a gap."""
        words, pen = [], "M"
        for x, y in points:
            if y is None:
                pen = "M"
                continue
            left = round(WIDTH * (x - self._low_x) / self._span_x, 1)
            up = round(HEIGHT * (1 - (self._map(y) - self._low) / self._span), 1)
            words.append(f"{pen}{left:g} {up:g}")
            if pen == "M":  # so that a single point is seen
                words.append("h0")
            pen = "L"
        return "".join(words)


def _rows(drawn: Sequence[tuple[str, Series]]) -> list[tuple[str, ...]]:
    """Some points of each, at even distances, the first and the last among them."""
    rows: list[tuple[str, ...]] = []
    for label, series in drawn:
        count = len(series.points)
        places = sorted({round(n * (count - 1) / (ROWS - 1)) for n in range(ROWS)})
        told = [series.points[place] for place in places]
        rows += [(label, number(x), "no number" if y is None else number(y)) for x, y in told]
    return rows
