"""Who am I among how many: SLURM_* or torchrun's variables, read once and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hpc_train.errors import CheckError
from hpc_train.plan import env_names
from hpc_train.plan.hostlist import expand
from hpc_train.plan.plan import Shape

Launcher = Literal["slurm", "torchrun", "single"]

_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?\Z", re.ASCII)
_LOCALHOST = "127.0.0.1"
_NO_DEVICES = frozenset({"", "-1", "NoDevFiles"})  # the last is Slurm's for a job without GPUs
_IN_BLOCKS = "start them with srun --distribution=block"
_BY_HAND = "start the ranks with `hpc-train run`, `hpc-train submit`, srun or torchrun"


@dataclass(frozen=True, kw_only=True)
class World:
    """One rank's place in the run.

    Attributes:
        nodes: Machines with ranks.
        ranks_per_node: The same number on each.
        world_size: `nodes * ranks_per_node`.
        rank: 0 to world_size - 1, counted node by node.
        local_rank: 0 to ranks_per_node - 1 on this node.
        node_rank: 0 to nodes - 1.
        master_addr: Host name or address of the node of rank 0.
        master_port: TCP port there; 0 for a world of one, which needs none.
        devices_visible: CUDA_VISIBLE_DEVICES, entry by entry (indices, UUIDs, MIG names); empty
            where it hides all GPUs; None where it is not set, and all GPUs can be seen.
        launcher: Who started this rank.
    """

    nodes: int
    ranks_per_node: int
    world_size: int
    rank: int
    local_rank: int
    node_rank: int
    master_addr: str
    master_port: int
    devices_visible: tuple[str, ...] | None
    launcher: Launcher

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, planned: Shape | None = None) -> World:
        """Read the environment of a rank.

        torchrun's variables win over Slurm's, since torchrun may run inside a Slurm step.

        Args:
            env: The environment, as `os.environ`.
            planned: What the plan says; anything else that was started is an error, which every
                rank finds by itself, so that none waits for one that will never come.

        Raises:
            CheckError: when variables are missing, contradict one another or the plan.
        """
        world = _read(env)
        _check_consistent(world)
        _check_devices(world)
        if planned is not None:
            _check_planned(world, planned)
        return world


def expand_tasks_per_node(text: str) -> list[int]:
    """`4(x2),2` to [4, 4, 2] (srun(1), SLURM_TASKS_PER_NODE).

    Raises:
        ValueError: when the text is not of that form.
    """
    counts: list[int] = []
    for part in text.strip().split(","):
        match = _TASKS.match(part)
        if match is None:
            raise ValueError(f"{text!r} is not of the form 4(x2),2")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _read(env: Mapping[str, str]) -> World:
    if "TORCHELASTIC_RUN_ID" in env:
        return _from_torchrun(env)
    step = env.get("SLURM_STEP_ID", env.get("SLURM_STEPID"))
    if step is not None and not step.startswith("-"):  # 26.05 calls the batch script's own -5
        return _from_slurm(env)
    if "WORLD_SIZE" in env or "RANK" in env:
        return _from_torchrun(env)
    if "SLURM_PROCID" not in env and _number(env, "SLURM_NTASKS", 1) > 1:
        raise CheckError(
            f"SLURM_NTASKS={env['SLURM_NTASKS']} but no SLURM_PROCID: this is no rank of that job",
            _BY_HAND,
        )
    # A batch script's own process has SLURM_PROCID=0 and the job's SLURM_NTASKS, but is no rank.
    return World(
        nodes=1,
        ranks_per_node=1,
        world_size=1,
        rank=0,
        local_rank=0,
        node_rank=0,
        master_addr=_LOCALHOST,
        master_port=0,
        devices_visible=visible_devices(env),
        launcher="single",
    )


def _from_torchrun(env: Mapping[str, str]) -> World:
    world_size = _number(env, "WORLD_SIZE")
    rank = _number(env, "RANK")
    local_rank = _number(env, "LOCAL_RANK")
    local_size = _number(env, "LOCAL_WORLD_SIZE", world_size if rank == local_rank else None)
    nodes = _nodes_of(world_size, local_size)
    return World(
        nodes=nodes,
        ranks_per_node=local_size,
        world_size=world_size,
        rank=rank,
        local_rank=local_rank,
        node_rank=_number(env, "GROUP_RANK", rank // local_size),
        master_addr=_required(env, env_names.MASTER_ADDR),
        master_port=_number(env, env_names.MASTER_PORT),
        devices_visible=visible_devices(env),
        launcher="torchrun",
    )


def _from_slurm(env: Mapping[str, str]) -> World:
    # The step's own numbers come first: SLURM_NTASKS may be the job's, and a job may run a step
    # on a part of its nodes (srun(1), OUTPUT ENVIRONMENT VARIABLES).
    world_size = _number_of(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
    nodes = _number_of(env, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
    if world_size < 1 or nodes < 1:
        raise CheckError(f"Slurm says {world_size} ranks on {nodes} nodes", _BY_HAND)
    counts = _tasks_per_node(env, world_size, nodes)
    if len(set(counts)) != 1:
        raise CheckError(
            f"unequal ranks a node: Slurm started {counts} ranks on {len(counts)} nodes",
            "ask for the same number on each: srun --nodes=N --ntasks=N*R --ntasks-per-node=R",
        )
    dealt = env.get("SLURM_DISTRIBUTION", "").startswith("cyclic")
    if dealt and nodes > 1 and counts[0] > 1:
        # Some ranks have the same number either way: the variable tells it to every one. With one
        # task a node both orders are one, and Slurm itself says cyclic (srun(1), --distribution).
        raise CheckError("the ranks are dealt out in turn, not node by node", _IN_BLOCKS)
    return World(
        nodes=nodes,
        ranks_per_node=counts[0],
        world_size=world_size,
        rank=_number(env, "SLURM_PROCID"),
        local_rank=_number(env, "SLURM_LOCALID"),
        node_rank=_number(env, "SLURM_NODEID"),
        master_addr=_slurm_master(env),
        master_port=_slurm_port(env),
        devices_visible=visible_devices(env),
        launcher="slurm",
    )


def _tasks_per_node(env: Mapping[str, str], world_size: int, nodes: int) -> list[int]:
    name = "SLURM_STEP_TASKS_PER_NODE"
    if name not in env:
        name = "SLURM_TASKS_PER_NODE"
    if name not in env:
        return [world_size // nodes] * nodes
    try:
        counts = expand_tasks_per_node(env[name])
    except ValueError as error:
        raise CheckError(f"{name}: {error}", _BY_HAND) from error
    if sum(counts) != world_size or len(counts) != nodes:
        raise CheckError(
            f"{name}={env[name]} means {sum(counts)} ranks on {len(counts)} nodes,"
            f" but Slurm says {world_size} ranks on {nodes}",
            "an inherited variable is stale: start the job from a shell outside of any job",
        )
    return counts


def _slurm_master(env: Mapping[str, str]) -> str:
    if env_names.MASTER_ADDR in env:
        return env[env_names.MASTER_ADDR]
    for name in ("SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"):
        if name in env:
            try:
                return expand(env[name])[0]
            except ValueError as error:
                raise CheckError(f"{name}: {error}", "set MASTER_ADDR") from error
    raise CheckError("neither MASTER_ADDR nor SLURM_JOB_NODELIST is set", _BY_HAND)


def _slurm_port(env: Mapping[str, str]) -> int:
    if env_names.MASTER_PORT in env:
        return _number(env, env_names.MASTER_PORT)
    # The supervisor publishes a port that was free; a bare srun has none. Two steps of one job
    # must not meet, so the step counts too.
    job, step = (
        _number_of(env, "SLURM_JOB_ID", "SLURM_JOBID"),
        _number_of(env, "SLURM_STEP_ID", "SLURM_STEPID"),
    )
    return 20000 + (job * 101 + step) % 20000


def visible_devices(env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The entries of CUDA_VISIBLE_DEVICES; empty where it hides all, None where it is not set."""
    text = env.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    devices: list[str] = []
    for entry in (part.strip() for part in text.split(",")):
        if entry in _NO_DEVICES:  # CUDA ignores this entry and all that follow
            break
        devices.append(entry)
    return tuple(devices)


