from __future__ import annotations

import dataclasses
import socket
import threading
import time
from collections.abc import Callable

import pytest

from hpc_train.errors import CheckError, HpcTrainError
from hpc_train.training.rank_failure import PeerError
from hpc_train.training.world_check import (
    RankReport,
    announce,
    mismatch,
    missing_text,
    open_store,
    verify,
)
from tests.training.launched import free_port, make_world


def report(rank: int, per_node: int = 4, **changes: object) -> RankReport:
    base = RankReport(
        rank=rank,
        node_rank=rank // per_node,
        world_size=12,
        host=f"node{rank // per_node + 1}",
        plan_hash="abc",
        device="cpu",
        versions={"torch": "2.6.0"},
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def test_missing_ranks_are_named_with_their_node_where_it_is_known() -> None:
    some = [report(rank) for rank in (0, 1, 2, 3, 4, 5)]
    text = missing_text(some, make_world(), 10)
    assert text == "ranks 6-11 never came (node2, node 2) within 10 s"


def test_nobody_missing_is_nothing_to_say() -> None:
    assert missing_text([report(rank) for rank in range(12)], make_world(), 10) == ""


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"world_size": 6}, "world sizes differ: 12 on ranks 0-3,8-11 (node1, node3), 6 on ranks"),
        ({"plan_hash": "xyz"}, "plans differ: abc on ranks 0-3,8-11 (node1, node3), xyz on"),
        ({"device": "cuda"}, "devices differ: cpu on ranks 0-3,8-11"),
        (
            {"versions": {"torch": "2.5.1"}},
            "versions of torch differ: 2.6.0 on ranks 0-3,8-11 (node1, node3), 2.5.1 on ranks 4-7",
        ),
    ],
)
def test_what_differs_between_ranks_is_named_with_their_nodes(
    changes: dict[str, object], text: str
) -> None:
    reports = [report(rank, **(changes if 4 <= rank < 8 else {})) for rank in range(12)]
    found, hint = mismatch(reports)
    assert found.startswith(text)
    assert hint


def test_two_ranks_on_one_gpu_are_named() -> None:
    reports = [report(rank, gpu_uuid=f"u{max(rank, 1)}", device="cuda") for rank in range(3)]
    text, hint = mismatch(reports)
    assert text == "ranks 0 and 1 on node1 would use the same GPU (u1)"
    assert hint.startswith("3 ranks of node1 see 2 GPUs together: --gpus 2 (slurm.gpus_per_node)")
    _, hint = mismatch([report(rank, gpu_uuid="u", device="cuda") for rank in range(4)])
    assert hint.startswith("4 ranks of node1 see 1 GPU together: --gpus 1")


def test_ranks_that_agree_pass() -> None:
    assert mismatch([report(rank) for rank in range(12)]) == ("", "")


def meet(
    ranks: list[int],
    size: int,
    deadline_s: float,
    change: Callable[[RankReport], RankReport],
    port: int | None = None,
) -> dict[int, HpcTrainError | None]:
    """Real stores in threads: what each rank was told."""
    port = port or free_port()
    told: dict[int, HpcTrainError | None] = {}
    stores = []

    def one(rank: int) -> None:
        place = make_world(1, size, rank, port=port)
        try:
            store = open_store(place, {}, timeout_s=deadline_s)
            stores.append(store)
            announce(store, change(report(rank, per_node=size, world_size=size)))
            verify(store, place, deadline_s=deadline_s)
            told[rank] = None
        except HpcTrainError as error:
            told[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return told


def test_ranks_that_all_come_meet_at_once() -> None:
    start = time.monotonic()
    assert meet([0, 1, 2], 3, 100, lambda item: item) == {0: None, 1: None, 2: None}
    assert time.monotonic() - start < 60


def test_every_rank_that_came_is_told_who_did_not() -> None:
    told = meet([0, 1], 4, 6.0, lambda item: item)
    assert {type(error) for error in told.values()} == {PeerError}
    assert all("ranks 2-3 never came (node1) within 6 s" in str(item) for item in told.values())


def test_every_rank_is_told_what_does_not_fit() -> None:
    told = meet(
        [0, 1],
        2,
        100,
        lambda item: dataclasses.replace(item, plan_hash=str(item.rank)),
    )
    assert all(isinstance(error, CheckError) for error in told.values())
    assert all("plans differ" in str(error) for error in told.values())


def test_a_missing_rank_0_is_said_by_the_others() -> None:
    with socket.socket() as held:  # nobody listens, and nobody else can
        held.bind(("127.0.0.1", 0))
        told = meet([1], 2, 1.0, lambda item: item, held.getsockname()[1])
    assert "could not reach rank 0 at 127.0.0.1" in str(told[1])


def test_a_master_name_that_does_not_resolve_is_named() -> None:
    place = make_world(rank=1, address="no-such-host.invalid")
    with pytest.raises(PeerError, match=r"MASTER_ADDR no-such-host\.invalid does not resolve on"):
        open_store(place, {}, timeout_s=1)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        place = make_world(port=other.getsockname()[1])
        with pytest.raises(PeerError, match=r"rank 0 cannot open .* the port is in use"):
            open_store(place, {}, timeout_s=1)
