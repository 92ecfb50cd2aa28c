"""Asking nodes whether they are there, and Slurm as seldom as possible where they are."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.slurm.nodes import down_for, silent_nodes
from tests.supervisor.programs import Slurm


@pytest.fixture
def slurmd() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


def listens(slurm: Slurm, server: socket.socket, *nodes: str) -> None:
    port = server.getsockname()[1]
    slurm.says("scontrol", *(f"NodeName={node} NodeAddr=127.0.0.1 Port={port}" for node in nodes))


@pytest.mark.parametrize("questions", [1, 2, 20])
def test_slurm_is_asked_once_where_slurmd_listens_however_often_nodes_are_asked(
    slurm: Slurm, slurmd: socket.socket, questions: int
) -> None:
    listens(slurm, slurmd, "a", "b", "c")
    known: dict[str, tuple[str, int]] = {}
    for _ in range(questions):
        assert silent_nodes(["a", "b", "c"], known) == ()
    assert len(slurm.asked("scontrol")) == 2
    slurm.says("scontrol", "NodeName=d NodeAddr=127.0.0.1 Port=1")
    assert silent_nodes(["a", "b", "c", "d"], known) == ("d",), "a node that was not asked for yet"


def test_what_slurm_could_not_tell_is_asked_again(slurm: Slurm, slurmd: socket.socket) -> None:
    known: dict[str, tuple[str, int]] = {}
    slurm.says("scontrol", code=1)
    silent_nodes(["a"], known)
    assert known == {}
    listens(slurm, slurmd, "a")
    assert silent_nodes(["a"], known) == ()
    assert len(slurm.asked("scontrol")) == 4


ROWS = ("a*|n1|idle|none", "a*|n2|drained|fan broken", "a*|n3|down*|Not responding", "b|n9|down|x")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"nodelist": "n2"}, 'n2 is drained ("fan broken"): the job waits for it'),
        ({"nodelist": "n3"}, 'n3 is down ("Not responding"): the job waits for it'),
        ({"nodelist": "n[1-2]", "nodes": "2"}, 'n2 is drained ("fan broken"): the job waits'),
        ({"nodes": "2"}, "n[2-3] are down or drained: the job waits for them"),
        ({"nodes": "1"}, ""),
        ({"nodelist": "n1"}, ""),
        ({"partition": "b"}, 'n9 is down ("x"): the job waits for it'),
        ({"nodes": "1", "exclude": "n1"}, "n[2-3] are down or drained"),
        ({"nodes": "2", "reservation": "r"}, ""),
        ({"nodes": "2", "clusters": "c"}, ""),
    ],
)
def test_nodes_that_a_job_waits_for_are_named_with_the_reason(
    slurm: Slurm, options: dict[str, str | None], told: str
) -> None:
    slurm.says("sinfo", *ROWS)
    said = down_for(options)
    assert told in said
    assert bool(said) == bool(told)


def test_without_an_answer_no_node_is_named(slurm: Slurm) -> None:
    assert down_for({"nodes": "2"}) == ""
    slurm.says("sinfo", code=1)
    assert down_for({"nodes": "2"}) == ""
