"""Processes that `benchmarks.cluster_load` measures: the ranks of a node, and a supervisor.

python -m benchmarks.load_parts ranks RUN_DIR FIRST COUNT SHARED SECONDS
python -m benchmarks.load_parts simulated RUN_DIR RANKS PER_NODE SHARED
python -m benchmarks.load_parts supervisor RUN_DIR RANKS PER_NODE SECONDS
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from hpc_train.config.schema import WatchdogConfig
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat, write_heartbeats
from hpc_train.supervisor.launch import Ranks
from hpc_train.supervisor.watch import watch


def ranks(run: RunDir, first: int, count: int, shared: bool, seconds: float) -> None:
    """The heartbeat threads of a node's ranks, as they are; each takes ten steps a second."""
    from hpc_train.training.heartbeat import HeartbeatThread
    from hpc_train.training.node_heartbeats import NodeHeartbeats
    from hpc_train.training.resume.stop import StopFlag

    attempt = run.attempt(0)
    threads = []
    for rank in range(first, first + count):
        stop = StopFlag(run.stop)
        heart = HeartbeatThread(attempt, rank=rank, node="node", every_s=1.0, stop=stop)
        if shared:
            heart.share(NodeHeartbeats.open(attempt, run.stop, str(os.getpid())))
        heart.start()
        heart.phase = "train"
        threads.append(heart)
        time.sleep(1 / count)
    deadline, step = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        step += 1
        for heart in threads:
            heart.stepped(step)
        time.sleep(0.1)
    for heart in threads:
        heart.end()


def simulated(run: RunDir, count: int, per_node: int, shared: bool) -> None:
    """The files of many ranks, each rewritten every second, until it is killed."""
    attempt, step = run.attempt(0), 0
    while True:
        began = time.monotonic()
        for node in range(count // per_node):
            numbers = range(node * per_node, (node + 1) * per_node)
            _tell(attempt, node, [_beat(rank, node, step) for rank in numbers], shared)
        step += 10
        time.sleep(max(0.0, 1 - (time.monotonic() - began)))


def _tell(attempt: AttemptDir, node: int, beats: Sequence[Heartbeat], shared: bool) -> None:
    if shared:
        write_heartbeats(attempt.node_heartbeats(f"n{node}"), beats)
        return
    for beat in beats:
        write_heartbeat(attempt, beat)


def _beat(rank: int, node: int, step: int) -> Heartbeat:
    now = time.time()
    return Heartbeat(
        rank=rank,
        node=f"n{node}",
        pid=1,
        time=now,
        moved=now,
        phase="train",
        step=step,
        batch=step,
        step_time_s=0.1,
        steps=100_000,
        epoch=1,
        epochs=10,
        steps_per_s=10.0,
        metrics={"loss": 0.5},
        seconds={"start": 10.0, "train": float(step)},
    )


class _Launcher:
    """In the place of srun: the ranks are other people's."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def poll(self) -> int | None:
        return 0 if time.monotonic() > self._until else None

    def unlaunched(self, _nodes: Sequence[str]) -> dict[str, str]:
        return {}

    def deaths(self) -> list[object]:
        return []


def supervisor(run: RunDir, count: int, per_node: int, seconds: float) -> None:
    """Watch them with the supervisor's own loop, and print what that takes."""
    import hpc_train.supervisor.run  # noqa: F401 - all that a supervisor has in memory

    nodes = [f"n{node}" for node in range(count // per_node)]
    asked = []
    began, cpu = time.monotonic(), time.process_time()
    watched = watch(
        cast("Ranks", _Launcher(seconds)),
        run.attempt(0),
        WatchdogConfig(),
        nodes,
        count,
        lost_nodes=lambda: asked.append(1) or (),  # type: ignore[func-returns-value]
        each_second=lambda: None,
    )
    took = time.monotonic() - began
    used = {
        "cpu_share": (time.process_time() - cpu) / took,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "questions": len(asked),
        "hang": watched.hang is not None,
    }
    print(json.dumps(used))


def main() -> None:
    """Be the process that the first word names."""
    what, run, *words = sys.argv[1:]
    numbers = [int(word) for word in words]
    directory = RunDir(Path(run))
    directory.attempt(0).path.mkdir(parents=True, exist_ok=True)
    if what == "ranks":
        ranks(directory, numbers[0], numbers[1], bool(numbers[2]), numbers[3])
    elif what == "simulated":
        simulated(directory, numbers[0], numbers[1], bool(numbers[2]))
    else:
        supervisor(directory, *numbers[:3])


if __name__ == "__main__":
    main()
