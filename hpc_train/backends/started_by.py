"""Whether a launcher has started this process several times, where one is meant to start ranks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from hpc_train.errors import CheckError
from hpc_train.slurm.own_step import own_step, titles_above

# The variable in which a launcher says how many it has started, and what its process is called:
# torchrun, `accelerate launch` and deepspeed; Open MPI; MPICH, Intel MPI and MVAPICH.
_TORCH = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate")
_MPI = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "orted", "prted")
_LAUNCHERS = (
    ("WORLD_SIZE", (*_TORCH, "accelerate-launch", "deepspeed", "deepspeed.launcher.launch")),
    ("OMPI_COMM_WORLD_SIZE", _MPI),
    ("PMI_SIZE", (*_MPI, "hydra_pmi_proxy")),
    ("MV2_COMM_WORLD_SIZE", (*_MPI, "hydra_pmi_proxy")),
)
_OURS = ("hpc-train", "hpc_train.cli")
_BETWEEN = ("bash", "sh", "dash", "zsh", "env", "timeout", "nice", "numactl", "taskset")
_FIRST_WORDS = 4  # python -u -m torch.distributed.run


def refuse_several(environ: Mapping[str, str], proc: Path = Path("/proc")) -> None:
    """Refuse to make a run where each of several processes would make one.

    A variable alone says nothing: it may be left in a shell, or have come along with a job. Nor is
    what a rank of some training types refused: the launcher has to stand right above this process,
    which is hpc-train or a script that calls its Python interface.

    Args:
        proc: Where the processes are.

    Raises:
        CheckError: with the launcher to leave out.
    """
    launcher, number = _launcher_of(environ, proc)
    if number.isdigit() and int(number) > 1:
        is_command = bool(set(_OURS) & set(_words(next(titles_above(proc), ""))))
        shape = "--nodes and --gpus say" if is_command else "load(PATH, nodes=3, gpus=4) says"
        one = "" if is_command else "; one rank alone: subprocess.run(['hpc-train', 'submit', ...])"
        raise CheckError(
            f"{launcher} has started this {number} times, and each would make a run of its own: one"
            " starts all the ranks itself",
            f"leave {launcher} out: {shape} how many ranks there are{one}",
        )


def _launcher_of(environ: Mapping[str, str], proc: Path) -> tuple[str, str]:
    for title in islice(titles_above(proc), 1, None):  # those above this process
        if title.startswith("slurmstepd:"):  # a shell of srun --pty is that of task 0 alone
            is_task = own_step(environ, proc) and "SLURM_PTY_PORT" not in environ
            return ("srun", environ.get("SLURM_STEP_NUM_TASKS", "")) if is_task else ("", "")
        words = _words(title)
        for name, known in _LAUNCHERS:
            if name in environ and (launcher := next((it for it in words if it in known), "")):
                return launcher, environ[name]
        if words[0] not in _BETWEEN:
            break
    return "", ""


def _words(title: str) -> list[str]:
    return [Path(word).name for word in title.split("\0")[:_FIRST_WORDS]]
