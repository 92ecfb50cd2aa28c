"""All ranks meet before anything waits for them, and a rank that does not come is named.

A process group that lacks a member hangs for its timeout, half an hour with gloo. Here every rank
leaves a report in the store of the rendezvous, rank 0 reads all of them, and all get its answer
within a deadline. The same store then serves the process group, so the port is bound once.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hpc_train.errors import CheckError
from hpc_train.plan.hostlist import fold_numbers
from hpc_train.plan.world import World
from hpc_train.training.rank_failure import PeerError

if TYPE_CHECKING:
    from hpc_train.training.private.torch_store import Store

_ARRIVED = "arrived"
_VERDICT = "verdict"
_READ = "read"
_PREFIX = "hpc_train/world"
_POLL_S = 0.02
_READ_S = 5.0  # for the others to read a bad verdict
_GRACE_S = 10.0  # others wait this much longer than rank 0, which then can still say who is missing

# Fields of a report, what they are, and the fix where they differ.
_SAME_ON_ALL = {
    "world_size": ("world sizes", "all ranks have to come from one srun or torchrun"),
    "plan_hash": ("plans", "plan.json changed between starts, or a node sees another file system"),
    "device": (
        "devices",
        "a node lost its GPUs: hpc-train preflight tells which; or write trainer.accelerator: cpu",
    ),
}


@dataclass(frozen=True, kw_only=True)
class RankReport:
    """What one rank says of itself; the others have to say the same where it matters.

    Attributes:
        host: Host name of its node.
        device: cuda or cpu; a mixed world would wait for a backend that half of it lacks.
        gpu_uuid: Of the GPU it will use; empty on a CPU.
        versions: Of packages whose messages cross the network, by name.
    """

    rank: int
    node_rank: int
    world_size: int
    host: str
    plan_hash: str
    device: str
    gpu_uuid: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def open_store(world: World, environ: Mapping[str, str], *, timeout_s: float) -> Store:
    """Bind (rank 0) or reach (the others) the rendezvous.

    Under torchrun the agent has bound the port already and every rank is a client
    (torch.distributed.rendezvous, TORCHELASTIC_USE_AGENT_STORE).

    Raises:
        PeerError: the name does not resolve, the port is taken, or nobody answers in time.
    """
    from torch.distributed import DistError

    from hpc_train.training.private.torch_store import PrefixStore, TCPStore

    _check_resolves(world)
    here = socket.gethostname()
    binds = world.rank == 0 and environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        store = TCPStore(
            world.master_addr,
            world.master_port,
            world_size=world.world_size,
            is_master=binds,
            timeout=timedelta(seconds=timeout_s),
            wait_for_workers=False,
        )
    except DistError as error:
        place = f"{world.master_addr}:{world.master_port}"
        if binds:
            raise PeerError(
                f"rank 0 cannot open {place} on {here}: {_first_line(error)}",
                "another process has the port, or MASTER_ADDR is not an address of this node; "
                "the next attempt takes another port",
            ) from error
        raise PeerError(
            f"rank {world.rank} on {here} could not reach rank 0 at {place} within "
            f"{timeout_s:.0f} s",
            "rank 0 never came, or a firewall or the wrong interface is in between: "
            "hpc-train preflight tells",
        ) from error
    return PrefixStore(_PREFIX, store)


def _check_resolves(world: World) -> None:
    try:
        socket.getaddrinfo(world.master_addr, world.master_port)
    except OSError as error:
        raise PeerError(
            f"MASTER_ADDR {world.master_addr} does not resolve on {socket.gethostname()}",
            "this node's /etc/hosts or DNS lacks the first node; exclude it or export an address",
        ) from error


def _first_line(error: Exception) -> str:
    if "EADDRINUSE" in str(error):
        return "the port is in use"
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def announce(store: Store, report: RankReport) -> None:
    """Leave this rank's report for rank 0; does not wait."""
    store.set(str(report.rank), json.dumps(asdict(report)))
    store.add(_ARRIVED, 1)


def verify(store: Store, world: World, *, deadline_s: float) -> None:
    """Wait until rank 0 has seen every report and found that they fit together.

    Args:
        deadline_s: From now.

    Raises:
        PeerError: ranks did not come; they and their nodes are named.
        CheckError: all came and do not fit together.
    """
    if world.rank == 0:
        verdict = _judge(store, world, deadline_s)
        store.set(_VERDICT, json.dumps(verdict))
        if verdict["message"]:
            _wait_for_readers(store)
    else:
        verdict = _await_verdict(store, world, deadline_s + _GRACE_S)
    if verdict["message"]:
        kind = PeerError if verdict["missing"] else CheckError
        raise kind(verdict["message"], verdict["hint"])


