"""A memory without its unit, where Slurm is: with the unit it may be more than any node has."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from hpc_train.config.keys import MEMORY_KEYS
from hpc_train.errors import ConfigError, SlurmError

_WITH_UNIT = re.compile(r'write (?:slurm\.)?\w+(?:: "|=)(\d+[A-Z])"?\Z')


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
        from hpc_train.backends.submit import detect_cluster  # on the way to an error

        told = [it for it in (error, *error.others) if isinstance(it, ConfigError)]
        refused = [it for it in told if _size(it)]
        with contextlib.suppress(SlurmError):
            if refused and (cluster or detect_cluster()) == "slurm":
                for it in refused:
                    _tell_more(it)
        raise


def _size(error: ConfigError) -> str:
    """`2000000M` of a refusal that names it; empty for others."""
    keys = {f"slurm.{key}" for key in MEMORY_KEYS}
    found = _WITH_UNIT.match(error.hint) if keys & {*error.keys} else None
    is_written = found and re.search(rf"(?:is |: '){found[1][:-1]}\b", error.message)
    return found[1] if found and is_written else ""  # an example is none


def _tell_more(error: ConfigError) -> None:
    from hpc_train.slurm.partitions import foreseen_refusal

    option = error.keys[0].removeprefix("slurm.").replace("_", "-")
    size = _size(error)
    said = foreseen_refusal({option: size})
    if f"is {size}; no node of the partition has so much" not in said:
        return
    why, _, fix = said.partition("; ")[2].rpartition(": ")
    error.message, error.hint = f"{error.message}, and as {size} {why}", fix
    error.args = (error.message,)
