"""Ranks that do not reach each other: what a refused connection tells, and what no route does."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines
from tests.diagnose.test_causes import findings

PAIR = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:799] "
HEAD = "gpu07:4100:4188 [3] "


@pytest.mark.parametrize("address", ["10.0.0.7", "fd00:1::7"])
def test_gloo_at_an_address_that_answered_asks_for_the_rank_there(address):
    (found,) = findings(f"{PAIR}connect [{address}]:20901: Connection refused")
    assert found.name == "gloo_refused"
    assert f"at {address}, port 20901" in found.cause
    assert found.fix.startswith("did the rank there end first")
    assert "new_group" in found.fix


@pytest.mark.parametrize(
    "why",
    [
        "connect [127.0.1.1]:20901: Connection refused",
        "connect [10.0.0.7]:20901: No route to host",
        "Connect timeout [10.0.0.7]:20901",
        "connect [10.0.0.7]:20901: Connection timed out",
    ],
)
def test_gloo_elsewhere_is_told_to_take_the_interface(why):
    (found,) = findings(PAIR + why)
    assert found.fix.startswith("GLOO_SOCKET_IFNAME")
    assert "end first" not in found.fix


@pytest.mark.parametrize(
    ("error", "is_refused"), [("Connection refused", True), ("No route to host", False)]
)
def test_where_there_is_no_route_no_peer_is_asked_whether_it_ended(error, is_refused):
    line = f"{HEAD}NCCL INFO Call to connect to 10.0.0.4<43> returned {error}, retrying (20/20)"
    (found,) = read_nccl_lines([line]).failures
    assert ("end first" in found.fix) == is_refused
    assert "ping" in found.fix


def test_a_rank_that_two_processes_took_is_told_as_that():
    said = "Bootstrap Root : rank 2 of 16 ranks has already checked in"
    line = f"{HEAD}bootstrap.cc:250 NCCL WARN {said}"
    (found,) = read_nccl_lines([line]).failures
    assert found.cause == "two processes took rank 2 of 16"
    assert "version" not in f"{found.cause}{found.fix}"
    assert found.ranks == frozenset()
