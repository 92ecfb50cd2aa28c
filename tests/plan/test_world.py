from __future__ import annotations

from typing import Any

import pytest

from hpc_train.errors import CheckError
from hpc_train.plan.plan import Shape
from hpc_train.plan.world import World, expand_tasks_per_node


def slurm(rank: int = 5, **changes: str | None) -> dict[str, str]:
    """What Slurm 22.05 sets for a rank of `srun --nodes=3 --ntasks=12 --ntasks-per-node=4`."""
    env: dict[str, str | None] = {
        "SLURM_JOB_ID": "1234",
        "SLURM_STEP_ID": "0",
        "SLURM_NTASKS": "12",
        "SLURM_NNODES": "3",
        "SLURM_STEP_NUM_TASKS": "12",
        "SLURM_STEP_NUM_NODES": "3",
        "SLURM_STEP_TASKS_PER_NODE": "4(x3)",
        "SLURM_TASKS_PER_NODE": "4(x3)",
        "SLURM_JOB_NODELIST": "rack[1-2]n[01-02]",
        "SLURM_STEP_NODELIST": "rack1n[01-02],rack2n01",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank % 4),
        "SLURM_NODEID": str(rank // 4),
        "MASTER_ADDR": "rack1n01",
        "MASTER_PORT": "23456",
    }
    env.update(changes)
    return {name: value for name, value in env.items() if value is not None}


def torchrun(**changes: str | None) -> dict[str, str]:
    env: dict[str, str | None] = {
        "TORCHELASTIC_RUN_ID": "x",
        "WORLD_SIZE": "4",
        "RANK": "3",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "1",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29400",
    }
    env.update(changes)
    return {name: value for name, value in env.items() if value is not None}


def test_a_rank_of_slurm_knows_its_place() -> None:
    world = World.from_env(slurm(), planned=Shape(3, 4, 4))
    assert world == World(
        nodes=3,
        ranks_per_node=4,
        world_size=12,
        rank=5,
        local_rank=1,
        node_rank=1,
        master_addr="rack1n01",
        master_port=23456,
        devices_visible=None,
        launcher="slurm",
    )


def test_a_step_on_a_part_of_the_job_counts_its_own_ranks_and_nodes() -> None:
    env = slurm(
        rank=1,
        SLURM_NTASKS="16",
        SLURM_NNODES="4",
        SLURM_TASKS_PER_NODE="4(x4)",
        SLURM_LOCALID="1",
    )
    assert World.from_env(env).world_size == 12


def test_without_a_supervisor_the_first_host_of_the_step_is_the_master() -> None:
    world = World.from_env(slurm(MASTER_ADDR=None, MASTER_PORT=None))
    assert world.master_addr == "rack1n01"
    assert 20000 <= world.master_port < 40000


def test_two_steps_of_a_job_and_two_jobs_get_different_ports() -> None:
    bare = {"MASTER_PORT": None}
    ports = {
        World.from_env(slurm(**bare, SLURM_JOB_ID=job, SLURM_STEP_ID=step)).master_port
        for job in ("1234", "1235")
        for step in ("0", "1")
    }
    assert len(ports) == 4


def test_the_first_host_is_the_one_slurm_names_first() -> None:
    env = slurm(MASTER_ADDR=None, SLURM_STEP_NODELIST="z9,rack[1-2]n01")
    assert World.from_env(env).master_addr == "z9"


def test_a_rank_of_torchrun_knows_its_place() -> None:
    world = World.from_env(torchrun(), planned=Shape(2, 2, 0))
    assert (world.nodes, world.ranks_per_node, world.node_rank) == (2, 2, 1)
    assert (world.rank, world.local_rank, world.launcher) == (3, 1, "torchrun")


def test_torchrun_inside_a_slurm_step_wins() -> None:
    env = {**slurm(rank=0), **torchrun()}
    assert World.from_env(env).launcher == "torchrun"


def test_an_empty_environment_is_a_world_of_one() -> None:
    world = World.from_env({}, planned=Shape(1, 1, 0))
    assert (world.world_size, world.rank, world.launcher) == (1, 0, "single")


@pytest.mark.parametrize(
    ("text", "counts"),
    [("4(x2),2", [4, 4, 2]), ("1", [1]), ("2(x3)", [2, 2, 2]), ("1,2,1(x2)", [1, 2, 1, 1])],
)
def test_tasks_per_node_are_read_in_slurms_short_form(text: str, counts: list[int]) -> None:
    assert expand_tasks_per_node(text) == counts


@pytest.mark.parametrize("text", ["", "x", "4(x)", "4x2", "4(x2),", "(x2)"])
def test_what_are_no_tasks_per_node_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="4\\(x2\\),2"):
        expand_tasks_per_node(text)