def _judge(store: Store, world: World, deadline_s: float) -> dict[str, Any]:
    give_up = time.monotonic() + deadline_s
    while store.add(_ARRIVED, 0) < world.world_size and time.monotonic() < give_up:
        time.sleep(_POLL_S)
    came = [rank for rank in range(world.world_size) if store.check([str(rank)])]
    reports = [RankReport(**json.loads(store.get(str(rank)))) for rank in came]
    text = missing_text(reports, world, deadline_s)
    if text:
        hint = "their nodes' logs say more; a network that blocks them does too"
        return {"missing": True, "message": text, "hint": hint}
    text, hint = mismatch(reports)
    return {"missing": False, "message": text, "hint": hint}


def _wait_for_readers(store: Store) -> None:
    """The store lives in rank 0, which is about to leave: let those that came read first."""
    give_up = time.monotonic() + _READ_S
    while store.add(_READ, 0) < store.add(_ARRIVED, 0) - 1 and time.monotonic() < give_up:
        time.sleep(_POLL_S)


def _await_verdict(store: Store, world: World, timeout_s: float) -> dict[str, Any]:
    from torch.distributed import DistError

    try:
        store.wait([_VERDICT], timedelta(seconds=timeout_s))
        verdict: dict[str, Any] = json.loads(store.get(_VERDICT))
        store.add(_READ, 1)
    except DistError as error:
        raise PeerError(
            f"rank 0 on {world.master_addr} said nothing for {timeout_s:.0f} s, or is gone",
            "its log says why",
        ) from error
    return verdict


def missing_text(reports: Sequence[RankReport], world: World, waited_s: float) -> str:
    """Name the ranks that left no report, and their nodes as far as somebody came from there."""
    came = {report.rank for report in reports}
    missing = [rank for rank in range(world.world_size) if rank not in came]
    if not missing:
        return ""
    hosts = {report.node_rank: report.host for report in reports}
    nodes = list(dict.fromkeys(rank // world.ranks_per_node for rank in missing))
    places = ", ".join(hosts.get(node, f"node {node}") for node in nodes)
    word = "rank" if len(missing) == 1 else "ranks"
    return f"{word} {fold_numbers(missing)} never came ({places}) within {waited_s:.0f} s"


def mismatch(reports: Sequence[RankReport]) -> tuple[str, str]:
    """What does not fit together and the fix; two empty texts where all does."""
    duplicate, of_whom = _shared_gpu(reports)
    if duplicate:
        return duplicate, of_whom
    checks = [
        (what, {item.rank: str(getattr(item, name)) for item in reports}, hint)
        for name, (what, hint) in _SAME_ON_ALL.items()
    ]
    checks += [
        (
            f"versions of {name}",
            {item.rank: item.versions.get(name, "none") for item in reports},
            "all nodes need the same environment (env.conda, env.venv, env.modules)",
        )
        for name in sorted({name for item in reports for name in item.versions})
    ]
    for what, values, hint in checks:
        if len(set(values.values())) > 1:
            return f"{what} differ: {_grouped(values, reports)}", hint
    return "", ""


def _shared_gpu(reports: Sequence[RankReport]) -> tuple[str, str]:
    owners: dict[tuple[str, str], int] = {}
    for report in reports:
        gpu = (report.host, report.gpu_uuid)
        if report.gpu_uuid and owners.setdefault(gpu, report.rank) != report.rank:
            what = (
                f"ranks {owners[gpu]} and {report.rank} on {report.host} would use the same GPU "
                f"({report.gpu_uuid})"
            )
            return what, _a_gpu_each(report.host, reports)
    return "", ""


def _a_gpu_each(host: str, reports: Sequence[RankReport]) -> str:
    gpus = [report.gpu_uuid for report in reports if report.host == host]
    seen = len(set(gpus))
    return (
        f"{len(gpus)} ranks of {host} see {seen} GPU{'s' * (seen > 1)} together: --gpus {seen} "
        "(slurm.gpus_per_node) if it has no more, else a GPU for each rank: "
        "srun --gpus-per-task=1, or none bound"
    )


def _grouped(values: Mapping[int, str], reports: Sequence[RankReport]) -> str:
    """`2.6.0 on ranks 0-3 (node1), 2.5.1 on ranks 4-7 (node2)`."""
    hosts = {report.rank: report.host for report in reports}
    parts = []
    for value in dict.fromkeys(values.values()):
        ranks = [rank for rank, item in values.items() if item == value]
        places = ", ".join(dict.fromkeys(hosts[rank] for rank in ranks))
        parts.append(f"{value} on ranks {fold_numbers(ranks)} ({places})")
    return ", ".join(parts)
