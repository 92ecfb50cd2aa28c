"""What befalls a run in a night: each fault is done to it as it happens on a cluster."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from hpc_train.runs.checkpoints import checkpoint_steps
from tests.cluster.faults import cut_cable, kill_node, pause, restore_cable, stop_controller
from tests.faults.running import RANK, SUPERVISOR, Training, until

__all__ = ["FAULTS", "Fault", "begin_attempt", "flip_a_byte", "wait_next"]

STOPPED = frozenset({"preempted"})
LOST = frozenset({"node_failure", "network_failure", "hang"})


@dataclass(frozen=True)
class Fault:
    """A fault, and how an attempt may be said to have ended by it."""

    do: Callable[[Training, random.Random], None]
    outcomes: frozenset[str]


def flip_a_byte(training: Training, step: int) -> None:
    """Damage the checkpoint of a step in the middle of its largest file."""
    file = max(checkpoint_steps(training.run)[step].rglob("*"), key=lambda p: p.stat().st_size)
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        byte = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte[0] ^ 1]))


def begin_attempt(training: Training, rng: random.Random) -> int:
    """Wait until the newest attempt has taken some steps; returns its number."""
    number = until(training.records, "the first attempt", 60)[-1].attempt
    training.wait_step(number, new=rng.randint(1, 12), timeout_s=150)
    return int(number)


def wait_next(training: Training, number: int) -> None:
    """Wait until the attempt has ended and another one has begun."""

    def begun() -> bool:
        assert not training.end(), training.story()
        return training.records()[-1].attempt > number

    try:
        until(begun, f"the attempt after {number}", 150)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{training.story()}") from error


def _a_rank(training: Training, rng: random.Random) -> int:
    node = rng.choice(training.records()[-1].nodes)
    return rng.choice(training.pids(node))


def _preempt(training: Training, rng: random.Random) -> None:
    cluster, nodes = training.cluster, training.records()[-1].nodes
    urgent = cluster.preempt(rng.sample(nodes, rng.randint(1, len(nodes))))
    until(lambda: cluster.state(urgent) == "RUNNING", "the urgent job to start", 60)
    cluster.cancel(urgent)


def _stop_a_rank(training: Training, rng: random.Random) -> None:
    number = rng.choice([signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
    os.kill(_a_rank(training, rng), number)


def _kill_a_rank(training: Training, rng: random.Random) -> None:
    os.kill(_a_rank(training, rng), signal.SIGKILL)


def _kill_the_supervisor(training: Training, _rng: random.Random) -> None:
    (pid,) = training.pids(training.records()[-1].host, SUPERVISOR)
    os.kill(pid, signal.SIGKILL)


def _requeue(training: Training, _rng: random.Random) -> None:
    training.cluster.scontrol("requeue", training.records()[-1].job_id)


def _hang(training: Training, rng: random.Random) -> None:
    pause(training.cluster, rng.choice(training.records()[-1].nodes), RANK)


def _damage_and_kill(training: Training, rng: random.Random) -> None:
    steps = list(checkpoint_steps(training.run))
    for step in steps[len(steps) - rng.randint(1, 2) :]:
        flip_a_byte(training, step)
    _kill_a_rank(training, rng)


def _other_node(training: Training, rng: random.Random) -> str:
    newest = training.records()[-1]
    return rng.choice([node for node in newest.nodes if node != newest.host] or [newest.host])


def _cut(training: Training, rng: random.Random) -> None:
    node, number = _other_node(training, rng), training.records()[-1].attempt
    cut_cable(training.cluster, node, end="switch")
    training.wait_attempt_end(number, timeout_s=120)
    _down(training, node)
    _back(training, node)


def _kill_node(training: Training, rng: random.Random) -> None:
    node = rng.choice(training.records()[-1].nodes)
    number = training.records()[-1].attempt
    kill_node(training.cluster, node, silently=rng.random() < 0.5)
    _down(training, node)
    deadline = time.monotonic() + 20  # with its spare the job may start without the node
    while training.records()[-1].attempt == number and time.monotonic() < deadline:
        time.sleep(0.2)
    _back(training, node)


def _down(training: Training, node: str) -> None:
    """Slurm hears of the node's death at once, instead of after SlurmdTimeout."""
    training.cluster.scontrol("update", f"NodeName={node}", "State=DOWN", "Reason=died")


def _back(training: Training, node: str) -> None:
    """The node works again, and jobs may start there."""
    cluster = training.cluster
    restore_cable(cluster, node)
    if cluster.processes.find(f"slurmd-{node}") is None:
        cluster.start_slurmd(node)

    def is_up() -> bool:
        if not cluster.node_states()[node].startswith(("down", "drain", "fail")):
            return True
        cluster.command(["scontrol", "update", f"NodeName={node}", "State=RESUME"], check=False)
        return False

    until(is_up, f"{node} to be up", 60)


def _stop_while_the_controller_is_away(training: Training, rng: random.Random) -> None:
    stop_controller(training.cluster, signal.SIGTERM)
    os.kill(_a_rank(training, rng), signal.SIGTERM)
    time.sleep(rng.uniform(1, 4))
    training.cluster.start_controller()


FAULTS = {
    "preempted": Fault(_preempt, STOPPED),
    "one rank stopped": Fault(_stop_a_rank, STOPPED),
    "one rank killed": Fault(_kill_a_rank, LOST),
    "supervisor killed": Fault(_kill_the_supervisor, LOST),
    "requeued by hand": Fault(_requeue, STOPPED),
    "one rank hangs": Fault(_hang, LOST),
    "checkpoint damaged": Fault(_damage_and_kill, LOST),
    "cable cut": Fault(_cut, LOST),
    "node dead": Fault(_kill_node, LOST | STOPPED),
    "controller away": Fault(_stop_while_the_controller_is_away, STOPPED),
}