def _check_consistent(world: World) -> None:
    if world.nodes * world.ranks_per_node != world.world_size:
        raise CheckError(
            f"{world.world_size} ranks are not {world.nodes} nodes x {world.ranks_per_node}",
            "start the same number of ranks on each node",
        )
    for name, value, limit in (
        ("rank", world.rank, world.world_size),
        ("local rank", world.local_rank, world.ranks_per_node),
        ("node rank", world.node_rank, world.nodes),
    ):
        if not 0 <= value < limit:
            raise CheckError(f"{name} {value} is not below {limit}: inherited variables?", _BY_HAND)
    if world.node_rank * world.ranks_per_node + world.local_rank != world.rank:
        raise CheckError(
            f"rank {world.rank} is number {world.local_rank} on node {world.node_rank}:"
            " the ranks are not counted node by node",
            _IN_BLOCKS,
        )


def _check_devices(world: World) -> None:
    if world.devices_visible is None or len(world.devices_visible) < 2:
        return
    if len(world.devices_visible) < world.ranks_per_node:
        raise CheckError(
            f"{world.ranks_per_node} ranks on a node, but CUDA_VISIBLE_DEVICES shows"
            f" {len(world.devices_visible)} GPUs: {','.join(world.devices_visible)}",
            "ask for one GPU a rank: slurm.gpus_per_node",
        )


def _check_planned(world: World, planned: Shape) -> None:
    started = (world.nodes, world.ranks_per_node)
    if started == (planned.nodes, planned.ranks_per_node):
        return
    raise CheckError(
        f"{planned.world_size} ranks were planned ({planned.nodes} nodes x"
        f" {planned.ranks_per_node}), but {world.world_size} started ({world.nodes} x"
        f" {world.ranks_per_node}, by {world.launcher})",
        "inside a job pass srun --nodes, --ntasks and --ntasks-per-node together"
        if world.launcher == "slurm"
        else _BY_HAND,
    )


def _nodes_of(world_size: int, local_size: int) -> int:
    if local_size < 1 or world_size % local_size:
        raise CheckError(
            f"WORLD_SIZE={world_size} is no multiple of LOCAL_WORLD_SIZE={local_size}",
            "start the same number of ranks on each node",
        )
    return world_size // local_size


def _required(env: Mapping[str, str], name: str) -> str:
    if name not in env:
        given = ", ".join(
            f"{other}={env[other]}"
            for other in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "SLURM_NTASKS", "SLURM_PROCID")
            if other in env
        )
        raise CheckError(f"{name} is not set beside {given}: this process is no rank", _BY_HAND)
    return env[name]


def _number(env: Mapping[str, str], name: str, default: int | None = None) -> int:
    if name not in env and default is not None:
        return default
    text = _required(env, name)
    if not text.isascii() or not text.isdigit():
        raise CheckError(f"{name}={text!r} is no number", _BY_HAND)
    return int(text)


def _number_of(env: Mapping[str, str], *names: str) -> int:
    return _number(env, next((name for name in names if name in env), names[0]))
