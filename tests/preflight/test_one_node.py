"""A training on one node without GPUs, of which the user's own variable alone is looked at."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.config.schema import PreflightConfig
from hpc_train.plan.policy import Refused
from hpc_train.plan.states import Outcome
from hpc_train.preflight.choose.choose import choose
from hpc_train.preflight.choose.user_env import gloo_on_one_node
from hpc_train.preflight.inventory.inventory import Interface
from hpc_train.preflight.options import PreflightRequest
from hpc_train.preflight.run_preflight import run_preflight
from hpc_train.preflight.verdict import Verdict
from hpc_train.supervisor.refusal import judge_refusal

from .made_sysfs import ib_node

LO = Interface(name="lo", kind="loopback", ipv4=("127.0.0.1/8",))
ETH = Interface(name="eth0", kind="ethernet", ipv4=("10.0.0.1/24",), state="down")
BARE = Interface(name="ib0", kind="ipoib")
THERE = [name for _, name in socket.if_nameindex()]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("eth0", []),  # down, and gloo takes it all the same
        ("lo,eth0", []),
        ("eth0, lo", []),
        ("eth0:1", []),
        ("ib7", ["'ib7': no such interface with an address (there: lo, eth0)"]),
        ("ib0", ["'ib0': no such interface with an address (there: lo, eth0)"]),
        ("eth", ["'eth': no such interface with an address (there: lo, eth0)"]),
        ("eth0,ib7", ["'ib7': no such interface with an address (there: lo, eth0)"]),
        ("^docker0", ["'^docker0': gloo takes full names; NCCL's ^ crashes it"]),
        ("=eth0", ["'=eth0': gloo takes full names; NCCL's = crashes it"]),
    ],
)
def test_names_of_which_gloo_has_no_address_are_told(value: str, said: list[str]) -> None:
    found = list(gloo_on_one_node([LO, ETH, BARE], value))
    assert [item.evidence for item in found] == said
    assert all("unset" in item.fix for item in found)


def test_where_no_interface_can_be_read_none_is_missed() -> None:
    assert list(gloo_on_one_node([], "eth0")) == []


def looked(folder: Path, value: str, **changes: object) -> Verdict:
    environ = {"SLURMD_NODENAME": "node1", "GLOO_SOCKET_IFNAME": value}
    known = {"nodes": ("node1",), "folder": folder / "run", "environ": environ, "cwd": str(folder)}
    request = PreflightRequest(**{"python": sys.executable, "uses_gloo": True, **known, **changes})  # type: ignore[arg-type]
    return run_preflight(PreflightConfig(), request)


def test_an_interface_that_there_is_not_is_the_users_and_not_tried_again(tmp_path: Path) -> None:
    verdict = looked(tmp_path, "ib7x")
    assert (verdict.verdict, verdict.bad_nodes) == ("no-go", ())
    ending = judge_refusal(verdict)
    expected: Refused = "site"
    assert (ending.outcome, ending.blamed, ending.refused) == (Outcome.USER_ERROR, (), expected)
    assert "GLOO_SOCKET_IFNAME user_env: 'ib7x': no such interface" in ending.reason
    assert "-> unset GLOO_SOCKET_IFNAME, or name one of those" in ending.reason
    assert not (tmp_path / "run").exists(), "nothing is started for it"


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        ("lo", {}),
        ("", {}),
        ("ib7x", {"uses_gloo": False}),  # one rank, or a script, or a strategy of one's own
        ("ib7x", {"environ": {"GLOO_SOCKET_IFNAME": "ib7x"}}),  # this is not that node
    ],
)
def test_what_works_or_is_not_known_is_not_refused(
    tmp_path: Path, value: str, changes: dict[str, object]
) -> None:
    verdict = looked(tmp_path, value, **changes)
    assert verdict.verdict == "go"
    assert verdict.summary[-1].endswith("everything: one node without GPUs: nothing to check")


@pytest.mark.parametrize(
    ("env", "where"),
    [
        ({"NCCL_SOCKET_IFNAME": "hsn"}, "*"),
        ({"NCCL_SOCKET_IFNAME": "=ib"}, "*"),
        ({"GLOO_SOCKET_IFNAME": "ib7"}, "*"),
        ({"NCCL_SOCKET_IFNAME": "ib0"}, "node1"),
        ({"GLOO_SOCKET_IFNAME": "ib0"}, "node1"),
    ],
)
def test_of_one_node_a_name_that_it_has_not_at_all_is_the_variables_fault(seen, env, where):
    """One that is there and down may be up on another node."""
    (node,) = seen(ib_node(1))
    faces = [
        replace(it, state="down", ipv4=()) if it.name == "ib0" else it for it in node.interfaces
    ]
    found = choose([replace(node, interfaces=tuple(faces))], env).findings
    assert [f.node for f in found if f.check == "user_env"] == [where]
