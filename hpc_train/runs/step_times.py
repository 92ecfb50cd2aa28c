"""How fast the runs of a bench were, and whether a run is slower than its baseline among them."""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from hpc_train.codec import decode
from hpc_train.errors import HpcTrainError
from hpc_train.plan.bench_plan import WARM_UP, BenchPlan, bench_name, shape_text, speed_key
from hpc_train.plan.plan import Plan
from hpc_train.plan.quoting import slug
from hpc_train.runs.atomic import write_text
from hpc_train.runs.history_text import pace_text
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, read_progress
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir

LEAST_SLOWDOWN = 0.1  # nodes of one kind differ by some percent
LEAST_RECENT = 20  # steps of a run before its pace is judged


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """What a run of a bench took, in seconds an optimizer step, warm-up left out.

    Attributes:
        steps: That were measured.
        step_s: Mean, of the slowest rank, as the three last ones.
        low_s: A tenth of the steps of rank 0 are shorter; `high_s`: a tenth are longer.
        data_s: Of a step, waiting for the next batch; None where a script is measured.
        comm_s: Of a step, what summing the gradients over the ranks adds; None where it cannot be
            left out (one rank, or a strategy other than DDP).
        save_s: Of one save, how long the training stands still.
    """

    steps: int
    step_s: float
    low_s: float
    median_s: float
    high_s: float
    data_s: float | None = None
    comm_s: float | None = None
    save_s: float | None = None


def step_times_of(times_s: Sequence[float], step_s: float, **parts: float | None) -> StepTimes:
    """From the times of at least two steps."""
    tenths = statistics.quantiles(times_s, n=10, method="inclusive")
    return StepTimes(
        steps=len(times_s),
        step_s=step_s,
        low_s=tenths[0],
        median_s=statistics.median(times_s),
        high_s=tenths[-1],
        **parts,
    )


def write_step_times(run: RunDir, measured: StepTimes) -> None:
    """Leave it in the run's folder."""
    write_text(run.step_times, json.dumps(asdict(measured), indent=1) + "\n")


def read_step_times(run: RunDir) -> StepTimes | None:
    """What a run of a bench has left; of a script, what its progress tells. None: nothing yet."""
    try:
        return decode(StepTimes, json.loads(run.step_times.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return _of_progress(read_progress(run.attempt(0)))


def _of_progress(progress: Sequence[tuple[float, int]]) -> StepTimes | None:
    """Between any two lines the steps count as equally long."""
    told = [(at, step) for at, step in progress if step >= WARM_UP]
    pairs = [(a, b) for a, b in itertools.pairwise(told) if b[1] > a[1] and b[0] > a[0]]
    times_s = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in pairs for _ in range(b[1] - a[1])]
    return step_times_of(times_s, statistics.mean(times_s)) if len(pairs) > 1 else None


@dataclass(frozen=True)
class Baseline:
    """What a training was measured to take in this shape."""

    bench: str  # its name
    shape: str
    measured: StepTimes


def find_baseline(plan: Plan) -> Baseline | None:
    """Of the newest bench of the same training, in the same shape, that has measured it."""
    name, key = bench_name(plan.name), speed_key(plan)
    benches = sorted((Path(plan.runs_dir) / slug(name)).glob("*/bench.json"), reverse=True)
    for sweep in (SweepDir(path.parent) for path in benches):
        try:
            points = BenchPlan.from_json(sweep.bench.read_text(encoding="utf-8")).points
        except (OSError, ValueError):
            continue  # removed just now, or of another version: no baseline
        for number in [number for number, point in enumerate(points) if point.key == key]:
            if measured := read_step_times(sweep.point(number)):
                return Baseline(name, shape_text(plan.shape), measured)
    return None


def slowdown(measured: StepTimes, beat: Heartbeat | None, first_step: int) -> float | None:
    """How much longer a step takes than measured, as a share; None within the noise.

    A difference is one where half of the run's last steps are longer than nine of ten measured
    ones, and by a tenth: both are times between two steps' ends on rank 0.

    Args:
        first_step: Where the attempt began: its first steps do not count.
    """
    if beat is None or beat.step_time_s is None or beat.step - first_step < LEAST_RECENT + WARM_UP:
        return None
    slower = beat.step_time_s / measured.median_s - 1
    is_noise = beat.step_time_s <= measured.high_s or slower < LEAST_SLOWDOWN
    return None if is_noise else slower


def slower_text(status: RunStatus) -> str:
    """`23 % slower than its baseline (...)`; empty where a run is not, or has no baseline."""
    if status.beat is None or status.beat.phase != "train":
        return ""
    baseline = _baseline_of(RunDir(Path(status.run_dir)))
    if baseline is None:
        return ""
    slower = slowdown(baseline.measured, status.beat, status.attempts[-1].first_step)
    if slower is None:
        return ""
    pace = pace_text(1 / baseline.measured.median_s)
    return (
        f"{100 * slower:.0f} % slower than its baseline"
        f" (bench {baseline.bench}: {pace} at {baseline.shape})"
    )


@cache  # who follows a run asks twice a second
def _baseline_of(run: RunDir) -> Baseline | None:
    try:
        plan = read_plan(run)
    except HpcTrainError:  # of a Session, damaged, or of another version: there is none
        return None
    return find_baseline(plan) if plan.verb == "fit" else None