# Devices: what a rank sees, and which one it takes.


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        (None, None),
        ("0,1,2,3", ("0", "1", "2", "3")),
        ("4,5,6,7", ("4", "5", "6", "7")),
        (
            "GPU-8f2a,GPU-11bc,GPU-77de,GPU-90aa",
            ("GPU-8f2a", "GPU-11bc", "GPU-77de", "GPU-90aa"),
        ),
        ("2", ("2",)),
        ("GPU-8f2a-33", ("GPU-8f2a-33",)),
        ("MIG-GPU-8f2a/1/0", ("MIG-GPU-8f2a/1/0",)),
        ("MIG-a,MIG-b,MIG-c,MIG-d", ("MIG-a", "MIG-b", "MIG-c", "MIG-d")),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("0,1,2,3,-1,7", ("0", "1", "2", "3")),
    ],
)
def test_a_rank_knows_its_gpus_however_they_are_shown(
    visible: str | None, seen: tuple[str, ...] | None
) -> None:
    assert World.from_env(slurm(CUDA_VISIBLE_DEVICES=visible)).devices_visible == seen


def test_two_gpus_for_four_ranks_is_an_error_that_shows_them() -> None:
    with pytest.raises(
        CheckError, match=r"4 ranks on a node, but CUDA_VISIBLE_DEVICES shows 2.*0,1"
    ):
        World.from_env(slurm(CUDA_VISIBLE_DEVICES="0,1"))


# What does not fit together is an error on every rank, at once.


def test_twelve_planned_and_six_started_is_an_error_on_all_six() -> None:
    for rank in range(6):
        env = slurm(
            SLURM_STEP_NUM_TASKS="6",
            SLURM_STEP_TASKS_PER_NODE="2(x3)",
            SLURM_PROCID=str(rank),
            SLURM_LOCALID=str(rank % 2),
            SLURM_NODEID=str(rank // 2),
        )
        with pytest.raises(CheckError) as caught:
            World.from_env(env, planned=Shape(3, 4, 4))
        assert caught.value.message == (
            "12 ranks were planned (3 nodes x 4), but 6 started (3 x 2, by slurm)"
        )
        assert "--ntasks-per-node" in caught.value.hint


@pytest.mark.parametrize("own", [{}, {"SLURM_STEP_ID": "-5", "SLURM_STEPID": "-5"}])  # 26.05
def test_the_batch_step_itself_is_not_rank_0_of_twelve(own: dict[str, str]) -> None:
    env = {name: value for name, value in slurm(rank=0).items() if "STEP" not in name} | own
    with pytest.raises(CheckError, match=r"12 ranks were planned .* but 1 started"):
        World.from_env(env, planned=Shape(3, 4, 4))


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (
            slurm(SLURM_STEP_NUM_TASKS="10", SLURM_STEP_TASKS_PER_NODE="4(x2),2"),
            r"unequal ranks a node: Slurm started \[4, 4, 2\] ranks on 3 nodes",
        ),
        (slurm(SLURM_STEP_NUM_TASKS="6"), "means 12 ranks on 3 nodes, but Slurm says 6 ranks on 3"),
        (slurm(SLURM_STEP_TASKS_PER_NODE="four"), "SLURM_STEP_TASKS_PER_NODE: 'four'"),
        (slurm(SLURM_PROCID=None), "SLURM_PROCID is not set"),
        (slurm(SLURM_LOCALID=None), "SLURM_LOCALID is not set"),
        (slurm(SLURM_PROCID="x"), "SLURM_PROCID='x' is no number"),
        (slurm(rank=5, SLURM_LOCALID="7"), "local rank 7 is not below 4"),
        (slurm(SLURM_NODEID="3"), "node rank 3 is not below 3"),
        (slurm(SLURM_PROCID="12"), "rank 12 is not below 12"),
        (slurm(MASTER_PORT="abc"), "MASTER_PORT='abc' is no number"),
        (slurm(MASTER_ADDR=None, SLURM_STEP_NODELIST="n["), "SLURM_STEP_NODELIST: 'n\\['"),
        (slurm(SLURM_STEP_NUM_NODES="0"), "12 ranks on 0 nodes"),
        ({"SLURM_NTASKS": "12", "SLURM_JOB_ID": "1"}, "SLURM_NTASKS=12 but no SLURM_PROCID"),
        ({"WORLD_SIZE": "4"}, "RANK is not set beside WORLD_SIZE=4"),
        ({"RANK": "1"}, "WORLD_SIZE is not set beside RANK=1"),
        (torchrun(LOCAL_RANK=None), "LOCAL_RANK is not set"),
        (torchrun(MASTER_ADDR=None), "MASTER_ADDR is not set"),
        (torchrun(LOCAL_WORLD_SIZE="3"), "WORLD_SIZE=4 is no multiple of LOCAL_WORLD_SIZE=3"),
        (torchrun(LOCAL_WORLD_SIZE="0"), "no multiple of LOCAL_WORLD_SIZE=0"),
        (torchrun(WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", RANK="3"), "rank 3 is not below 2"),
    ],
)
def test_variables_that_do_not_fit_together_are_an_error_with_the_reason(
    env: dict[str, str], words: str
) -> None:
    with pytest.raises(CheckError, match=words) as caught:
        World.from_env(env)
    assert caught.value.hint


def test_ranks_dealt_in_turn_over_the_nodes_are_refused_with_the_option_to_give() -> None:
    # srun --distribution=cyclic: rank 1 is the first on node 1.
    dealt = {"SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_NODEID": "1"}
    with pytest.raises(CheckError, match="rank 1 is number 0 on node 1") as caught:
        World.from_env(slurm(**dealt))
    assert "--distribution=block" in caught.value.hint
    # Rank 0 has the same place either way, and finds it out as well.
    with pytest.raises(CheckError, match="not node by node"):
        World.from_env(slurm(rank=0, SLURM_DISTRIBUTION="cyclic:block"))


def test_every_rank_of_a_shape_has_a_place_of_its_own() -> None:
    worlds = [World.from_env(slurm(rank), planned=Shape(3, 4, 0)) for rank in range(12)]
    places: set[Any] = {(world.node_rank, world.local_rank) for world in worlds}
    assert len(places) == 12
    assert [world.rank for world in worlds] == list(range(12))


def test_one_rank_under_slurm_is_a_world_of_slurm() -> None:
    one = {"SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_NUM_NODES": "1"}
    env = slurm(rank=0, **one, SLURM_STEP_TASKS_PER_NODE="1", SLURM_STEP_NODELIST="rack1n02")
    world = World.from_env({**env, "MASTER_ADDR": "rack1n02"}, planned=Shape(1, 1, 1))
    assert (world.launcher, world.nodes, world.ranks_per_node, world.world_size) == (
        "slurm",
        1,
        1,
        1,
    )
    assert (world.rank, world.local_rank, world.node_rank) == (0, 0, 0)
    assert (world.master_addr, world.master_port) == ("rack1n02", 23456)
    dealt = World.from_env({**env, "SLURM_DISTRIBUTION": "cyclic"})
    assert dealt.world_size == 1, "one node: there is no other to deal to"


def dealt(rank: int, nodes: int, ranks_per_node: int) -> dict[str, str]:
    """What a rank finds where `srun --distribution=cyclic` has dealt them out."""
    world_size = nodes * ranks_per_node
    return slurm(
        SLURM_STEP_NUM_TASKS=str(world_size),
        SLURM_STEP_NUM_NODES=str(nodes),
        SLURM_STEP_TASKS_PER_NODE=f"{ranks_per_node}(x{nodes})",
        SLURM_PROCID=str(rank),
        SLURM_NODEID=str(rank % nodes),
        SLURM_LOCALID=str(rank // nodes),
        SLURM_DISTRIBUTION="cyclic",
    )


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(2, 2), (2, 8), (3, 2)])
def test_two_nodes_and_two_ranks_on_each_are_enough_to_deal_ranks_in_turn(
    nodes: int, ranks_per_node: int
) -> None:
    for rank in range(nodes * ranks_per_node):
        with pytest.raises(CheckError, match="node by node"):
            World.from_env(dealt(rank, nodes, ranks_per_node))


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
def test_one_rank_a_node_is_in_order_however_it_is_dealt(nodes: int) -> None:
    worlds = [World.from_env(dealt(rank, nodes, 1)) for rank in range(nodes)]
    assert [(it.rank, it.node_rank, it.local_rank) for it in worlds] == [
        (rank, rank, 0) for rank in range(nodes)
    ]
    assert {(it.nodes, it.world_size) for it in worlds} == {(nodes, nodes)}


