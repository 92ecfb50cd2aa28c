"""Starting the ranks of an attempt: srun on Slurm, torch's elastic launcher on one machine."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.plan import env_names
from hpc_train.plan.container import check_runtime, srun_options
from hpc_train.plan.payload import payload_of
from hpc_train.plan.plan import Plan
from hpc_train.plan.shell import environment_lines
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.parent_death import signal_at_parents_death
from hpc_train.runs.process_group import signal_group
from hpc_train.runs.snapshot import copy_at
from hpc_train.slurm.inherit import for_step
from hpc_train.slurm.srun_words import launch_failures
from hpc_train.slurm.step import free_port, node_shell
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.deaths import Death, deaths_in_elastic_log, deaths_in_srun_log
from hpc_train.supervisor.gpus_here import gpus_here, of_node
from hpc_train.supervisor.script_resume import script_environment

# Where torch writes what it has recorded when a collective times out; c10d/FlightRecorder.cpp.
_FLIGHT_RECORDER_FILE = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")


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
            ended = process.returncode is not None
            signal_group(process.pid, signal.SIGKILL, is_reaped=ended)
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


@contextlib.contextmanager
def ended_with(ranks: Ranks) -> Iterator[None]:
    """Leave no rank behind where an error ends the block."""
    try:
        yield
    except BaseException:
        ranks.kill()
        raise


def start_ranks(
    plan: Plan,
    allocation: Allocation,
    run: RunDir,
    attempt: int,
    nodes: Sequence[str],
    environ: Mapping[str, str],
    *,
    per_node: Mapping[str, Mapping[str, str]],
    say: Callable[[str], None],
) -> Ranks:
    """Start one process a rank on `nodes`; each writes `rank-R.log` in the attempt's folder.

    Args:
        per_node: Variables that a node gets beside `environ`.
        say: Writes a line into the supervisor's log.
    """
    folder = run.attempt(attempt)
    environment = _order_of_sets(plan) | rank_environment(environ, run, attempt)
    environment |= code_paths(plan, environ) | script_environment(plan, run, attempt, say)
    if not any(name in environment | plan.shell.variables for name in _FLIGHT_RECORDER_FILE):
        environment[_FLIGHT_RECORDER_FILE[0]] = str(folder.flight_recorder)
    check_runtime(plan, is_slurm=allocation.is_slurm)
    if allocation.has_steps:
        environment |= _rendezvous(nodes[0])
        one_a_node = payload_of(plan).is_one_a_node
        if one_a_node:  # torchrun does not split logs, see srun_argv
            environment[env_names.RANK_LOG_DIR] = str(folder.path)
        argv = [*allocation.srun, *srun_argv(plan, folder, nodes, per_node)[1:]]
        process = _spawn(argv, environment, folder, plan, is_step=True)
        read_deaths = deaths_in_elastic_log if one_a_node else deaths_in_srun_log
        return Ranks([process], folder.launcher_log, read_deaths)
    environment[env_names.RANK_LOG_DIR] = str(folder.path)
    port, gpus = free_port(), gpus_here(environ)
    processes = [
        _spawn(
            payload_of(plan).node_argv(node, port),
            environment | of_node(plan.shape, node, gpus),
            folder,
            plan,
        )
        for node in range(plan.shape.nodes)
    ]
    return Ranks(processes, folder.launcher_log, deaths_in_elastic_log)


def _order_of_sets(plan: Plan) -> dict[str, str]:
    """What follows from it, numbers of classes say, is alike on all ranks and in each attempt.

    Source: python(1), PYTHONHASHSEED. What the user has set outranks it.
    """
    return {"PYTHONHASHSEED": str(plan.training.seed % 2**32)}


def rank_environment(environ: Mapping[str, str], run: RunDir, attempt: int) -> dict[str, str]:
    """The supervisor's environment as a rank should get it."""
    return for_step(environ) | {
        env_names.RUN_DIR: str(run.path),
        env_names.ATTEMPT: str(attempt),
    }


def code_paths(plan: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    """Folders of modules in the project are those of its copy: src/ of `pip install -e`, say.

    PYTHONPATH comes before what is installed, and processes that a rank starts have it as well.
    """
    copy = copy_at(Path(plan.workdir))
    if copy is None:
        return {}
    given = [folder for folder in environ.get("PYTHONPATH", "").split(":") if folder]
    own = {folder: copy.counterpart(folder) for folder in (*given, *sys.path) if folder}
    folders = [str(found) for found in own.values() if found is not None]
    return {"PYTHONPATH": ":".join([*folders, *(item for item in given if own[item] is None)])}


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
    shape, payload = plan.shape, payload_of(plan)
    tasks = 1 if payload.is_one_a_node else shape.ranks_per_node
    cpus = plan.slurm.cpus_per_rank
    if payload.is_one_a_node:  # one task has them all
        cpus = (cpus or 1) * shape.ranks_per_node
    output = [f"--output={_srun_pattern(folder.path)}/rank-%t.log"]
    return [
        "srun",
        f"--nodes={shape.nodes}",
        f"--ntasks={shape.nodes * tasks}",
        f"--ntasks-per-node={tasks}",
        *([f"--cpus-per-task={cpus}"] if cpus else []),
        f"--nodelist={','.join(nodes)}",
        "--distribution=block",
        "--kill-on-bad-exit=1",
        "--mpi=none",
        "--open-mode=append",
        *([] if payload.is_one_a_node else output),  # else each rank finds its own
        *srun_options(plan),
        *node_shell(per_node),
        *payload.rank_argv(),
    ]


def _rendezvous(first_node: str) -> dict[str, str]:
    # MASTER_ADDR is always given: Lightning reads rack[1-2]n[01-02] as rack1.
    return {env_names.MASTER_ADDR: first_node, env_names.MASTER_PORT: str(free_port())}


def _srun_pattern(folder: Path) -> str:
    # srun(1), "filename pattern": %% is a single percent sign.
    return str(folder).replace("%", "%%")


def _spawn(
    argv: list[str],
    environment: dict[str, str],
    folder: AttemptDir,
    plan: Plan,
    *,
    is_step: bool = False,
) -> subprocess.Popen[bytes]:
    if not is_step and (plan.shell.setup or plan.shell.variables or plan.shell.passthrough):
        # In a step these lines have been run before; here each launcher runs them itself.
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
            preexec_fn=_stop_at_srun if is_step else _stop_at_launcher,
        )


def _stop_at_srun() -> None:
    """A supervisor that is killed has its ranks save and leave (prctl(2)).

    srun forwards SIGUSR2 to its tasks; at SIGTERM it would kill them at once (srun(1), SIGNALS).
    """
    signal_at_parents_death(signal.SIGUSR2)


def _stop_at_launcher() -> None:
    """The same for torch's elastic launcher, which forwards SIGTERM."""
    signal_at_parents_death(signal.SIGTERM)
