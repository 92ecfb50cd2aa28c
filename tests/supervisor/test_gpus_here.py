"""Simulated nodes of one machine: each gets GPUs of its own, or all are told of too few."""

from __future__ import annotations

import pytest

from hpc_train.plan import env_names
from hpc_train.plan.plan import Shape
from hpc_train.supervisor import gpus_here as looked

COUNTED = env_names.GPUS_HERE
VISIBLE = "CUDA_VISIBLE_DEVICES"
FOUR = ("GPU-a", "GPU-b", "GPU-c", "GPU-d")


def shape(nodes: int, gpus: int) -> Shape:
    return Shape(nodes=nodes, ranks_per_node=gpus or 1, gpus_per_node=gpus)


@pytest.mark.parametrize(
    ("nodes", "gpus", "names", "of_each"),
    [
        (2, 2, FOUR, ["GPU-a,GPU-b", "GPU-c,GPU-d"]),
        (3, 1, FOUR, ["GPU-a", "GPU-b", "GPU-c"]),
        (2, 1, FOUR[:2], ["GPU-a", "GPU-b"]),
        (2, 2, FOUR[:3], [None, None]),  # too few for all
        (2, 2, FOUR[:1], [None, None]),
        (1, 4, FOUR, [None]),  # as it is
        (2, 0, FOUR, [None, None]),
    ],
)
def test_each_simulated_node_has_its_own_where_there_are_enough(
    nodes: int, gpus: int, names: tuple[str, ...], of_each: list[str | None]
) -> None:
    told = [looked.of_node(shape(nodes, gpus), node, names) for node in range(nodes)]
    assert [it.get(VISIBLE) for it in told] == of_each
    assert {it[COUNTED] for it in told} == {str(len(names))}


def test_where_no_gpu_is_known_nothing_is_told() -> None:
    assert looked.of_node(shape(2, 2), 0, ()) == {}


@pytest.mark.parametrize(
    ("visible", "names"),
    [("0,2", ("0", "2")), ("GPU-a", ("GPU-a",)), ("", ()), ("MIG-x,", ("MIG-x",))],
)
def test_what_the_user_chose_is_what_is_dealt_out(visible: str, names: tuple[str, ...]) -> None:
    assert looked.gpus_here({VISIBLE: visible}) == names


def test_else_it_is_what_nvml_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML is a stand-in: two cards, and one that does not answer."""

    class Card:
        def __init__(self, uuid: str) -> None:
            self.uuid = uuid

    monkeypatch.setattr(looked, "load_nvml", lambda: (object(), "ok"))
    monkeypatch.setattr(looked, "read_gpus", lambda *_: (Card("GPU-a"), Card(""), Card("GPU-b")))
    assert looked.gpus_here({}) == ("GPU-a", "GPU-b")
    monkeypatch.setattr(looked, "load_nvml", lambda: (None, "absent"))
    assert looked.gpus_here({}) == ()
