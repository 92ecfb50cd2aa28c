"""Series of numbers over steps or time: read, thinned out, described. NaN and gaps are kept."""

from __future__ import annotations

import csv
import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hpc_train.report.goodput import AttemptTime
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_progress

POINTS = 600  # of one series in a picture: least and most of each of half as many buckets
POINTS_IN_ALL = 30_000  # over all metrics of a run, so that a page stays small
HIDDEN = ("step", "epoch")


@dataclass(frozen=True, kw_only=True)
class Series:
    """One metric.

    Attributes:
        points: (x, y), thinned out; y is None where there are only NaNs or infinities.
        count: Values before thinning, NaNs included.
        bad: How many are NaN or infinite, the first at `first_bad`.
    """

    name: str
    points: tuple[tuple[float, float | None], ...]
    count: int
    last: float | None
    least: float | None
    most: float | None
    bad: int = 0
    first_bad: float | None = None


def read_metrics(run: RunDir) -> list[Series]:
    """Every metric of metrics.csv over the optimizer steps; empty where there is no such file.

    A torn line, a word in a number's place and a cell that is empty are passed over.
    """
    steps: list[float] = []
    try:
        with run.metrics_csv.open(encoding="utf-8", errors="replace", newline="") as stream:
            rows = csv.reader(line.replace("\0", "") for line in stream)
            names = next(rows, [])
            columns: list[tuple[list[float], list[float]]] = [([], []) for _ in names]
            own = [n for n, name in enumerate(names) if name not in HIDDEN]
            place = names.index("step") if "step" in names else -1
            width = len(names)
            for row in rows:
                if place < 0 or len(row) != width:
                    continue
                try:
                    step = float(row[place])
                except ValueError:
                    continue
                for n in own:
                    if row[n]:
                        try:
                            value = float(row[n])
                        except ValueError:
                            continue
                        steps, values = columns[n]
                        steps.append(step)
                        values.append(value)
    except (OSError, csv.Error):
        return []
    told = [(names[n], *columns[n]) for n in own if columns[n][0]]
    points = max(20, min(POINTS, POINTS_IN_ALL // max(1, len(told))))
    return [thinned(name, xs, ys, points) for name, xs, ys in told]


def thinned(name: str, xs: Sequence[float], ys: Sequence[float], points: int = POINTS) -> Series:
    """The series by the least and the most of each bucket of x, so that no peak is lost.

    Args:
        xs: Ascending, as long as `ys`.
        points: At most so many, about.
    """
    finite = [y for y in ys if math.isfinite(y)]
    bad = len(ys) - len(finite)
    return Series(
        name=name,
        points=tuple(_buckets(xs, ys, points) if len(xs) > points else _all(xs, ys)),
        count=len(ys),
        last=ys[-1] if ys and math.isfinite(ys[-1]) else None,
        least=min(finite, default=None),
        most=max(finite, default=None),
        bad=bad,
        first_bad=next((x for x, y in zip(xs, ys, strict=True) if not math.isfinite(y)), None)
        if bad
        else None,
    )


def _all(xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float | None]]:
    return [(x, y if math.isfinite(y) else None) for x, y in zip(xs, ys, strict=True)]


def _buckets(
    xs: Sequence[float], ys: Sequence[float], points: int
) -> list[tuple[float, float | None]]:
    count = max(1, points // 2)
    lowest, span = xs[0], (xs[-1] - xs[0]) or 1.0
    edges = [bisect_left(xs, lowest + span * n / count) for n in range(count)] + [len(xs)]
    found: list[tuple[float, float | None]] = []
    for start, end in itertools.pairwise(edges):
        if start >= end:
            continue
        part = range(start, end)
        finite = [n for n in part if math.isfinite(ys[n])]
        if not finite:
            found.append((xs[start], None))
            continue
        least, most = min(finite, key=ys.__getitem__), max(finite, key=ys.__getitem__)
        found += [(xs[n], ys[n]) for n in sorted({least, most})]
    return found


def throughput(run: RunDir, attempts: Sequence[AttemptTime], origin: float) -> Series | None:
    """Steps a second over the seconds since `origin`, all attempts in one line with gaps between.

    None where rank 0 left no progress.
    """
    xs: list[float] = []
    ys: list[float] = []
    for attempt in attempts:
        progress = read_progress(run.attempt(attempt.attempt))
        pairs = list(itertools.pairwise(progress))
        told = [(b[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in pairs if b[0] > a[0]]
        told = [(at, rate) for at, rate in told if rate >= 0]  # a clock or a damaged line
        if told and xs:
            xs.append(max(xs[-1], told[0][0] - origin))
            ys.append(math.nan)
        for at, rate in told:
            xs.append(max(at - origin, xs[-1] if xs else 0.0))
            ys.append(rate)
    if not xs:
        return None
    made = thinned("steps/s", xs, ys)
    finite = [y for y in ys if math.isfinite(y)]
    return replace(made, count=len(finite), bad=0, first_bad=None)
