"""The node monitors beside the ranks: one small process a node, ended with the ranks."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import RunDir
from hpc_train.slurm.inherit import for_step
from hpc_train.slurm.step import one_a_node, start_step
from hpc_train.supervisor.allocation import Allocation

# The node's name is known on the node alone: its shell puts it into the file's name.
NODE_SCRIPT = (
    'exec "$0" -m hpc_train.preflight.monitor --path "$1/$SLURMD_NODENAME.jsonl" --interval "$2"'
    ' --prometheus "$3"'
)


@contextlib.contextmanager
def monitored(
    plan: Plan,
    allocation: Allocation,
    run: RunDir,
    nodes: Sequence[str],
    environ: Mapping[str, str],
) -> Iterator[None]:
    """Sample every node into `monitor/NODE.jsonl` for the time of the block."""
    if plan.preflight.monitor_interval_s <= 0:
        yield
        return
    run.monitor.mkdir(exist_ok=True)
    argv = _argv(plan, allocation, str(run.monitor), nodes)
    process = start_step(argv, for_step(environ), run.monitor / "monitor.log")
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _argv(plan: Plan, allocation: Allocation, folder: str, nodes: Sequence[str]) -> list[str]:
    interval = f"{plan.preflight.monitor_interval_s:g}"
    prometheus = plan.preflight.prometheus_dir or ""
    if allocation.has_steps:
        # The ranks' step holds all of the job's memory and GPUs; 0 asks for none of its own.
        alone = ["--mem=0", "--gres=none"]
        script = ["sh", "-c", NODE_SCRIPT, plan.shell.python, folder, interval, prometheus]
        return [*one_a_node(nodes, allocation.srun), *alone, *script]
    path = f"{folder}/{nodes[0].split('/')[0]}.jsonl"
    command = ("-m", "hpc_train.preflight.monitor", "--path", path, "--interval", interval)
    return [sys.executable, *command, "--prometheus", prometheus]
