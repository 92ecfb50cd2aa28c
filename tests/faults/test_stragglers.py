"""One node of three is slow for real: it is named, and no other; of three alike nobody is."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import LEAN, Training, submit, until
from tests.supervisor.channels import Channel, channel

pytestmark = pytest.mark.slurm

STOPPED_S, RUNS_S = 0.6, 0.2
# In every process of the run; the supervisor alone looks each second, and not each minute. A node
# is named when it is late for 15 s, not three minutes: other tests hold up healthy ones for a few.
OFTEN = f"""
import runpy, sys
runpy.run_path({str(LEAN / "sitecustomize.py")!r})
if "hpc_train.supervisor" in sys.orig_argv:
    from hpc_train.supervisor import notices
    notices.LOOK_EVERY_S = 1.0
    notices.LATE_LOOKS = 15
    notices.StragglerWatch.__init__.__defaults__ = (5.0,)
"""


@contextmanager
def slowed(pid: int) -> Iterator[None]:
    """The process gets a quarter of the time (SIGSTOP, SIGCONT)."""
    over = threading.Event()

    def slow() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            over.wait(STOPPED_S)
            os.kill(pid, signal.SIGCONT)
            over.wait(RUNS_S)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def trained(cluster: Cluster, folder: Path, *overrides: str) -> Iterator[tuple[Training, Channel]]:
    """A training on three nodes whose every step takes 0.2 s, and the channel for its notices."""
    often = folder / "often"
    often.mkdir()
    (often / "sitecustomize.py").write_text(OFTEN)
    with channel(address=cluster.layout.controller_address) as told:
        training = submit(
            cluster,
            folder,
            *("model.init_args.step_s=0.2", "preflight.monitor_interval_s=0"),
            *("notify.urls_from=CHAT", "notify.events=[straggler]", "notify.timeout_s=60"),
            *overrides,
            env={"CHAT": told.url, "PYTHONPATH": str(often)},
        )
        yield training, told
        cluster.cancel(training.job_id)
        training.wait_end()


def held_up(training: Training) -> list[str]:
    """The nodes that the supervisor's log names."""
    said = training.run.attempt(0).supervisor_log.read_text()
    return re.findall(r"(\S+) (?:holds the other nodes up|differs from the other nodes)", said)


@pytest.mark.parametrize("node", ["node1", "node3"])
def test_a_node_whose_rank_is_slowed_is_named_and_no_other(
    slurm_cluster: Cluster, tmp_path: Path, node: str
) -> None:
    with trained(slurm_cluster, tmp_path) as (training, told):
        training.wait_step(0)
        (pid,) = training.pids(node)
        with slowed(pid):
            until(lambda: told.came, "the notice", 240)
            training.wait_step(0, new=min(b.step for b in training.beats(0)) + 10)
        assert told.titles == [f"tiny: {node} is a straggler"]
        assert held_up(training) == [node]
        wait = re.search(
            r"up: (\S+) s of each step .* others need (\S+) s", told.came[0]["message"]
        )
        assert wait
        assert float(wait[1]) > 2 * float(wait[2])


def test_a_node_whose_data_are_slow_is_named_and_no_other(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    slow = ("data.class_path=tests.faults.tiny.SlowData", "data.init_args.slow_node=node2")
    with trained(slurm_cluster, tmp_path, *slow) as (training, told):
        until(lambda: told.came, "the notice", 240)
        assert told.titles == ["tiny: node2 is a straggler"]
        assert held_up(training) == ["node2"]


def test_of_nodes_that_are_alike_nobody_is_named(slurm_cluster: Cluster, tmp_path: Path) -> None:
    with trained(slurm_cluster, tmp_path, "model.init_args.step_s=0.8") as (training, told):
        training.wait_step(0, new=70)
        assert all(beat.own_s for beat in training.beats(0))
        assert (held_up(training), told.came) == ([], [])
