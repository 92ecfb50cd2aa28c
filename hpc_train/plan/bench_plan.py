"""What a bench measures: its steps, its shapes, which later trainings are as fast. Pure data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hpc_train.codec import decode
from hpc_train.plan.plan import Plan, Shape
from hpc_train.plan.sweep_plan import point_text

STEPS, LEAST_STEPS = 20, 5  # optimizer steps of each of the three measurements
# Left out: torch's DDP rebuilds its buckets behind the first one, cuDNN tries its algorithms,
# allocators grow, data workers start.
WARM_UP = 10
_BEHIND = 2  # steps after the save that is measured, of which the first waits for it
SHAPE_KEYS = ("slurm.nodes", "slurm.gpus_per_node")
# Of the Trainer: how long it trains, evaluates and what it says changes no step's time.
_NOT_OF_SPEED = (
    *("max_epochs", "max_steps", "max_time", "min_epochs", "min_steps", "fast_dev_run"),
    *("limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches"),
    *("val_check_interval", "check_val_every_n_epoch", "num_sanity_val_steps"),
    *("log_every_n_steps", "enable_progress_bar", "enable_model_summary", "callbacks"),
)


@dataclass(frozen=True, kw_only=True)
class BenchPoint:
    """One point of a bench.

    Attributes:
        key: `speed_key` of the training that it stands for.
        save_every_steps: Between two saves of that training; None = by the clock alone.
        save_every_s: The same in seconds.
    """

    key: str
    save_every_steps: int | None
    save_every_s: float | None


@dataclass(frozen=True, kw_only=True)
class BenchPlan:
    """A bench, beside the `SweepPlan` with the same points."""

    training: str  # the name of the training
    steps: int
    points: tuple[BenchPoint, ...]

    def to_json(self) -> str:
        """The document that is `bench.json`."""
        return json.dumps({"schema_version": 1, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> BenchPlan:
        """Read what `to_json` wrote; raises ValueError for anything else."""
        return decode(cls, json.loads(text))


def bench_name(training: str) -> str:
    """The name of a training's benches, and of their runs."""
    return f"{training}-bench"


def last_step(steps: int) -> int:
    """How many steps a run of a bench takes that measures `steps` three times."""
    return measured_steps(steps)[-1] + _BEHIND


def measured_steps(steps: int) -> tuple[int, int, int, int]:
    """The steps between which the three measurements lie."""
    first, second, third = (WARM_UP + steps * number for number in (1, 2, 3))
    return WARM_UP, first, second, third


def speed_key(plan: Plan) -> str:
    """16 hexadecimal digits that two trainings share whose steps take as long on equal nodes.

    The seed, and the Trainer's arguments of length and logging, are none of it; an argument of
    model or data may be a step's time or not, so that it is.
    """
    training = plan.training
    what = {
        "shape": [plan.shape.nodes, plan.shape.ranks_per_node, plan.shape.gpus_per_node],
        "batch": asdict(plan.batch),
        "model": asdict(training.model),
        "data": asdict(training.data),
        "trainer": {k: v for k, v in training.trainer.items() if k not in _NOT_OF_SPEED},
        "reproducible": training.reproducible,
        "script": [plan.script.path, plan.script.args] if plan.script else None,
        "variables": plan.shell.variables,
    }
    text = json.dumps(what, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def shape_text(shape: Shape) -> str:
    """Nodes and ranks a node: `2 x 4`."""
    return f"{shape.nodes} x {shape.ranks_per_node}"


def variant_text(overrides: Mapping[str, Any]) -> str:
    """What a point has otherwise beside its shape, by the last words of its keys."""
    others = {k.rpartition(".")[2]: v for k, v in overrides.items() if k not in SHAPE_KEYS}
    return point_text(others)
