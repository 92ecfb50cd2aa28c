"""Asking nodes whether they are there, and Slurm as seldom as possible where they are."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.slurm.nodes import silent_nodes
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
