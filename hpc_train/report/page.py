"""A report as one page that needs nothing else: no network, no script, pictures as SVG."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hpc_train
from hpc_train.plan.hostlist import folded
from hpc_train.report.bench_table import BenchTable, bench_chart
from hpc_train.report.charts import Chart, line_chart
from hpc_train.report.compare import RunRow, compared
from hpc_train.report.gather import RunReport
from hpc_train.report.goodput import PARTS
from hpc_train.report.node_use import MEASURES
from hpc_train.report.series import Series
from hpc_train.report.text import is_logarithmic, number, percent
from hpc_train.runs.history_text import clock, duration

TEMPLATE = "page.html.j2"
SHOWN = 200_000  # characters of a diff
MOST_COMPARED = 6  # metrics that are drawn side by side


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """One run with its pictures."""

    report: RunReport
    timeline: list[dict[str, Any]]
    charts: list[Chart]
    pace: Chart | None


def render_page(reports: Sequence[RunReport]) -> str:
    """The whole page. Whatever a run says of itself is text and never markup."""
    rows = compared(reports) if len(reports) > 1 else []
    return _rendered(
        runs=[_run_page(report) for report in reports],
        compared=rows,
        compared_charts=_compared_charts(reports, rows),
        compared_metrics=list(dict.fromkeys(name for row in rows for name in row.metrics))[:12],
    )


def render_bench(table: BenchTable) -> str:
    """The same of a bench."""
    chart = bench_chart(table)
    return _rendered(bench=table, compared_charts=[chart] if chart else [])


def _rendered(**parts: Any) -> str:
    from hpc_train.report.templates import html_template

    filters = {"clock": clock, "duration": duration, "number": number, "percent": percent}
    template = html_template(Path(__file__).with_name(TEMPLATE), **filters, folded=folded)
    return template.render(
        {"bench": None, "runs": [], "compared": [], "compared_metrics": []} | parts,
        parts=PARTS,
        measures=MEASURES,
        version=hpc_train.__version__,
        made=clock(time.time()),
        shown=SHOWN,
    )


def _run_page(report: RunReport) -> RunPage:
    begins = [(f"{it.attempt}", float(it.first_step)) for it in report.status.attempts]
    starts = [
        (f"{it.attempt}", it.started - report.origin)
        for it in report.goodput.attempts
        if it.started is not None
    ]
    charts = [
        line_chart(series.name, [(series.name, series)], x_name="step", marks=begins)
        for series in report.metrics
    ]
    pace = report.throughput
    return RunPage(
        report=report,
        timeline=_timeline(report),
        charts=[chart for chart in charts if chart is not None],
        pace=line_chart(
            "steps/s", [("steps/s", pace)], x_name="second", marks=starts, from_zero=True
        )
        if pace
        else None,
    )


def _timeline(report: RunReport) -> list[dict[str, Any]]:
    """A row an attempt: where its parts stand, in percent of the time from the first to the last.

    Within an attempt the parts stand in sums: all evaluations behind all training.
    """
    times = report.goodput.attempts
    if not times:
        return []
    first = min(it.began for it in times)
    span = max(max(it.ended for it in times) - first, 1.0)
    order = ("queue", "preflight", "startup", "training", "evaluation", "saving", "lost", "ending")
    rows = []
    records = {record.attempt: record for record in report.status.attempts}
    for it in times:
        at, pieces = it.began - first, []
        for part in order:
            spent_s = it.seconds.get(part, 0.0)
            if spent_s > 0:
                left, width = 100 * at / span, 100 * spent_s / span
                pieces.append((part, round(left, 2), round(width, 2), duration(spent_s)))
            at += spent_s
        rows.append({"time": it, "record": records.get(it.attempt), "pieces": pieces})
    return rows


def _compared_charts(reports: Sequence[RunReport], rows: Sequence[RunRow]) -> list[Chart]:
    """The metrics that at least two of the runs have, drawn together."""
    named: dict[str, list[tuple[str, Series]]] = {}
    for report, row in zip(reports, rows, strict=bool(rows)):
        for series in report.metrics:
            named.setdefault(series.name, []).append((row.label, series))
    shared = {name: lines for name, lines in named.items() if len(lines) > 1}
    order = sorted(shared, key=lambda name: not any(is_logarithmic(s) for _, s in shared[name]))
    charts = [line_chart(name, shared[name], x_name="step") for name in order[:MOST_COMPARED]]
    return [chart for chart in charts if chart is not None]
