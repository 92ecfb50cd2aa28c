"""No fix asks for what the log shows to be done, or for what cannot help there."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines
from hpc_train.diagnose.nccl.nccl_text import explain
from hpc_train.diagnose.read_logs import diagnose_logs
from hpc_train.errors import HpcTrainError

HEAD = "gpu07:4100:4188 [3] "
UNKNOWN = f"{HEAD}init.cc:9 NCCL WARN Failed to do what no rule knows"
TRACE = f"{HEAD}NCCL INFO init.cc:9 -> 3"
ERROR = "RuntimeError: NCCL error in: x/NCCLUtils.cpp:93, internal error, NCCL version 2.21.5"
RCCL = "/long_pathname_so_that_rpms_can_package_the_debug_info/src/extlibs/rccl/build/hipify"


def read(*lines: str):
    return read_nccl_lines("\n".join(lines).splitlines())


def refused(*lines: str) -> str:
    with pytest.raises(HpcTrainError, match="no line of NCCL's") as error:
        read(*lines)
    return error.value.hint


@pytest.mark.parametrize(
    "line",
    [
        "step 1 loss 0.3",
        "INFO:torch.distributed.elastic.agent.server.api:[default] Starting worker group",
        "[2026-01-02 03:04:05,006] [INFO] [launch.py:71:main] 0 NCCL_DEBUG INFO",
        "+ export NCCL_DEBUG=INFO",
        "(run with NCCL_DEBUG=WARN for details)",
    ],
)
def test_a_log_that_has_nothing_of_nccl_or_shows_the_setting_is_not_told_to_set_it(line):
    assert "NCCL_DEBUG" not in refused(line, "step 2 loss 0.2")
    assert "hpc-train diagnose" in refused(line, "step 2 loss 0.2")


@pytest.mark.parametrize("line", ["backend NCCL, 8 ranks", "the collective has timed out once"])
def test_where_nccl_is_in_question_its_lines_are_spoken_of_with_an_if(line):
    assert "if NCCL is in question" in refused(line)


@pytest.mark.parametrize("lines", [(UNKNOWN, TRACE), (ERROR, f"{HEAD}NCCL INFO cudaDriver 12080")])
def test_a_log_at_info_is_not_asked_for_again(lines):
    (failure,) = read(*lines).failures
    assert "NCCL_DEBUG" not in failure.fix
    assert "the rank that ended first" in failure.fix


@pytest.mark.parametrize(
    "setting",
    ["[launch.py:71:main] 0 NCCL_DEBUG INFO", "$ NCCL_DEBUG=INFO torchrun a.py"],
)
def test_a_setting_that_the_log_shows_is_not_asked_for(setting):
    assert "NCCL_DEBUG" not in read(setting, ERROR).failures[0].fix


@pytest.mark.parametrize("advice", ["run with NCCL_DEBUG=INFO", "You can use NCCL_DEBUG=INFO", "x"])
def test_what_a_program_advises_is_no_setting(advice):
    assert "NCCL_DEBUG=INFO" in read(advice, ERROR).failures[0].fix


def test_a_fix_about_a_variable_says_what_the_log_has_set_it_to():
    lines = (
        f"{HEAD}NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth7",
        f"{HEAD}NCCL INFO NCCL_IB_DISABLE set by environment to 1",
        f"{HEAD}misc/socket.cc:9 NCCL WARN Net : no device found matching ib9",
        TRACE,
    )
    fix = read(*lines).failures[0].fix
    assert "(this log has NCCL_SOCKET_IFNAME=eth7)" in fix
    assert "NCCL_IB_DISABLE" not in fix
    assert "this log has" not in read(*lines[1:]).failures[0].fix


@pytest.mark.parametrize(
    "line", ["RCCL version 2.20.5+hip6.2", f"{HEAD}NCCL INFO {RCCL}/src/init.cc:9 -> 3"]
)
def test_amds_library_is_named_where_a_call_of_it_failed(line):
    report = read(line, TRACE)
    assert "a call of RCCL ended with internal error" in report.failures[0].cause
    assert report.library == "RCCL"
    assert "a call of NCCL ended" in read(TRACE).failures[0].cause


def test_a_long_folder_of_a_package_does_not_hide_the_words_of_a_warning(tmp_path):
    warned = f"{HEAD}{RCCL}/src/graph/paths.cc:82 NCCL WARN Failed to find reverse path from"
    (tmp_path / "a.log").write_text(f"{warned} remNode 0/c1000 nlinks 4 to node 0/d9000\n")
    found = diagnose_logs([str(tmp_path / "a.log")]).findings[0]
    assert "to node 0/d9000" in found.evidence[0].text[:200]
    assert (found.name, found.node) == ("topology_link", "gpu07")


def test_a_peer_is_told_by_its_address_and_not_as_a_nic():
    done = "NET/IB : Got completion from peer 10.1.0.9<41234> with status=12 opcode=0 len=0"
    cause = read(f"{HEAD}transport/net_ib.cc:1295 NCCL WARN {done}").failures[0].cause
    assert "the peer at 10.1.0.9<41234> did not answer" in cause
    assert "NIC" not in cause


def test_a_host_without_hcas_is_not_set_against_the_others():
    lines = [f"n{number}:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>" for number in (1, 2)]
    report = read(*lines, "n1:1:1 [0] NCCL INFO NET/IB : No device found.")
    (note,) = [line for line in explain(report) if line.startswith("note: ")]
    assert "if the nodes have HCAs" in note
    assert "not named may have none either" in note
