"""Whether this process is itself a task of a step that srun has started, and may start another.

A step holds the CPUs and GPUs of its nodes (srun(1), --exact and --overlap, since Slurm 20.11), so
that the ranks' step would wait for its end: for ever, where it waits for the ranks. Not so in what
`salloc` starts by `LaunchParameters=use_interactive_step`, nor in a step with --overlap. No
variable tells that one apart, and neither does `scontrol show step` (22.05): Slurm is asked for a
step at once. Nor do variables tell that this is a step: those of the step in which `sbatch` or
`salloc` was typed come along with the job (22.05).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hpc_train.errors import CheckError, SlurmError
from hpc_train.plan.hostlist import expand
from hpc_train.plan.plan import Shape
from hpc_train.slurm.command import run
from hpc_train.slurm.inherit import for_step
from hpc_train.slurm.jobs import steps_of

# SLURM_MAX_NORMAL_STEP_ID (slurm/slurm.h): the batch script, the interactive step and others are
# above it, or -5, -6 in newer versions.
_MOST_STEPS = 0xFFFFFFF0
# How slurmstepd calls itself (`setproctitle` in src/slurmd/slurmstepd): [7.0], [7.batch].
_STEP_DAEMON = re.compile(r"slurmstepd: \[(?:StepId=)?(\d+\.\d+)\]")
_BUSY = "Requested nodes are busy"
_ASK_S = 30.0
_PLACES = "an salloc or a batch script, or hpc-train submit"


def refuse_within_step(
    environ: Mapping[str, str], shape: Shape, proc: Path = Path("/proc")
) -> None:
    """Refuse to train where srun has started the trainer and its step holds what the ranks need.

    Raises:
        CheckError: srun has started several of them, or Slurm starts no step beside this one.
    """
    step = own_step(environ, proc)
    if not step:
        return
    tasks = environ.get("SLURM_STEP_NUM_TASKS", "1")
    is_shell = "SLURM_PTY_PORT" in environ  # of srun --pty: task 0 alone has the terminal
    if tasks.isdigit() and int(tasks) > 1 and not is_shell:
        raise CheckError(
            f"srun has started this {tasks} times, as step {step}; one starts all the ranks itself",
            f"leave srun out: hpc-train run in {_PLACES}",
        )
    if _holds_the_nodes(step, environ, shape):
        what = "this shell" if is_shell else "this"
        again = "start the shell with srun --overlap --pty; or " if is_shell else "leave srun out: "
        raise CheckError(
            f"srun has started {what} as step {step}, which holds the nodes: Slurm starts no ranks"
            f" beside it ({_BUSY})",
            f"{again}hpc-train run in {_PLACES}",
        )


def own_step(environ: Mapping[str, str], proc: Path = Path("/proc")) -> str:
    """`JOB.STEP` of the ordinary step whose task this process is; empty where it surely is none.

    Args:
        proc: Where the processes are, of which this one's daemon is an ancestor.
    """
    step = environ.get("SLURM_STEP_ID", "")
    is_task = "SLURM_PROCID" in environ and step.isdigit() and int(step) < _MOST_STEPS
    own = f"{environ.get('SLURM_JOB_ID', '')}.{step}"
    return own if is_task and own in _steps_above(proc) else ""


def is_batch_script(job: str, proc: Path = Path("/proc")) -> bool:
    """Whether the script that was given to sbatch is above this process; False where none tells."""
    batch = re.compile(rf"slurmstepd: \[(?:StepId=)?{re.escape(job)}\.batch\]")
    return any(map(batch.match, titles_above(proc)))


def _steps_above(proc: Path) -> Iterator[str]:
    """The steps whose daemons are above this process."""
    found = map(_STEP_DAEMON.match, titles_above(proc))
    return (step[1] for step in found if step)


def titles_above(proc: Path) -> Iterator[str]:
    """What this process and those above it are called; none that cannot be read (hidepid)."""
    process = str(os.getpid())
    try:
        while int(process) > 1:
            yield (proc / process / "cmdline").read_bytes().decode(errors="replace")
            status = (proc / process / "status").read_text(encoding="utf-8", errors="replace")
            process = status.partition("\nPPid:")[2].split(maxsplit=1)[0]
    except (OSError, ValueError, IndexError):
        return


def _holds_the_nodes(step: str, environ: Mapping[str, str], shape: Shape) -> bool:
    """Whether Slurm has no place for the ranks, and no step but this one is there."""
    nodes = expand(environ["SLURM_JOB_NODELIST"])[: shape.nodes]
    argv = [
        "srun",
        "--immediate=1",
        f"--nodes={len(nodes)}",
        f"--ntasks={len(nodes) * shape.ranks_per_node}",
        f"--ntasks-per-node={shape.ranks_per_node}",
        f"--nodelist={','.join(nodes)}",
        "--mpi=none",
        "true",
    ]
    try:
        said = run(argv, timeout_s=_ASK_S, env=for_step(environ))
        return _BUSY in said.stderr and steps_of(environ["SLURM_JOB_ID"]) == [step]
    except SlurmError:
        return False  # nobody knows: as without this question
