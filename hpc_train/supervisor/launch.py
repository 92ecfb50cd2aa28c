"""Starting the ranks of an attempt: srun on Slurm, torch's elastic launcher on one machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.plan import env_names
from hpc_train.plan.payload import payload_of
from hpc_train.plan.plan import Plan, Shape
from hpc_train.plan.shell import environment_lines
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.slurm.inherit import for_step
from hpc_train.slurm.srun_words import launch_failures
from hpc_train.slurm.step import free_port, node_shell
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.deaths import Death, deaths_in_elastic_log, deaths_in_srun_log

__all__ = ["Ranks", "rank_environment", "srun_argv", "start_ranks"]

PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class Ranks:
    """The launcher processes of an attempt, and how to read what they say of their ranks."""

    processes: Sequence[subprocess.Popen[bytes]]
    log: Path
    read_deaths: Callable[[str], list[Death]]

    def poll(self) -> int | None:
        """None while ranks may run; 0 if all launchers ended well, else the first bad status."""
        codes = [process.poll() for process in self.processes]
        if any(code is None for code in codes):
            return None
        return next((code for code in codes if code), 0)

    def send(self, number: signal.Signals) -> None:
        """Signal the launchers that still run."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def kill(self) -> None:
        """End the launchers, and with them their ranks: SIGTERM, and SIGKILL to what stays."""
        self.send(signal.SIGTERM)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=3)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def said(self) -> str:
        """What the launchers wrote so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def unlaunched(self, nodes: Sequence[str]) -> dict[str, str]:
        """Nodes on which srun could not start the ranks, with its words."""
        return launch_failures(self.said(), nodes)

    def deaths(self) -> list[Death]:
        """Ranks that ended before the launcher began to stop the others, first one first."""
        return self.read_deaths(self.said())


def start_ranks(
    plan: Plan,
    allocation: Allocation,
    run: RunDir,
    attempt: int,
    nodes: Sequence[str],
    environ: Mapping[str, str],
    *,
    per_node: Mapping[str, Mapping[str, str]],
) -> Ranks:
    """Start one process a rank on `nodes`; each writes `rank-R.log` in the attempt's folder.

    Args:
        per_node: Variables that a node gets beside `environ`.
    """
    folder = run.attempt(attempt)
    environment = rank_environment(environ, run, attempt)
    if allocation.is_slurm:
        environment |= _rendezvous(nodes[0])
        process = _spawn(srun_argv(plan, folder, nodes, per_node), environment, folder, plan)
        return Ranks([process], folder.launcher_log, deaths_in_srun_log)
    environment[env_names.RANK_LOG_DIR] = str(folder.path)
    port = free_port()
    processes = [
        _spawn(
            payload_of(plan).node_argv(node, port),
            environment | _own_gpus(plan.shape, node, environ),
            folder,
            plan,
        )
        for node in range(plan.shape.nodes)
    ]
    return Ranks(processes, folder.launcher_log, deaths_in_elastic_log)


def rank_environment(environ: Mapping[str, str], run: RunDir, attempt: int) -> dict[str, str]:
    """The supervisor's environment as a rank should get it."""
    return for_step(environ) | {
        env_names.RUN_DIR: str(run.path),
        env_names.ATTEMPT: str(attempt),
    }


def srun_argv(
    plan: Plan,
    folder: AttemptDir,
    nodes: Sequence[str],
    per_node: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """The srun command of the ranks' step.

    --nodes, --ntasks and --ntasks-per-node go together always: srun inherits the batch step's
    otherwise. --cpus-per-task is not inherited since Slurm 22.05 (RELEASE_NOTES).
    """
    shape = plan.shape
    cpus = plan.slurm.cpus_per_rank
    return [
        "srun",
        f"--nodes={shape.nodes}",
        f"--ntasks={shape.world_size}",
        f"--ntasks-per-node={shape.ranks_per_node}",
        *([f"--cpus-per-task={cpus}"] if cpus else []),
        f"--nodelist={','.join(nodes)}",
        "--distribution=block",
        "--kill-on-bad-exit=1",
        "--mpi=none",
        "--open-mode=append",
        f"--output={_srun_pattern(folder.path)}/rank-%t.log",
        *node_shell(per_node),
        *payload_of(plan).rank_argv(),
    ]


def _rendezvous(first_node: str) -> dict[str, str]:
    # MASTER_ADDR is always given: Lightning reads rack[1-2]n[01-02] as rack1.
    return {env_names.MASTER_ADDR: first_node, env_names.MASTER_PORT: str(free_port())}


def _own_gpus(shape: Shape, node: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Each simulated node gets its own of the visible GPUs, where there are enough for all."""
    visible = [part for part in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part]
    per_node = shape.gpus_per_node
    if not per_node or len(visible) < shape.nodes * per_node:
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(visible[node * per_node : (node + 1) * per_node])}


def _srun_pattern(folder: Path) -> str:
    # srun(1), "filename pattern": %% is a single percent sign.
    return str(folder).replace("%", "%%")


def _spawn(
    argv: list[str], environment: dict[str, str], folder: AttemptDir, plan: Plan
) -> subprocess.Popen[bytes]:
    if argv[0] != "srun" and (plan.shell.setup or plan.shell.variables or plan.shell.passthrough):
        # On Slurm the batch script has run these lines; here each launcher runs them itself.
        lines = [*environment_lines(plan.shell), 'exec "$@"']
        argv = ["bash", "-c", "\n".join(lines), "bash", *argv]
    with folder.launcher_log.open("ab") as log:
        return subprocess.Popen(
            argv,
            env=environment,
            cwd=plan.workdir,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C is for the supervisor, which asks the ranks to save
            preexec_fn=_stop_at_srun if argv[0] == "srun" else _stop_at_launcher,
        )


def _stop_at_srun() -> None:
    """A supervisor that is killed has its ranks save and leave (prctl(2)).

    srun forwards SIGUSR2 to its tasks; at SIGTERM it would kill them at once (srun(1), SIGNALS).
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGUSR2)


def _stop_at_launcher() -> None:
    """The same for torch's elastic launcher, which forwards SIGTERM."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
