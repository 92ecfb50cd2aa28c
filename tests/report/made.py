"""Run directories made by hand: a history, heartbeats, metrics and monitors of known numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.backends.observe import SlurmAnswer, observe
from hpc_train.plan.from_config import make_plan
from hpc_train.report.gather import RunReport, gather
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, append_progress, write_heartbeat
from tests.plan.configs import config

BEGAN = 1_795_000_000.0
STEP_S = 0.5


@dataclass
class MadeRun:
    """A run on NODES nodes of 4 GPUs, at any time of its life; `at` is seconds since BEGAN."""

    run: RunDir
    nodes: Sequence[str]
    ranks_per_node: int = 4

    def tell(self, at: float, kind: EventKind, **data: object) -> None:
        append_event(self.run.events, Event(BEGAN + at, kind, data))

    def attempt(
        self,
        number: int,
        at: float,
        *,
        steps: tuple[int, int],
        outcome: str | None = "completed",
        saved: int | None = None,
        still_s: float = 0.0,
        skew_s: float = 0.0,
        seconds: bool = True,
        reason: str = "",
    ) -> float:
        """An attempt of 10 s of preflight, 20 s of start-up, 0.5 s a step, 4 s of evaluation, 1 s
        of saving and 5 s to its end; returns when it ended.

        Args:
            still_s: How long it stood in the middle of a step before it was ended.
            skew_s: By how much the nodes' clocks are behind.
            seconds: False for ranks of the version that did not count.
        """
        first, last = steps
        train_s = (last - first) * STEP_S
        began = at + 30
        silent = began + train_s + 4 + 1 + still_s
        ended = silent + 5
        self.tell(at, EventKind.ATTEMPT_STARTED, attempt=number, job_id="7", nodes=list(self.nodes))
        self.tell(at + 10, EventKind.PREFLIGHT, attempt=number, verdict="go", seconds=10.0)
        self.tell(at + 10, EventKind.RANKS_STARTED, attempt=number, nodes=list(self.nodes))
        self.tell(began, EventKind.RANKS_BEGAN, attempt=number, first_step=first)
        phase = "train" if still_s or outcome is None else "end"
        spent = {"start": 20.0, "train": train_s + still_s, "validate": 4.0, "save": 1.0}
        for rank in range(len(self.nodes) * self.ranks_per_node):
            beat = Heartbeat(
                rank=rank,
                node=self.nodes[rank // self.ranks_per_node],
                pid=1,
                time=BEGAN + silent - skew_s,
                moved=BEGAN + silent - still_s - skew_s,
                phase=phase,
                step=last,
                seconds=spent if seconds else {},
            )
            write_heartbeat(self.run.attempt(number), beat)
        for step in range(first, last + 1, max(1, (last - first) // 20)):
            told = BEGAN + began + (step - first) * STEP_S - skew_s
            beat = Heartbeat(
                rank=0, node="n", pid=1, time=told, moved=told, phase="train", step=step
            )
            append_progress(self.run.attempt(number), beat)
        if outcome is None:
            return silent
        kept = last if saved is None else saved
        told = {"first_step": first, "last_step": last, "saved_step": kept, "reason": reason}
        self.tell(ended, EventKind.ATTEMPT_ENDED, attempt=number, outcome=outcome, **told)
        return ended

    def end(self, at: float, state: str = "completed") -> None:
        self.tell(at, EventKind.RUN_ENDED, state=state, reason="the training is complete")

    def metrics(self, text: str) -> None:
        self.run.metrics.mkdir(exist_ok=True)
        self.run.metrics_csv.write_text(text)

    def watch(self, node: str, lines: Sequence[dict[str, Any]]) -> None:
        self.run.monitor.mkdir(exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.run.monitor / f"{node}.jsonl").write_text(text)

    def report(self, now: float = 10_000.0) -> RunReport:
        (status,) = observe([self.run], BEGAN + now, answer=SlurmAnswer())
        return gather(self.run, status, BEGAN + now)


def make_run(
    folder: Path,
    *,
    name: str = "digits",
    nodes: Sequence[str] = ("n1", "n2"),
    slurm: dict[str, Any] | None = None,
    number: int = 0,
    batch: int = 96,
) -> MadeRun:
    """A run with its plan that was submitted at second 0."""
    run = RunDir(folder / "runs" / "digits" / f"20261118-100000-{number:04x}")
    run.attempts.mkdir(parents=True)
    shape = {"nodes": len(nodes), "gpus_per_node": 4, "time": "2:00:00", **(slurm or {})}
    planned = config(name=name, slurm=shape, global_batch_size=batch)
    plan = make_plan(planned, workdir=folder, python="/usr/bin/python", for_script=False)
    run.plan.write_text(plan.to_json())
    made = MadeRun(run, nodes)
    made.tell(0, EventKind.SUBMITTED, job_id="7", backend="slurm")
    return made


def gpu_line(at: float, use: float = 90.0, *, power_w: float = 500.0) -> dict[str, Any]:
    """A line of the monitor of a node with 4 GPUs, of which the first has `use` percent less."""
    card = {"use_percent": use, "memory_mib": 30_000, "memory_total_mib": 81_920}
    gpu = {**card, "power_w": power_w, "temperature_c": 60, "throttle": []}
    return {
        "time": BEGAN + at,
        "cpu_percent": 25.0,
        "memory_used_mib": 20_480,
        "memory_total_mib": 512_000,
        "cpus": 64,
        "gpus": [{"index": index, **gpu} for index in range(4)],
        "interfaces": {"eth0": {"rx_mib_s": 10.0, "tx_mib_s": 2.0}},
    }


def night(made: MadeRun) -> float:
    """Preempted, then a hang of a minute that loses 40 steps, then complete; returns its end."""
    ended = made.attempt(
        0, 60, steps=(0, 200), outcome="preempted", reason="preempted by Slurm; saved at step 200"
    )
    ended = made.attempt(
        1,
        ended + 120,
        steps=(200, 400),
        outcome="hang",
        saved=360,
        still_s=60,
        reason="rank 3 on n1 did not reach the all-reduce of step 401",
    )
    ended = made.attempt(2, ended + 30, steps=(360, 1000), reason="all ranks have finished")
    made.end(ended)
    return ended
