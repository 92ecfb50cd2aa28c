"""A thousand run directories as a year of work leaves them: most have ended, some are active."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir

__all__ = ["make_runs"]

NAMES = 20
DAY_S = 86_400.0
STEPS = 5_000
FIRST = 1_750_000_000.0  # of June 2025; only the order matters
KEPT = ("config.yaml", "plan.json", "job.sbatch", "environment.json")


@dataclass(frozen=True)
class _Told:
    """A history in the making."""

    lines: list[str]

    def tell(self, time: float, kind: EventKind, **data: object) -> None:
        self.lines.append(json.dumps({"time": time, "event": kind.value, **data}))


def make_runs(template: RunDir, root: Path, ended: int, active: Sequence[str]) -> None:
    """Fill `root` with runs made like `template`.

    Args:
        template: A run as `hpc-train submit` leaves it; its config, plan and script are copied.
        root: A folder of runs.
        ended: How many have ended by their history's word.
        active: Ids of jobs that Slurm knows; one more run for each.
    """
    draw = random.Random(1)
    for number in range(ended + len(active)):
        run = RunDir(root / f"model-{number % NAMES:02d}" / f"20250615-{number:06d}-{number:04x}")
        shutil.copytree(template.path, run.path, ignore=_only_texts)
        job_id = active[number - ended] if number >= ended else str(10_000_000 + number)
        history = _Told([])
        began = FIRST + number * DAY_S / 4
        history.tell(began, EventKind.SUBMITTED, job_id=job_id, backend="slurm")
        attempts = 1 + (draw.random() < 0.3)
        for attempt in range(attempts):
            _attempt(history, run, began + 600 + attempt * DAY_S / 10, attempt, job_id)
            if number < ended or attempt + 1 < attempts:
                _end(history, began + 500 + (attempt + 1) * DAY_S / 10, attempt, attempts, job_id)
        if number < ended:
            _metrics(run, draw)
        run.events.write_text("\n".join(history.lines) + "\n")


def _attempt(history: _Told, run: RunDir, began: float, attempt: int, job_id: str) -> None:
    nodes = ["node1", "node2", "node3"]
    about = {"attempt": attempt, "job_id": job_id, "host": "node1", "pid": 4242}
    history.tell(began, EventKind.ATTEMPT_STARTED, nodes=nodes, **about)
    text = "go: 3 nodes, 12 ranks, mlx5_0"
    history.tell(
        began + 4, EventKind.PREFLIGHT, attempt=attempt, verdict="go", bad_nodes=[], summary=text
    )
    first = attempt * STEPS // 2
    history.tell(began + 5, EventKind.RANKS_STARTED, attempt=attempt, nodes=nodes, first_step=first)
    beat = {"rank": 0, "node": "node1", "pid": 4243, "time": began + 60, "moved": began + 60}
    file = run.attempt(attempt).heartbeat(0)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**beat, "phase": "train", "step": first + 10, "batch": 10}))
    run.attempt(attempt).rank_log(0).write_text(f"step {first + 10}  loss 0.4213\n" * 50)
    run.latest.unlink(missing_ok=True)
    run.latest.symlink_to(Path("attempts") / str(attempt))


def _end(history: _Told, time: float, attempt: int, attempts: int, job_id: str) -> None:
    last = attempt + 1 == attempts
    step = STEPS if last else STEPS // 2
    history.tell(
        time,
        EventKind.ATTEMPT_ENDED,
        attempt=attempt,
        outcome="completed" if last else "preempted",
        reason="all ranks finished" if last else "preempted by Slurm; all ranks saved",
        blamed=[],
        last_step=step,
        saved_step=step,
    )
    action, reason = ("stop", "completed") if last else ("requeue", "preempted: goes on")
    history.tell(time, EventKind.DECIDED, attempt=attempt, action=action, reason=reason, exclude=[])
    if last:
        history.tell(time, EventKind.RUN_ENDED, attempt=attempt, state="completed", reason=reason)
    else:
        history.tell(time, EventKind.WENT_ON, attempt=attempt, action=action, job_id=job_id)


def _metrics(run: RunDir, draw: random.Random) -> None:
    values = {"val_acc": round(draw.uniform(0.9, 1), 4), "val_loss": round(draw.random(), 4)}
    (run.metrics / "final.json").write_text(json.dumps(values))
    run.done.write_text("completed\n")


def _only_texts(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_file() and name not in KEPT]
