"""What each fault costs on a real Slurm: steps lost, seconds to free nodes and to go on.

Two ranks on two nodes, steps of 50 ms, a checkpoint every 20 steps. A stop that comes with a signal
must lose nothing; a fault may lose what was taken since the last checkpoint. The wait between two
jobs is Slurm's own; what is compared is the time from the batch step's start to the first step,
with the run's own first start.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster import raised
from benchmarks.places import Places
from benchmarks.rows import Row
from tests.cluster import Cluster
from tests.cluster.faults import change_partition, kill_node, pause
from tests.faults.running import RANK, SUPERVISOR, Training, submit, until

__all__ = ["rows"]

EVERY = 20
RELEASED_S = 2.5  # 2 s and the save, which takes less than half a second here
WORK = ("slurm.nodes=2", f"checkpoint.every_n_steps={EVERY}", "watchdog.heartbeat_s=0.25")


@dataclass(frozen=True)
class Fault:
    """Something that happens to a run.

    Attributes:
        happen: Does it, and returns what undoes it.
        loses: Most steps that may be lost.
    """

    name: str
    happen: Callable[[Training], Callable[[], object]]
    loses: int = 0
    frees_nodes: bool = True


def rows(_places: Places) -> Iterator[Row]:
    """Three rows a fault; single starts vary by a fifth, so the target is for their median."""
    ratios: list[float] = []
    for fault in FAULTS:
        with tempfile.TemporaryDirectory() as folder, raised() as cluster:
            yield from _measured(fault, cluster, Path(folder), ratios)
    yield Row(
        what="all faults: second start : first start, median",
        ours="",
        peer="",
        ratio=f"{statistics.median(ratios):.2f}",
        target="<= 1.1",
        ok=statistics.median(ratios) <= 1.1,
    )


def _measured(fault: Fault, cluster: Cluster, folder: Path, ratios: list[float]) -> Iterator[Row]:
    if fault.name.endswith("CANCEL"):
        change_partition(cluster, GraceTime=0, PreemptMode="CANCEL")
    training = submit(cluster, folder, *WORK)
    first_start_s = _start_s(training, 0)
    training.wait_step(0, new=EVERY + 5)
    told = time.monotonic()
    undo = fault.happen(training)
    until(lambda: not training.processes(), "the ranks to end", 120)
    released_s = time.monotonic() - told
    undo()
    again_s = _start_s(training, 1)
    (first, *_) = training.records()
    lost = first.steps_lost
    ratios.append(again_s / first_start_s)
    yield Row(
        what=f"{fault.name}: steps lost",
        ours=str(lost),
        peer="",
        ratio="",
        target=f"<= {fault.loses}",
        ok=lost <= fault.loses,
    )
    yield Row(
        what=f"{fault.name}: until no rank is left",
        ours=f"{released_s:.1f} s",
        peer="",
        ratio="",
        target=f"<= {RELEASED_S} s" if fault.frees_nodes else "",
        ok=released_s <= RELEASED_S if fault.frees_nodes else None,
    )
    yield Row(
        what=f"{fault.name}: second start : first start",
        ours=f"{again_s:.1f} s",
        peer=f"{first_start_s:.1f} s",
        ratio=f"{ratios[-1]:.2f}",
    )


def _start_s(training: Training, attempt: int) -> float:
    """From the start of the attempt to the first beat that tells of a step."""
    training.wait_step(attempt, new=1, timeout_s=120)
    return time.time() - training.records()[attempt].started


def _preempt(training: Training) -> Callable[[], object]:
    urgent = training.cluster.preempt(list(training.records()[0].nodes))
    return lambda: training.cluster.cancel(urgent)


def _kill(number: signal.Signals, pattern: str, index: int) -> Callable[[Training], Callable]:
    def happen(training: Training) -> Callable[[], object]:
        node = training.records()[0].nodes[index]
        os.kill(training.pids(node, pattern)[0], number)
        return lambda: None

    return happen


def _requeue(training: Training) -> Callable[[], object]:
    training.cluster.scontrol("requeue", training.job_id)
    return lambda: None


def _dead_node(training: Training) -> Callable[[], object]:
    kill_node(training.cluster, training.records()[0].nodes[1])
    return lambda: None


def _hang(training: Training) -> Callable[[], object]:
    pause(training.cluster, training.records()[0].nodes[1], RANK)
    return lambda: None


FAULTS = (
    Fault("preempted, grace 30 s", _preempt),
    Fault("preempted, grace 0, CANCEL", _preempt),
    Fault("scontrol requeue by hand", _requeue),
    Fault("SIGTERM to one rank", _kill(signal.SIGTERM, RANK, 1)),
    Fault("SIGKILL of the supervisor", _kill(signal.SIGKILL, SUPERVISOR, 0)),
    Fault("SIGKILL of one rank", _kill(signal.SIGKILL, RANK, 1), EVERY + 10, frees_nodes=False),
    Fault("death of a node", _dead_node, EVERY + 10, frees_nodes=False),
    Fault("SIGSTOP of one rank (watchdog 10 s)", _hang, EVERY + 10, frees_nodes=False),
)
