"""What a message says over several lines, or ranks say in one each, is read as one."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.read_logs import ReadLogs, diagnose_logs

MESH = "Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152]"
WHY = "timed out connecting: SO_ERROR: Connection refused, remote=[{0}]:20901"
WHO = "(rank=8, size=16, local=[{0}])"
# Before torch 2.1.
CALL = (
    "RuntimeError: Detected mismatch between collectives on ranks. Rank {} is running inconsistent"
    " collective: CollectiveFingerPrint(OpType={}, TensorShape=[{}, 256], TensorDtypes=Float,"
    " TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default),"
    " requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)))"
)
OOM = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB."


def findings(*lines: str):
    logs = ReadLogs()
    for number, line in enumerate("\n".join(lines).splitlines(), 1):
        logs.feed(line, "", number)
    return logs.findings()


def wrapped(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


@pytest.mark.parametrize("between", ["\n  ", " ", "\n"])
@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.1.1"])
def test_a_rank_that_gloo_looks_for_at_loopback_is_told_with_one_fix_first(between, address):
    text = between.join([f"RuntimeError: {MESH}", WHY, WHO]).format(address)
    (found,) = findings("step 1", text, "step 2")
    known = ("gloo_connect", "gloo_loopback")
    assert found.name == known["\n " in text or "\n" not in text]
    if found.name == "gloo_loopback":
        assert f"at {address} (SO_ERROR: Connection refused)" in found.cause
        assert found.fix.startswith("GLOO_SOCKET_IFNAME")
        assert "firewall" not in found.fix
        assert "TCP ports" not in found.fix
        assert (found.evidence[0].line, address in found.evidence[0].text) == (2, True)


def test_a_rank_that_gloo_looks_for_elsewhere_is_told_with_the_reason():
    text = "\n  ".join([f"[rank8]: RuntimeError: {MESH}", WHY, WHO]).format("10.0.0.7")
    (found,) = findings(text)
    assert found.name == "gloo_connect"
    assert "Connection refused, remote=[10.0.0.7]" in found.cause


@pytest.mark.parametrize("width", [120, 155, 211, 900])
def test_two_ranks_that_tell_their_own_calls_alone_are_compared(width):
    lines = [
        part
        for rank in (0, 1)
        for part in wrapped(CALL.format(rank, "ALLGATHER", 48 - rank), width)
    ]
    (found,) = findings(*lines)
    assert found.name == "collective_shapes"
    assert "ALLGATHER of [48, 256] on rank 0, [47, 256] on rank 1" in found.cause
    assert "DETAIL" not in found.fix
    assert "branch" not in found.fix


def test_ranks_in_different_collectives_are_told_as_that():
    (found,) = findings(
        *(CALL.format(rank, op, 4) for rank, op in enumerate(["ALLGATHER", "GATHER"]))
    )
    assert found.name == "collective_kinds"
    assert "ALLGATHER on rank 0, GATHER on rank 1" in found.cause


def test_one_ranks_call_alone_is_quoted_and_compared_with_none():
    (found,) = findings(CALL.format(3, "ALLGATHER", 4))
    assert found.name == "collective_mismatch"
    assert "Rank 3 is running inconsistent collective" in found.cause


@pytest.mark.parametrize("cut", [MESH, wrapped(CALL.format(0, "ALLGATHER", 4), 150)[0]])
def test_a_message_whose_end_is_not_there_takes_no_other_line_with_it(tmp_path, cut):
    (tmp_path / "a.log").write_text(f"RuntimeError: {cut}\n{OOM}\n" + "step 2\n" * 9)
    found = diagnose_logs([str(tmp_path / "a.log")]).findings
    assert "torch_oom" in [item.name for item in found]
    assert len(found) == 2


def test_a_log_that_ends_within_a_message_tells_what_is_there(tmp_path):
    (tmp_path / "a.log").write_text(wrapped(CALL.format(0, "ALLGATHER", 4), 170)[0])
    assert diagnose_logs([str(tmp_path / "a.log")]).findings[0].name == "collective_mismatch"


def test_a_large_log_is_read_over_line_ends_as_well(tmp_path):
    text = f"{MESH}\n  {WHY}\n  {WHO}".format("127.0.0.1")
    (tmp_path / "a.log").write_text("step 1 loss 0.3\n" * 200_000 + text + "\nstep 2\n" * 9)
    assert diagnose_logs([str(tmp_path / "a.log")]).findings[0].name == "gloo_loopback"
