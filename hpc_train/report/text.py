"""A report as a person reads it on a terminal: lines that fit a width, bars and sparklines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpc_train.plan.states import Outcome
from hpc_train.report.compare import RunRow
from hpc_train.report.gather import RunReport
from hpc_train.report.goodput import GOOD, PARTS
from hpc_train.report.node_use import MEASURES, NodeUse
from hpc_train.report.series import Series
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.history_text import STATE_COLORS, clock, duration, shortened

SPARKS = "▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉"
MOST_METRICS = 6
MOST_NODES = 16
MOST_ATTEMPTS = 20
PART_COLORS = {**dict.fromkeys(PARTS, "yellow"), **dict.fromkeys(GOOD, "green"), "lost": "red"}


@dataclass(frozen=True)
class Line:
    """One line, and how it is shown where there are colours."""

    text: str = ""
    color: str | None = None
    bold: bool = False


def report_lines(report: RunReport, width: int) -> Iterator[Line]:
    """All of one run, no line longer than `width`."""
    for line in _all_lines(report, width):
        yield Line(shortened(line.text, width), line.color, line.bold)


def _all_lines(report: RunReport, width: int) -> Iterator[Line]:
    status = report.status
    why = f": {status.reason}" if status.reason else ""
    head = f"{status.name}  {status.state.value}{why}"
    for line in textwrap.wrap(head, width, subsequent_indent="  ")[:3]:
        yield Line(line, STATE_COLORS[status.state], bold=True)
    yield Line(f"  run       {status.run}")
    yield Line(f"  {_extent(report)}")
    yield from _attempts(report, width)
    yield from _goodput(report, width)
    yield from _metrics(report, width)
    yield from _nodes(report.nodes, width)
    yield from _usage(report, width)
    for note in (*report.goodput.notes, *report.missing):
        yield from (Line(text) for text in _wrapped(note, width, "  note      "))


def _extent(report: RunReport) -> str:
    attempts = len(report.status.attempts)
    parts = [f"step {report.status.step}", f"{attempts} attempt{'' if attempts == 1 else 's'}"]
    if report.ranks:
        parts.append(f"{report.ranks} rank{'' if report.ranks == 1 else 's'}")
    return f"{'wall':<9} {duration(report.goodput.wall_s)}, {', '.join(parts)}"


def _attempts(report: RunReport, width: int) -> Iterator[Line]:
    attempts = report.status.attempts
    if not attempts:
        return
    yield Line()
    yield Line("attempts", bold=True)
    if len(attempts) > MOST_ATTEMPTS:
        yield Line(f"  the newest {MOST_ATTEMPTS} of {len(attempts)}; all with --html or --json")
    for record in attempts[-MOST_ATTEMPTS:]:
        yield from _attempt(report, record, width)


def _attempt(report: RunReport, record: AttemptRecord, width: int) -> Iterator[Line]:
    times = [it for it in report.goodput.attempts if it.attempt == record.attempt]
    lasted = f" after {duration(times[0].ended - record.started)}" if times else ""
    how = record.outcome.value.replace("_", " ") if record.outcome else _open_word(report, record)
    steps = f"steps {record.first_step} to {record.first_step + times[0].steps if times else 0}"
    lost = f", {record.steps_lost} lost" if record.steps_lost else ""
    color = None if record.outcome in (None, Outcome.COMPLETED) else "yellow"
    yield Line(f"  {record.attempt:<3} {clock(record.started)}  {how}{lasted}", color)
    rate = times[0].steps_per_s if times else None
    pace = f", {number(rate)} steps/s" if rate else ""
    yield Line(f"      {steps}{lost}{pace}")
    cause = record.reason if record.outcome not in (None, Outcome.COMPLETED) else ""
    if cause:
        yield from (Line(text) for text in _wrapped(cause, width, "      "))


def _open_word(report: RunReport, record: AttemptRecord) -> str:
    is_over = report.status.state.ended or record.ended is not None
    return "left no end," if is_over else "running,"


def _goodput(report: RunReport, width: int) -> Iterator[Line]:
    shares = report.goodput
    if not shares.wall_s:
        return
    held = shares.device_seconds
    hours = sum(held.values()) / 3600
    yield Line()
    said = f"{percent(shares.share)} of the wall time, {percent(shares.device_share)} of"
    for text in _wrapped(f"{said} {number(hours)} {report.device} hours", width, "goodput  "):
        yield Line(text, bold=True)
    room = min(50, width - 45)
    yield Line(f"{'':{13 + max(0, room + 1)}}{'time':>11}   wall {report.device:>7}")
    for part, spent_s in shares.seconds.items():
        if spent_s <= 0:
            continue
        share = spent_s / shares.wall_s
        bar = f"{_bar(share, room):<{room}} " if room >= 5 else ""
        of_held = percent(held[part] / sum(held.values())) if part in held and hours else "-"
        text = f"  {part:<10} {bar}{duration(spent_s):>11} {percent(share):>6} {of_held:>7}"
        yield Line(text, PART_COLORS[part])


def _metrics(report: RunReport, width: int) -> Iterator[Line]:
    pace = report.throughput
    if not report.metrics and pace is None and not report.steps_per_s:
        return
    yield Line()
    yield Line("metrics and throughput", bold=True)
    chosen = _most_telling(report.metrics)
    names = [*(series.name for series in chosen), "steps/s"]
    label = min(max(map(len, names)), max(8, width // 4))
    room = max(8, min(40, width - label - (36 if width >= 70 else 14)))
    for series in chosen:
        told = [number(series.last), *([f"{series.bad} not a number"] if series.bad else [])]
        told += [f"least {number(series.least)}", f"most {number(series.most)}"]
        name = shortened(series.name, label)
        text = f"  {name:<{label}} {sparkline(series, room)} {told[0]}"
        for more in told[1:]:
            text += f"  {more}" if len(text) + 2 + len(more) <= width else ""
        yield Line(text)
    if len(report.metrics) > len(chosen):
        yield Line(f"  {len(report.metrics) - len(chosen)} more with --html or --json")
    if report.steps_per_s:
        line = sparkline(pace, room, from_zero=True) if pace else " " * room
        text = f"  {'steps/s':<{label}} {line} {number(report.steps_per_s)}"
        samples = f", {number(report.samples_per_s)} samples/s" if report.samples_per_s else ""
        yield Line(text + samples if len(text + samples) <= width else text)


def _most_telling(metrics: Sequence[Series]) -> list[Series]:
    ordered = sorted(metrics, key=lambda it: ("loss" not in it.name, "val" not in it.name))
    return ordered[:MOST_METRICS]


def _nodes(nodes: Sequence[NodeUse], width: int) -> Iterator[Line]:
    if not nodes:
        return
    odd = [node for node in nodes if node.outliers]
    shown = nodes if len(nodes) <= MOST_NODES else odd[:MOST_NODES]
    yield Line()
    said = f", {len(odd)} of {len(nodes)} unlike the others (*)" if odd else ""
    yield Line(f"nodes{said}", bold=True)
    if len(shown) < len(nodes):
        yield Line(f"  {len(nodes) - len(shown)} more with --html or --json")
    label = max([6, *(len(node.node) for node in shown)])
    label = min(label, max(6, width // 3))
    columns = [name for name in MEASURES if any(name in node.values for node in nodes)]
    heads = {name: f"{MEASURES[name].title} {MEASURES[name].unit}" for name in columns}
    while len(columns) > 1 and label + 2 + sum(len(heads[name]) + 3 for name in columns) > width:
        columns.pop()
    yield Line(f"  {'':<{label}} " + "  ".join(f"{heads[name]} " for name in columns))
    for node in shown:
        cells = []
        for name in columns:
            value = number(node.values[name]) if name in node.values else "-"
            mark = "*" if name in node.outliers else " "
            cells.append(f"{value:>{len(heads[name])}}{mark}")
        text = f"  {shortened(node.node, label):<{label}} {'  '.join(cells)}".rstrip()
        yield Line(text, "yellow" if node.outliers else None)


def _usage(report: RunReport, width: int) -> Iterator[Line]:
    if not report.usage:
        return
    yield Line()
    yield Line("asked and used", bold=True)
    for row in report.usage:
        share = f" ({percent(row.share)})" if row.share is not None else ""
        text = f"asked {row.asked}, used {row.used}{share}"
        yield from (Line(line) for line in _wrapped(text, width, f"  {row.what:<13} "))
        if row.advice:
            advice = _wrapped(row.advice, width, f"  {'':<11}-> ")
            yield from (Line(line, "cyan") for line in advice)


def comparison_table(rows: Sequence[RunRow]) -> tuple[list[str], list[list[str]]]:
    """Header and cells; the metrics are those that all runs have, at most three."""
    common = [name for name in rows[0].metrics if all(name in row.metrics for row in rows)]
    chosen = sorted(common, key=lambda name: ("val" not in name, "loss" not in name))[:3]
    header = ["RUN", "STATE", "RANKS", "STEPS/S", "SAMPLES/S", "EFFICIENCY", "GOODPUT"]
    cells = [
        [
            row.label,
            row.state,
            str(row.ranks or "-"),
            number(row.steps_per_s),
            number(row.samples_per_s),
            percent(row.efficiency),
            percent(row.goodput),
            *(number(row.metrics[name]) for name in chosen),
        ]
        for row in rows
    ]
    return [*header, *(name.upper() for name in chosen)], cells


def sparkline(series: Series, width: int, *, from_zero: bool = False) -> str:
    """The series as a line of blocks; a blank where there is no number.

    Args:
        from_zero: A block's height is the number itself, as of a rate.
    """
    if series.least is None or series.most is None:
        return " " * width
    scale = math.log if is_logarithmic(series) and not from_zero else float
    least, most = scale(0 if from_zero else series.least), scale(series.most)
    span = (most - least) or 1.0
    first, last = series.points[0][0], series.points[-1][0]
    cells: list[list[float | None]] = [[] for _ in range(width)]
    for x, y in series.points:
        place = (x - first) / (last - first) if last > first else 0.0
        cells[min(width - 1, int(place * width))].append(y)
    line, block = "", " "
    for cell in cells:  # without a value of its own it is as the one before
        known = [y for y in cell if y is not None]
        if known:
            level = (scale(sum(known) / len(known)) - least) / span
            block = SPARKS[min(7, max(0, int(level * 8)))]
        elif cell:
            block = " "
        line += block
    return line


def is_logarithmic(series: Series) -> bool:
    """Whether a picture of it says more by powers of ten: a loss that falls from 3 to 0.001."""
    least, most = series.least, series.most
    is_wide = least is not None and most is not None and least > 0 and most > 50 * least
    return is_wide and "loss" in series.name


def _bar(share: float, width: int) -> str:
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def _wrapped(text: str, width: int, head: str) -> list[str]:
    indent = " " * min(len(head), width // 3)
    return textwrap.wrap(text, width, initial_indent=head, subsequent_indent=indent)


def number(value: float | None) -> str:
    """Four digits at most; a dash for what is not known."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 1e9 or size < 100:
        return f"{value:.4g}"
    if size >= 10_000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}".removesuffix(".0") if size < 1000 else f"{value:.0f}"


def percent(share: float | None) -> str:
    """`87 %`; small ones with a digit."""
    if share is None:
        return "-"
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"
