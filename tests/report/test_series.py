"""Metrics as they are read and thinned out: peaks, NaN, gaps and torn lines."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from hpc_train.report.charts import line_chart
from hpc_train.report.series import read_metrics, thinned
from hpc_train.report.text import sparkline
from tests.report.made import make_run

NAN = math.nan


@pytest.mark.parametrize("count", [1, 2, 599, 600, 601, 50_000])
def test_thinning_keeps_the_ends_the_peaks_and_the_order(count: int) -> None:
    rng = random.Random(count)
    xs = [float(n) for n in range(count)]
    ys = [rng.random() for _ in xs]
    ys[rng.randrange(count)], ys[rng.randrange(count)] = 9.0, -9.0
    series = thinned("loss", xs, ys)
    told = [x for x, _ in series.points]
    assert len(told) <= 602
    assert told == sorted(told)
    assert (series.least, series.most, series.last) == (min(ys), max(ys), ys[-1])
    assert {min(ys), max(ys)} <= {y for _, y in series.points}
    assert series.count == count


def test_nan_and_infinity_are_gaps_that_are_counted(tmp_path: Path) -> None:
    series = thinned("loss", [0, 1, 2, 3, 4], [1.0, NAN, math.inf, 2.0, NAN])
    assert series.points == ((0, 1.0), (1, None), (2, None), (3, 2.0), (4, None))
    assert (series.bad, series.first_bad, series.last) == (3, 1, None)
    chart = line_chart("loss", [("loss", series)], x_name="step")
    assert chart is not None
    assert chart.lines[0].path.count("M") == 2, "the line is broken at the gap"
    assert "3 values are no numbers, the first at 1" in chart.said


def test_a_series_without_a_number_has_no_chart_and_a_blank_sparkline() -> None:
    series = thinned("loss", [0, 1], [NAN, NAN])
    assert line_chart("loss", [("loss", series)], x_name="step") is None
    assert sparkline(series, 10) == " " * 10


def test_a_sparkline_rises_with_the_numbers_and_is_blank_in_a_gap() -> None:
    rising = thinned("acc", [0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0])
    assert sparkline(rising, 4) == "▁▃▆█"
    gap = thinned("acc", [0, 1, 2, 3], [1.0, NAN, 2.0, 2.0])
    assert sparkline(gap, 4) == "▁ ██"
    assert sparkline(thinned("rate", [0, 1], [5.0, 5.0]), 2, from_zero=True) == "██"


def test_metrics_are_read_around_torn_lines_words_and_empty_cells(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    made.metrics("step,loss,note,val_loss\n0,1.5,hello,\n1,nan,,0.9\n\0,x\nx,1,,\n2,0.5,,\n3,0.")
    loss, val = read_metrics(made.run)
    assert loss.points == ((0, 1.5), (1, None), (2, 0.5))
    assert (val.name, val.points) == ("val_loss", ((1, 0.9),))


@pytest.mark.parametrize("text", ["", "\n", "loss\n1\n", "step\n1\n", "step,loss\n"])
def test_a_file_without_a_metric_gives_none(tmp_path: Path, text: str) -> None:
    made = make_run(tmp_path)
    made.metrics(text)
    assert read_metrics(made.run) == []


def test_many_metrics_share_the_room_of_a_page(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    names = [f"m{n}" for n in range(200)]
    rows = [",".join(map(str, [step, *range(200)])) for step in range(1000)]
    made.metrics("\n".join([",".join(["step", *names]), *rows]) + "\n")
    series = read_metrics(made.run)
    assert len(series) == 200
    assert sum(len(it.points) for it in series) <= 40_000
