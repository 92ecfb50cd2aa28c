"""A bench as a table, a picture and a recommendation. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hpc_train.plan.bench_plan import BenchPlan, BenchPoint, shape_text, variant_text
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.report.charts import Chart, line_chart
from hpc_train.report.compare import efficiencies
from hpc_train.report.series import thinned
from hpc_train.report.text import number, percent
from hpc_train.runs.step_times import StepTimes
from hpc_train.runs.sweep_status import SweepStatus

PARTS = {"compute": "█", "communication": "▒", "data": "░", "saving": "▪"}
ENOUGH = 0.7  # of the rate a rank of the smallest shape: below, most of what is added is lost
DOUBTFUL = 1.5  # of that rate: more ranks do not make each so much faster
LARGE = 0.2  # share of the time that is worth a change
ADVICE = {
    "communication": "a larger micro batch with fewer steps, trainer.strategy, or the network:"
    " hpc-train preflight",
    "data": "more CPUs for data workers (slurm.cpus_per_gpu), or cheaper samples",
    "saving": "saves further apart: checkpoint.every_n_minutes",
}


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """One point.

    Attributes:
        variant: What it has otherwise beside the shape; empty for nothing.
        why: Of one that was not measured, what became of it.
        samples_per_s: None where a script has its own batch.
        efficiency: The rate a rank, of that of the fewest ranks of the same variant.
        shares: Of the time by part, `PARTS`; empty where only the rate is known.
    """

    point: int
    shape: str
    ranks: int
    variant: str
    state: str
    why: str = ""
    measured: StepTimes | None = None
    steps_per_s: float | None = None
    samples_per_s: float | None = None
    efficiency: float | None = None
    shares: Mapping[str, float]

    @property
    def name(self) -> str:
        """The shape, and what it has otherwise."""
        return f"{self.shape} {self.variant}".rstrip()

    @property
    def rate(self) -> float | None:
        """In samples where they are known."""
        return self.samples_per_s or self.steps_per_s

    def is_clearly_faster(self, other: BenchRow) -> bool:
        """Whether nine of ten of its steps are faster than nine of ten of the other's."""
        if not (self.measured and other.measured and self.rate and other.rate):
            return bool(self.rate) and not other.rate
        slow = self.rate * self.measured.step_s / self.measured.high_s
        fast = other.rate * other.measured.step_s / other.measured.low_s
        return slow > fast


