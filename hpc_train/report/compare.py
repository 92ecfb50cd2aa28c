"""Several runs side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpc_train.report.gather import RunReport


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run in the comparison.

    Attributes:
        label: Its name, with its id where two have the same.
        efficiency: Its rate a rank, of that of the run with the fewest ranks; None if unknown.
        metrics: Last values, of those metrics that any of the runs has.
    """

    label: str
    run: str
    state: str
    ranks: int
    steps: int
    wall_s: float
    steps_per_s: float | None
    samples_per_s: float | None
    efficiency: float | None
    goodput: float | None
    metrics: dict[str, float]


def compared(reports: Sequence[RunReport]) -> list[RunRow]:
    """A row a run, in the order given."""
    names = [report.status.name for report in reports]
    # Steps are comparable only where each is of as many samples.
    in_samples = all(report.samples_per_s for report in reports if report.steps_per_s)
    rates = [report.samples_per_s if in_samples else report.steps_per_s for report in reports]
    shares = efficiencies([(it.ranks, rate) for it, rate in zip(reports, rates, strict=True)])
    return [
        RunRow(
            label=_label(report, repeated=names.count(report.status.name) > 1),
            run=report.status.run,
            state=report.status.state.value,
            ranks=report.ranks,
            steps=report.status.step,
            wall_s=report.goodput.wall_s,
            steps_per_s=report.steps_per_s,
            samples_per_s=report.samples_per_s,
            efficiency=share,
            goodput=report.goodput.share,
            metrics=last_values(report),
        )
        for report, share in zip(reports, shares, strict=True)
    ]


def efficiencies(pairs: Sequence[tuple[int, float | None]]) -> list[float | None]:
    """Each rate a rank, of that of the fewest ranks; None for what is not known.

    Args:
        pairs: Ranks and their rate together.
    """
    base = min(((ranks, rate) for ranks, rate in pairs if rate and ranks), default=None)
    return [
        rate / ranks / (base[1] / base[0]) if base and rate and ranks else None
        for ranks, rate in pairs
    ]


def last_values(report: RunReport) -> dict[str, float]:
    """The last value of every metric: of the end, or as it stands in metrics.csv."""
    told = {series.name: series.last for series in report.metrics if series.last is not None}
    final = {
        name: float(value)
        for name, value in report.status.metrics.items()
        if isinstance(value, (int, float)) and name not in ("step", "epoch")
    }
    return {**told, **final}


def _label(report: RunReport, *, repeated: bool) -> str:
    status = report.status
    return f"{status.name} {status.run}" if repeated else status.name
