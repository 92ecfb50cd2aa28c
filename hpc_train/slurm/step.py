"""Steps beside the training: one process a node, ended by us, of which nothing stays."""

from __future__ import annotations

import os
import random
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

SRUN_LOG = "srun.log"
POLL_S = 0.05
LEAVE_S = 0.7  # after the answer a probe ends at once, or not at all


def one_a_node(nodes: Sequence[str], srun: Sequence[str] = ("srun",)) -> list[str]:
    """The beginning of an srun command that starts one process on each of `nodes`."""
    # The death of one probe is a finding and must not end the others; --overlap lets them run
    # beside whatever else the job runs (srun(1)).
    return [
        *srun,
        f"--nodes={len(nodes)}",
        f"--ntasks={len(nodes)}",
        "--ntasks-per-node=1",
        f"--nodelist={','.join(nodes)}",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--overlap",
        "--mpi=none",
    ]


def start_step(
    argv: Sequence[str], environ: Mapping[str, str], log: Path, *, cwd: str | None = None
) -> subprocess.Popen[bytes]:
    """Start a step in the background; what srun and its tasks say is added to `log`."""
    with log.open("ab") as stream:
        return subprocess.Popen(
            list(argv),
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def run_step(
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str,
    folder: Path,
    is_done: Callable[[], bool],
    limit_s: float,
) -> None:
    """Run a step until it ends, `is_done` says so, or the limit; nothing of it stays."""
    process = start_step(argv, environ, folder / SRUN_LOG, cwd=cwd)
    deadline = time.monotonic() + limit_s
    while process.poll() is None and time.monotonic() < deadline and not is_done():
        time.sleep(POLL_S)
    try:
        process.wait(timeout=LEAVE_S)
    except subprocess.TimeoutExpired:
        # A stopped probe keeps its step: srun's own SIGTERM handling ends it on the other nodes.
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=LEAVE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def node_shell(per_node: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A shell that exports what one node alone needs, where there is such a node."""
    cases = [
        f"{shlex.quote(node)}) export "
        + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        + " ;;"
        for node, variables in per_node.items()
        if variables
    ]
    if not cases:
        return []
    script = "\n".join(['case "$SLURMD_NODENAME" in', *cases, "esac", 'exec "$@"'])
    return ["sh", "-c", script, "sh"]


def free_port() -> int:
    """A TCP port that is free on this machine now, outside the range that connections draw from."""
    for _ in range(64):
        port = random.randrange(20000, 29999)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError("no free TCP port between 20000 and 29999 on this machine")
