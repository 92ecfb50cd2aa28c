"""A training on machines that are started by hand: a line for each of them. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from hpc_train.config.hosts import read_hosts
from hpc_train.errors import CheckError, UsageError
from hpc_train.plan.plan import Plan

MASTER_PORT = 29500  # torchrun's own
_MASTER = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})\Z", re.ASCII)


def read_master(text: str) -> tuple[str, int]:
    """`HOST:PORT`; an IPv6 address stands in brackets.

    Raises:
        UsageError: it is something else.
    """
    found = _MASTER.match(text)
    if found is None or not 1 <= int(found[2]) <= 65535:
        raise UsageError(
            f"--master {text!r} is not HOST:PORT", f"write the first machine: a:{MASTER_PORT}"
        )
    return found[1].strip("[]"), int(found[2])


def by_env(plan: Plan, master: tuple[str, int] | None, words: Sequence[str]) -> str:
    """`hpc-train run` on each machine, which reads its place from the environment.

    Args:
        plan: With its hosts, and the working folder that all of them see.
        master: Where the ranks meet; by default the first host.
        words: Of `hpc-train run`.
    """

    def line(rank: int, nodes: int, address: str, port: int) -> str:
        place = f"MASTER_ADDR={address} MASTER_PORT={port} NNODES={nodes} NODE_RANK={rank}"
        return f"{place} {shlex.join(['hpc-train', 'run', *words])}"

    return _lines(plan, master, line)


def by_torchrun(plan: Plan, master: tuple[str, int] | None) -> str:
    """Torchrun and the script on each machine, with nothing of hpc-train around it.

    Raises:
        CheckError: there is no script: what a config names, torchrun cannot start.
    """
    script = plan.script
    if script is None:
        raise CheckError(
            "torchrun starts scripts, and this is a config", "--launcher env does it for both"
        )

    def line(rank: int, nodes: int, address: str, port: int) -> str:
        words = [
            "torchrun",
            f"--nnodes={nodes}",
            f"--nproc-per-node={plan.shape.ranks_per_node}",
            f"--node-rank={rank}",
            f"--master-addr={address}",
            f"--master-port={port}",
            script.path,
            *script.args,
        ]
        return shlex.join(words)

    return _lines(plan, master, line)


def _lines(
    plan: Plan, master: tuple[str, int] | None, line: Callable[[int, int, str, int], str]
) -> str:
    hosts = read_hosts(plan.hosts)[: plan.shape.nodes]
    address, port = master or (hosts[0].name, MASTER_PORT)
    folder = shlex.quote(plan.workdir)
    lines = [
        f"# on {host.name}\ncd {folder} && {line(rank, len(hosts), address, port)}\n"
        for rank, host in enumerate(hosts)
    ]
    return "".join(lines)