@pytest.mark.parametrize("counts", ["2,1", "2(x1),1(x2)"])
def test_unequal_nodes_are_told_as_that_however_they_are_dealt(counts: str) -> None:
    each = expand_tasks_per_node(counts)
    env = slurm(
        rank=0,
        SLURM_STEP_NUM_TASKS=str(sum(each)),
        SLURM_STEP_NUM_NODES=str(len(each)),
        SLURM_STEP_TASKS_PER_NODE=counts,
        SLURM_DISTRIBUTION="cyclic",
    )
    with pytest.raises(CheckError, match="unequal ranks a node"):
        World.from_env(env)


def test_two_tasks_without_a_number_are_no_world_of_one_and_one_task_is() -> None:
    with pytest.raises(CheckError, match="SLURM_NTASKS=2 but no SLURM_PROCID"):
        World.from_env({"SLURM_NTASKS": "2"})
    assert World.from_env({"SLURM_NTASKS": "1"}).launcher == "single"


def test_torchrun_may_start_one_rank_a_node() -> None:
    env = torchrun(LOCAL_WORLD_SIZE="1", LOCAL_RANK="0", GROUP_RANK="3")
    world = World.from_env(env, planned=Shape(4, 1, 1))
    assert (world.nodes, world.ranks_per_node, world.node_rank) == (4, 1, 3)
