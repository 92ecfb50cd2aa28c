"""A memory without its unit, where Slurm is: with the unit it may be more than any node has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hpc_train.errors import ConfigError, SlurmError


@contextlib.contextmanager
def memory_of_slurm(cluster: str | None) -> Iterator[None]:
    """Where the block refuses a memory for want of its unit, say as well what nodes have.

    What is written with its unit would be refused next.

    Args:
        cluster: `slurm` or `local`; None finds it out, once one is refused.
    """
    try:
        yield
    except ConfigError as error:
        told = (it for it in (error, *error.others) if isinstance(it, ConfigError))
        refused = [it for it in told if it.memory]
        if refused and _is_slurm(cluster):
            for it in refused:
                _tell_more(it)
        raise


def _is_slurm(cluster: str | None) -> bool:
    from hpc_train.backends.submit import detect_cluster  # on the way to an error

    try:
        return (cluster or detect_cluster()) == "slurm"
    except SlurmError:
        return False


def _tell_more(error: ConfigError) -> None:
    from hpc_train.slurm.partitions import memory_refusal

    option = error.keys[0].removeprefix("slurm.").replace("_", "-")
    why, fix = memory_refusal(option, error.memory)
    if why:
        error.message, error.hint = f"{error.message}, and as {error.memory} {why}", fix
        error.args = (error.message,)
