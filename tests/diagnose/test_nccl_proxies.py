"""A connection that closed since the process' own proxy had failed."""

from __future__ import annotations

from tests.diagnose.nccl_lines_made import read

WARN = "gpu07:{}:{} [3] {} NCCL WARN {}"
MAIN, PROXY = 4188, 4199


def failed(pid: int = 4100, code: int = 3) -> str:
    said = f"[Proxy Service 3] Failed to execute operation Connect from rank 3, retcode {code}"
    return WARN.format(pid, PROXY, "proxy.cc:1519", said)


def closed(thread: int = MAIN) -> str:
    said = "socketProgress: Connection closed by remote peer gpu07<41109>"
    return WARN.format(4100, thread, "misc/socket.cc:49", said)


CALL = WARN.format(4100, MAIN, "proxy.cc:1150", "Proxy Call to rank 3 failed (Connect)")
POLL = WARN.format(4100, MAIN, "proxy.cc:1143", "Socket recv failed while polling for opId=0x7f")


def test_a_proxy_that_failed_before_is_the_cause():
    (failure,) = read(failed(), closed(), POLL).failures
    assert failure.cause.startswith(
        "the proxy of rank 3 could not carry out Connect (its network's connection, code 3)"
    )
    assert "that node's log" not in failure.fix
    assert failure.evidence[0].line == 1


def test_a_call_of_a_proxy_that_failed_behind_it_is_the_cause():
    (failure,) = read(closed(), POLL, CALL).failures
    assert failure.cause.startswith("the proxy of rank 3 could not carry out Connect (")
    assert failure.evidence[0].line == 3


def test_a_warning_of_the_proxys_thread_is_told_first():
    why = WARN.format(4100, PROXY, "net.cc:9", "Call to ibv_create_qp failed with error x")
    (failure,) = read(why, failed(), closed(), POLL, CALL).failures
    assert failure.name == "ib_call"


def test_a_peer_that_closed_is_told_where_the_own_proxy_is_not_to_blame():
    for lines in ((closed(), POLL), (closed(PROXY), failed()), (failed(pid=4101), closed())):
        assert [item.name for item in read(*lines).failures] == ["peer_closed"]


def test_a_provider_that_was_selected_is_not_wanting():
    note = WARN.format(
        4100, MAIN, "nccl_net_ofi_init:9", "NET/OFI aws-ofi-nccl initialization failed"
    )
    chosen = "gpu07:4100:4188 [3] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)"
    (without,) = read(note).notes
    assert "for want of a provider" in without.cause
    (beside,) = read(chosen, note).notes
    assert "the provider was found, and its endpoint could not be made" in beside.cause
    assert "fi_info" not in beside.fix
