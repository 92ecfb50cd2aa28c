"""What Slurm knows of its nodes, and whether the slurmd of each answers."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hpc_train.errors import SlurmError
from hpc_train.slurm.command import run

DEFAULT_SLURMD_PORT = 6818  # slurm.conf(5), SlurmdPort
CONNECT_S = 2.0
# sinfo(1), NODE STATE CODES; a trailing "*" is a node that does not respond.
UNUSABLE = re.compile(r"(?:down|drain|fail|maint|unk|future|power|reboot)|.*\*", re.IGNORECASE)


def usable_nodes(partition: str) -> frozenset[str]:
    """Nodes of a partition (empty: of all) on which a job can start, now or once they are free.

    Raises:
        SlurmError: when Slurm cannot be asked.
    """
    where = [f"--partition={partition}"] if partition else []
    said = run(["sinfo", "--local", "--noheader", "--Node", *where, "--format=%N %T"], timeout_s=30)
    if said.returncode != 0:
        raise SlurmError(f"sinfo: {said.stderr.strip()}")
    rows = [line.split() for line in said.stdout.splitlines()]
    return frozenset(row[0] for row in rows if len(row) == 2 and not UNUSABLE.match(row[1]))


def answers(address: str, port: int) -> bool:
    """Whether something accepts TCP connections there; a refusal means that slurmd is dead."""
    try:
        with socket.create_connection((address, port), timeout=CONNECT_S):
            return True
    except OSError:
        return False


def nodes_that_do_not_answer(
    nodes: Sequence[str], known: dict[str, tuple[str, int]] | None = None
) -> tuple[str, ...]:
    """The nodes whose slurmd does not answer, all asked at once: seconds, whatever their number.

    When more than half of several do not answer, this node's own network is the likelier cause,
    and nobody is named.

    Args:
        known: Addresses and ports by node, as far as Slurm has been asked; what it says is added,
            and who asks again asks the nodes alone.
    """
    known = {} if known is None else known
    if not known.keys() >= set(nodes):
        known |= _told_addresses(nodes)
    addresses = {node: (node, DEFAULT_SLURMD_PORT) for node in nodes} | known
    with ThreadPoolExecutor(max_workers=min(64, len(nodes))) as pool:
        heard = list(pool.map(lambda node: answers(*addresses[node]), nodes))
    silent = tuple(node for node, there in zip(nodes, heard, strict=True) if not there)
    return () if len(nodes) > 1 and 2 * len(silent) > len(nodes) else silent


def silent_nodes(
    nodes: Sequence[str], known: dict[str, tuple[str, int]] | None = None
) -> tuple[str, ...]:
    """As `nodes_that_do_not_answer`; none where nobody can be asked for their addresses."""
    try:
        return nodes_that_do_not_answer(nodes, known)
    except SlurmError:
        return ()


def _told_addresses(nodes: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Address and slurmd port by node name; empty where the controller is away."""
    addresses = {}
    port = DEFAULT_SLURMD_PORT
    config = run(["scontrol", "show", "config"], timeout_s=10)
    if found := re.search(r"^SlurmdPort\s*=\s*(\d+)", config.stdout, re.MULTILINE):
        port = int(found.group(1))
    said = run(["scontrol", "show", "node", "-o", ",".join(nodes)], timeout_s=10)
    for line in said.stdout.splitlines():
        fields = dict(re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", line))
        name = fields.get("NodeName", "")
        if name in nodes:
            own_port = int(fields.get("Port", port) or port)
            addresses[name] = (fields.get("NodeAddr") or name, own_port)
    return addresses