@dataclass(frozen=True, kw_only=True)
class BenchTable:
    """All of a bench; `chosen` is the row that is recommended, None where none was measured."""

    bench: str
    bench_dir: str
    training: str
    state: str
    steps: int
    rows: tuple[BenchRow, ...]
    chosen: BenchRow | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The document of `hpc-train bench --json`."""
        told = asdict(self) | {"chosen": self.chosen.point if self.chosen else None}
        return {"schema_version": 1, **told}

    @property
    def header(self) -> list[str]:
        """Of the columns of `cells`."""
        variant = ["OTHERWISE"] if any(row.variant for row in self.rows) else []
        parts = ["COMPUTE", "COMM", "DATA", "SAVE"] if any(r.shares for r in self.rows) else []
        rates = ["SAMPLES/S"] if any(row.samples_per_s for row in self.rows) else []
        why = ["WHY"] if any(row.why for row in self.rows) else []
        return ["SHAPE", *variant, *rates, "STEPS/S", "EFFICIENCY", *parts, *why]

    @property
    def cells(self) -> list[list[str]]:
        """A line a row."""
        told = [
            {
                "SHAPE": row.shape,
                "OTHERWISE": row.variant or "-",
                "SAMPLES/S": number(row.samples_per_s),
                "STEPS/S": number(row.steps_per_s),
                "EFFICIENCY": percent(row.efficiency),
                "COMPUTE": percent(row.shares.get("compute")),
                "COMM": percent(row.shares.get("communication")),
                "DATA": percent(row.shares.get("data")),
                "SAVE": percent(row.shares.get("saving")),
                "WHY": row.why,
            }
            for row in self.rows
        ]
        return [[line[name] for name in self.header] for line in told]


def bench_rows(
    status: SweepStatus,
    asked: BenchPlan,
    plans: Sequence[Plan],
    measured: Sequence[StepTimes | None],
) -> list[BenchRow]:
    """A row a point, in the order of the points."""
    rates = [1 / it.step_s if it else None for it in measured]
    variants = [variant_text(point.overrides) for point in status.points]
    batches = [plan.batch.global_batch_size for plan in plans]
    in_samples = [
        rate * (batch or 1) if rate else None for rate, batch in zip(rates, batches, strict=True)
    ]
    shares: dict[int, float | None] = {}
    for variant in dict.fromkeys(variants):
        places = [place for place, it in enumerate(variants) if it == variant]
        pairs = [(plans[place].shape.world_size, in_samples[place]) for place in places]
        shares |= dict(zip(places, efficiencies(pairs), strict=True))
    return [
        BenchRow(
            point=place,
            shape=shape_text(plan.shape),
            ranks=plan.shape.world_size,
            variant=variants[place],
            state=point.run.state.value,
            why="" if measured[place] else _why(point.run.state, point.run.reason),
            measured=measured[place],
            steps_per_s=rates[place],
            samples_per_s=in_samples[place] if batches[place] else None,
            efficiency=shares[place],
            shares=time_shares(measured[place], asked.points[place], plan.shape.world_size),
        )
        for place, (point, plan) in enumerate(zip(status.points, plans, strict=True))
    ]


def _why(state: RunState, reason: str) -> str:
    if state is RunState.COMPLETED:
        return "ended before its steps could be measured"
    return f"{state.value}: {reason}" if reason else state.value


def time_shares(measured: StepTimes | None, asked: BenchPoint, ranks: int = 1) -> dict[str, float]:
    """Where the time of a training goes that saves as it is configured to; empty if unknown.

    Compute is all that the others are not.
    """
    if measured is None or measured.data_s is None:
        return {}
    step_s, data_s = measured.step_s, min(measured.data_s, measured.step_s)
    comm_s = min(measured.comm_s or 0.0, step_s - data_s)
    paces = [asked.save_every_s / step_s] if asked.save_every_s else []
    paces += [float(asked.save_every_steps)] if asked.save_every_steps else []
    save_s = (measured.save_s or 0.0) / max(1.0, min(paces)) if paces else 0.0
    spent_s = {
        "compute": max(0.0, step_s - comm_s - data_s),
        "communication": comm_s,
        "data": data_s,
        "saving": save_s,
    }
    if ranks > 1 and measured.comm_s is None:
        del spent_s["communication"]  # it could not be left out, and stands in compute
    return {part: each / (step_s + save_s) for part, each in spent_s.items()}


def make_table(status: SweepStatus, asked: BenchPlan, rows: Sequence[BenchRow]) -> BenchTable:
    """The rows with what follows from them."""
    chosen, reason = recommend(rows)
    return BenchTable(
        bench=status.sweep,
        bench_dir=status.sweep_dir,
        training=asked.training,
        state=status.state.value,
        steps=asked.steps,
        rows=tuple(rows),
        chosen=chosen,
        reason=reason,
    )


def recommend(rows: Sequence[BenchRow]) -> tuple[BenchRow | None, str]:
    """The fastest row that uses what it holds, the smallest of those as fast, and why."""
    known = sorted((row for row in rows if row.rate), key=lambda row: row.rate or 0, reverse=True)
    if not known:
        return None, "no shape was measured"
    worth = [row for row in known if row.efficiency is None or row.efficiency >= ENOUGH]
    as_fast = [row for row in worth if not worth[0].is_clearly_faster(row)]
    chosen = min(as_fast, key=lambda row: (row.ranks, row.point))
    fewest = min(known, key=lambda row: (row.ranks, -(row.rate or 0)))
    if len(known) == 1:
        told = ["nothing else was measured"]
    elif chosen is worth[0]:
        told = [f"the fastest that uses at least {percent(ENOUGH)} of each rank"]
    else:
        told = [f"{worth[0].name} is not clearly faster"]
    if chosen.ranks > fewest.ranks and chosen.rate and fewest.rate:
        told.append(
            f"{chosen.rate / fewest.rate:.1f} times the rate of {fewest.name} with"
            f" {chosen.ranks / fewest.ranks:.1f} times the ranks"
        )
    if known[0].is_clearly_faster(chosen):
        told.append(f"{known[0].name} is faster at {percent(known[0].efficiency)} efficiency")
    part, share = max(
        ((part, chosen.shares.get(part, 0.0)) for part in ADVICE), key=lambda pair: pair[1]
    )
    if share >= LARGE:
        told.append(f"{percent(share)} of its time is {part}: {ADVICE[part]}")
    if max(row.efficiency or 0.0 for row in known) > DOUBTFUL:
        told.append("far more than 100 %: the smallest shape was slowed, measure again when quiet")
    return chosen, "; ".join(told)


def picture_lines(table: BenchTable, width: int) -> Iterator[str]:
    """A bar a row: as long as its rate, cut by where its time goes; `|` is the rate in proportion.

    The rate in proportion is what the ranks of the smallest shape would give.
    """
    known = [row for row in table.rows if row.rate]
    label = min(max((len(row.name) for row in known), default=0), width // 3)
    room = max(10, width - label - 5)
    most = max((max(_ideal(row), row.rate or 0) for row in known), default=0.0)
    for row in known:
        length = round(room * (row.rate or 0) / most)
        ideal = round(room * _ideal(row) / most)
        gap = f"{'·' * (ideal - length - 1)}|" if ideal > length else ""
        name = row.name if len(row.name) <= label else f"{row.name[: label - 3]}..."
        yield f"  {name:<{label}}  {_cut(row.shares or {'compute': 1.0}, length)}{gap}"
    if any(row.shares for row in known):
        indent = " " * (label + 4)
        parts = "  ".join(f"{sign} {part}" for part, sign in PARTS.items())
        yield from textwrap.wrap(
            f"{parts}  | in proportion", width, initial_indent=indent, subsequent_indent=indent
        )


def _ideal(row: BenchRow) -> float:
    return row.rate / row.efficiency if row.rate and row.efficiency else 0.0


def _cut(shares: Mapping[str, float], length: int) -> str:
    """Whole cells that add up to `length`."""
    bar, until = "", 0.0
    for part, sign in PARTS.items():
        until += shares.get(part, 0.0)
        bar += sign * (round(until * length) - len(bar))
    return bar


def bench_chart(table: BenchTable) -> Chart | None:
    """The rate over the ranks, a line a variant, and what would be in proportion.

    None where all that was measured had as many ranks.
    """
    known = [row for row in table.rows if row.rate]
    if len({row.ranks for row in known}) < 2:
        return None
    lines = []
    for variant in dict.fromkeys(row.variant for row in known):
        rows = sorted((row for row in known if row.variant == variant), key=lambda row: row.ranks)
        xs = [float(row.ranks) for row in rows]
        name = f" ({variant})" if variant else ""
        for label, ys in (
            ("measured", [row.rate or 0.0 for row in rows]),
            ("in proportion", [_ideal(row) for row in rows]),
        ):
            lines.append((f"{label}{name}", thinned(label, xs, ys)))
    unit = "samples/s" if any(row.samples_per_s for row in known) else "steps/s"
    return line_chart(f"rate in {unit}", lines, x_name="ranks", from_zero=True)
