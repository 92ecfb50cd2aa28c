"""What Slurm knows of its nodes, and whether the slurmd of each answers."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from hpc_train.errors import SlurmError
from hpc_train.plan.hostlist import expand, folded
from hpc_train.slurm.command import PATIENCE_S, run

DEFAULT_SLURMD_PORT = 6818  # slurm.conf(5), SlurmdPort
CONNECT_S = 2.0
# sinfo(1), NODE STATE CODES; a trailing "*" is a node that does not respond.
UNUSABLE = re.compile(r"(?:down|drain|fail|maint|unk|future|power|reboot)|.*\*", re.IGNORECASE)
# The same, of these alone somebody says why, and a person has to see to them.
_OUT = re.compile(r"down|drain|fail", re.IGNORECASE)
_EITHER = "down or drained"
_TOLD = 4  # groups of nodes in one line
NodeState = tuple[str, str]  # sinfo's %T, and its %E: why somebody has set it down
NodeRow = tuple[str, str, str, str]  # the same, behind a partition (%P) and the node's name


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


def why_it_waits(options: Mapping[str, str | None]) -> str:
    """That a job waits for nodes which are down or drained; empty where those do not explain it.

    With these `sbatch --test-only` says "Requested node configuration is not available" [seen on
    22.05], and sbatch takes the job.

    Args:
        options: sbatch's long options by name; a partition has the nodes that they ask for.
    """
    if options.get("constraint"):
        return ""  # it may be that
    nodes = _nodes_for(options, _node_rows(timeout_s=30))
    out = _out_of(nodes, UNUSABLE, options)
    if not out:
        return ""
    return (
        f"it would wait, since {len(out)} of the {len(nodes)} nodes that it may have are down or"
        f" drained ({folded(out)}): `sinfo -R` says why, and nothing has to be changed"
    )


def down_for(options: Mapping[str, str | None]) -> str:
    """Of a job that waits: which nodes it waits for, since they are down or drained; else empty.

    Args:
        options: sbatch's long options by name.
    """
    try:
        rows = _node_rows(timeout_s=PATIENCE_S)
    except SlurmError:
        return ""  # the job is in the queue all the same
    out = down_nodes_for(options, rows)
    return f"{told_out(out)}: the job waits for {'them' if len(out) > 1 else 'it'}" if out else ""


def told_out(nodes: Mapping[str, NodeState]) -> str:
    """That these nodes cannot be had, and why where one reason stands for all; empty for none."""
    if not nodes:
        return ""
    whys = {reason for _, reason in nodes.values() if reason not in ("", "none")}
    why = f' ("{whys.pop()}")' if len(whys) == 1 else ""
    if len(nodes) > 1:
        states = {state.rstrip("*") for state, _ in nodes.values()}
        return f"{folded([*nodes])} are {states.pop() if len(states) == 1 else _EITHER}{why}"
    ((node, (state, _)),) = nodes.items()
    return f"{node} is {state.rstrip('*')}{why}"


def told_by_reason(nodes: Mapping[str, NodeState]) -> str:
    """The same, with the reason of each; empty for none."""
    groups: dict[NodeState, dict[str, NodeState]] = {}
    for node, (state, reason) in nodes.items():
        groups.setdefault((state.rstrip("*"), reason), {})[node] = (state, reason)
    told = [told_out(group) for group in groups.values()]
    more = ["more of them: `sinfo -R`"] if len(told) > _TOLD else []
    return "; ".join(told[:_TOLD] + more)


def nodes_out(rows: Sequence[NodeRow]) -> dict[str, NodeState]:
    """The nodes that a person has to see to before they take jobs: down, drained or failing.

    Args:
        rows: Of `known_nodes`.
    """
    return {node: (state, reason) for _, node, state, reason in rows if _OUT.match(state)}


def known_nodes() -> list[NodeRow]:
    """All nodes, once for each of their partitions; none where Slurm does not tell."""
    try:
        return _node_rows(timeout_s=2)
    except SlurmError:
        return []


def down_nodes_for(
    options: Mapping[str, str | None], rows: Sequence[NodeRow]
) -> dict[str, NodeState]:
    """The nodes that a job waits for, since they are down or drained; none where none is known.

    Args:
        options: sbatch's long options by name.
        rows: Of `known_nodes`.
    """
    if options.get("clusters"):
        return {}
    nodes = _nodes_for(options, rows)
    return {node: nodes[node] for node in _out_of(nodes, _OUT, options)}


def nodes_of_partition(options: Mapping[str, str | None], rows: Sequence[NodeRow]) -> list[str]:
    """The nodes that a job may have; none where its options do not tell."""
    return [*_nodes_for(options, rows)]


def _node_rows(*, timeout_s: float) -> list[NodeRow]:
    argv = ["sinfo", "--local", "--noheader", "--Node", "--format=%P|%N|%T|%E"]
    said = run(argv, timeout_s=timeout_s)
    cells = [line.split("|", 3) for line in said.stdout.splitlines() if line.count("|") >= 3]
    return [(name, node, state.strip(), reason.strip()) for name, node, state, reason in cells]


def _nodes_for(options: Mapping[str, str | None], rows: Sequence[NodeRow]) -> dict[str, NodeState]:
    """State and reason of each node that a job may have; none where the options do not tell."""
    nodelist, exclude = (options.get(it) or "" for it in ("nodelist", "exclude"))
    if options.get("reservation") or "/" in nodelist + exclude:
        return {}  # with a slash it is a file of names
    named = (options.get("partition") or "").split(",")
    wanted, left_out = (expand(it) if it else [] for it in (nodelist, exclude))
    return {
        node: (state, reason)
        for partition, node, state, reason in rows
        if (partition.rstrip("*") in named or (named == [""] and "*" in partition))
        and node not in left_out
        and node in (wanted or [node])
    }


def _out_of(
    nodes: Mapping[str, NodeState], states: re.Pattern[str], options: Mapping[str, str | None]
) -> list[str]:
    """Those in one of these states; none where the job can start without them."""
    out = [node for node, (state, _) in nodes.items() if states.match(state)]
    is_enough = len(nodes) - len(out) >= int(options.get("nodes") or 1)
    return [] if is_enough and not options.get("nodelist") else out


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
