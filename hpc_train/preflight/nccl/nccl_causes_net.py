"""Rules about interfaces, network devices and the wire.

Sources: see `nccl_causes`.
"""

from __future__ import annotations

from hpc_train.preflight.nccl.nccl_causes_node import IB_CALL
from hpc_train.preflight.nccl.nccl_rules import Rule

__all__ = ["NET_RULES", "STATUS"]

# 2.4: "with error 12,"; 2.14: "with status=12"; 2.28: "with status=RETRY_EXC(12)".
STATUS = (
    r"Got completion (?:from peer (?:(?P<peer>\S{{1,120}}) )?)?"
    r"with (?:error |status=)(?:[\w ]{{1,60}}\()?{}\b"
)
_CONNECT = (
    r"(?i:connect)(?: to (?P<peer>\S{1,120}?<\d+>))? (?:failed|returned)"
    r"(?: with error)?(?: :)? ?(?:\d+\()?(?P<error>%s)(?!.{0,20}retrying)"
)
_SHARED = (
    "NCCL_SOCKET_IFNAME with the interface that all nodes share; open all TCP ports between the"
    " nodes (NCCL's ports are random)"
)
_TEST_BOTH = "The line names an end point, not the culprit: test both nodes against others"

NET_RULES: tuple[Rule, ...] = (
    # Which interface, which device.
    Rule(
        "no_interface",
        "[Nn]o socket interface found|no device found (?:matching|after)|No interface found"
        "|NET/Socket : no interface found|No usable listening interface|No IP interface found",
        "NCCL found no interface on this node that fits its settings",
        "compare NCCL_SOCKET_IFNAME with `ip -br addr` of that node; a leading = takes names"
        " exactly, ^ leaves out; unset, NCCL chooses",
    ),
    Rule(
        "mixed_link_layers",
        "ncompatible devices?|device is incompatible with the local"
        "|net devices with different link_layer",
        "HCAs of different kinds (InfiniBand and Ethernet) were to talk to each other",
        "NCCL_IB_HCA with HCAs of one link layer alone, the same on all nodes",
    ),
    Rule(
        "no_network",
        "Error: network (?P<name>.{1,40}?) not found|Failed to initialize any NET plugin",
        "NCCL found no network of the name {name} that it is told to use (NCCL_NET)",
        "NCCL_NET unset, or the plugin's libnccl-net.so where the NET/Plugin lines look for it",
    ),
    Rule(
        "mixed_hcas",
        "Detected mixed local (?P<what>Net"
        r"|CollNet) device counts across ranks \(min (?P<low>\d+), max (?P<high>\d+)\)",
        "the nodes do not see the same number of network devices: {low} to {high}",
        "ibstat on the nodes; a port that is down, or a device that is missing in the container",
    ),
    Rule(
        "gid",
        "Call to ibv_modify_qp failed.{0,20}(?P<error>No such device|Invalid argument"
        r"|Network is unreachable|No data available|(?:19|22|61|101)\b)",
        "the queue pair could not be connected ({error}): most often the GID that is used does"
        " not reach the peer's, or does not exist",
        "show_gids on both nodes: a RoCE v2 GID with a routable address, the same index; leave"
        " NCCL_IB_GID_INDEX unset from NCCL 2.21 on; HCAs of one network in NCCL_IB_HCA",
    ),
    Rule(
        "gid_timeout",
        r"Call to ibv_modify_qp failed.{0,20}(?:Connection timed out|110\b)(?!.{0,400}retrying)",
        "the NIC could not resolve the way to the peer's GID: on RoCE a wrong GID, no route"
        " between these two networks, or a filter",
        "show_gids, and ping -I between the two addresses; rails that are not routed among each"
        " other: NCCL_CROSS_NIC=0; ib_write_bw -R between the nodes",
    ),
    Rule(
        "port_error",
        r"NET/IB ?: (?:(?P<hca>[\w.-]{1,60}:\d+) )?(?:Got async (?:error )?event"
        "|async fatal event(?: on [A-Z]{2})?)[^:]{0,200}: (?P<event>port error"
        "|local catastrophic error|device fatal error|CQ error"
        "|local work queue catastrophic error|QP access violation.{0,20}|.{0,20}fatal.{0,40})",
        "{hca} reported: {event}",
        "the link of that HCA: ibstat, dmesg | grep mlx5, cable and switch port",
    ),
    Rule(
        "queue_pair",
        r"NET/IB ?: (?:(?P<hca>[\w.-]{1,60}:\d+) )?(?:Got async (?:error )?event"
        r"|async fatal event(?: on [A-Z]{2,3})?)[^:]{0,200}: (?P<event>[\w ]{0,60}error[\w"
        " ]{0,40})",
        "{hca} reported a failed connection: {event}",
        "memory that the NIC may not reach, or a peer that ended: PCIe ACS and IOMMU,"
        " nvidia_peermem of the driver's version, dmesg of both nodes; NCCL_NET_GDR_LEVEL=LOC"
        " shows whether GPUDirect is the cause",
        unless=("local_protection", "remote_access"),
    ),
    # The wire.
    Rule(
        "local_protection",
        STATUS.format("4"),
        "the NIC may not reach the memory it was given (local protection error): with vendor err"
        " 81 and GPUDirect it is the way between NIC and GPU",
        "PCIe ACS off, IOMMU off or in passthrough, nvidia_peermem of the driver's version;"
        " NCCL_NET_GDR_LEVEL=LOC shows whether GPUDirect is the cause",
    ),
    Rule(
        "remote_access",
        STATUS.format("(?:9|10)"),
        "the peer's NIC refused the access to its memory (remote access or remote invalid request)",
        "the peer's log says why: its memory was freed or registered otherwise (it ended first?);"
        " ACS, IOMMU and nvidia_peermem on the peer",
    ),
    Rule(
        "remote_operation",
        STATUS.format("11"),
        "the peer's NIC could not carry out the operation (remote operation error)",
        "the peer's log and its dmesg: the fault is on that side; ACS, IOMMU and nvidia_peermem"
        " there",
    ),
    Rule(
        "retry_exceeded",
        STATUS.format("12"),
        "the NIC of {peer} did not answer (retries exceeded): the fabric between the two, or the"
        " peer is dead",
        "the peer's log first: did it end before? Then ibstat and counters of both, MTU; on"
        " RoCE the GID index and PFC; rails that do not reach each other: NCCL_CROSS_NIC=0. "
        + _TEST_BOTH,
    ),
    Rule(
        "receiver_not_ready",
        STATUS.format("13"),
        "{peer} posted no receive in time (receiver not ready): it hangs or has ended, or the"
        " fabric loses packets",
        "the peer's log first; then the fabric. " + _TEST_BOTH,
    ),
    Rule(
        "completion",
        STATUS.format(r"(?P<status>(?!5\b)\d+)"),
        "a transfer of the HCA failed with status {status}",
        "ibv_wc_status_str of that number; dmesg of both nodes. " + _TEST_BOTH,
    ),
    Rule(
        "ib_device",
        "ibv_(?:open_device|query_device|query_port|query_gid|close_device"
        r"|get_async_event)(?:\(\))? failed|Unable to (?:open device|query device|query port_num)",
        "an HCA could not be opened or asked, so NCCL goes on without it",
        "ibv_devinfo; /dev/infiniband/uverbs* in the container; NCCL_IB_HCA",
        kind="note",
    ),
    Rule(
        "ib_call",
        IB_CALL + r"(?: with)?(?: error)? ?(?P<error>[\w ]{0,60})",
        "the verbs library refused {call}: {error}",
        "ulimit -l in the job (unlimited?), dmesg of that node, ibv_devinfo, /dev/infiniband in"
        " the container",
        unless=("memlock", "gid", "gid_timeout", "gpu_memory_registration"),
    ),
    Rule(
        "ofi_no_provider",
        "find any optimal provider|No eligible providers|Only EFA provider is supported"
        r"|NET/OFI .{0,40}initialization failed"
        r"|Failed to initialize \w+ protocol",
        "the libfabric plugin found no provider that it can use; NCCL goes on with what else it"
        " finds",
        "fi_info -p efa in the container; /dev/infiniband/uverbs* passed into it, libfabric of the"
        " EFA installer in LD_LIBRARY_PATH",
        kind="note",
    ),
    Rule(
        "ofi_peer",
        "NET/OFI .{0,600}?(?P<error>Unresponsive receiver|Unreachable remote|unreachable by EFA"
        "|handshake failed|Destroyed remote QP|[Rr]emote QP|Connection was reset by)",
        "the peer's EFA device could not be reached, or its process ended: {error}",
        "a security group that lets all traffic among its own members in and out; the peer's log:"
        " did it end first?",
    ),
    Rule(
        "ucx",
        r"UCX error (?P<place>\S{1,60}) '-?\d+' (?P<error>[^\n]{1,80})",
        "the UCX network plugin failed: {error}",
        "what UCX says before it (UCX_LOG_LEVEL=info); NCCL_PLUGIN_P2P=ib goes on with the verbs of"
        " the same plugin",
    ),
    Rule(
        "ofi",
        "NET/OFI (?P<what>(?:Request|Couldn't|Unable|Creating|Error|Could not|Initializing|OFI call"
        r"|Call to|CM|Caught|Retrieving|Querying)[^.\n]{0,80})",
        "libfabric failed: {what}",
        "fi_info, and the same libfabric and plugin on all nodes; on EFA a security group that lets"
        " all traffic in it pass",
        unless=("memlock", "ofi_registration", "ofi_peer"),
    ),
    Rule(
        "connect_loopback",
        r"(?i:connect) to (?P<peer>(?:127\.|169\.254\.|\[?fe80:|\[?::1)\S{0,100}?<\d+>) (?:failed"
        "|returned)",
        "{peer} is an address that one host alone can reach (loopback or link-local): another"
        " node offers the wrong interface",
        "NCCL_SOCKET_IFNAME with the interface that all nodes share; the node's own name must not"
        " resolve to 127.0.0.1",
    ),
    Rule(
        "connect_refused",
        _CONNECT % "Connection refused",
        "nothing listens at {peer}: that process has ended, or the address is not that of the"
        " node one meant",
        "the peer's log: did it end first? Otherwise the interface: NCCL_SOCKET_IFNAME on all"
        " nodes",
        unless=("connect_loopback",),
    ),
    Rule(
        "connect",
        _CONNECT
        % (
            r"No route to host|Network is unreachable|Connection timed out"
            r"|Software caused connection abort|Invalid argument|Cannot assign requested address"
            r"|Network is down|Host is down"
        ),
        "{peer} could not be reached: {error}. A firewall, an address of an interface that the"
        " others do not reach, or the node is down",
        _SHARED,
        unless=("connect_loopback",),
    ),
    Rule(
        "connect_retried",
        r"connect(?: to (?P<peer>\S{1,120}))? returned (?P<error>[\w ]{1,60}), retrying"
        r" \((?P<n>\d+)/(?P=n)\)",
        "{peer} could not be reached in {n} tries: {error}",
        _SHARED + "; the peer's log: did it end first?",
        level="INFO",
        unless=("connect_loopback", "connect", "connect_refused"),
    ),
    Rule(
        "wire_lost",
        "(?:recv from|send to|recv"
        r"|send)(?: (?P<peer>\S{1,120}))? failed : (?P<error>Connection timed out"
        "|No route to host|Network is (?:down|unreachable)|Host is down)",
        "an open connection to {peer} was lost: {error}. The node died, or its network did",
        "is the peer's node up? Its log, then cable and switch port",
    ),
    Rule(
        "socket",
        "(?P<what>(?:Call to (?:accept|bind|connect|getsockname|getsockopt|listen|poll|recv|send"
        r"|setsockopt|socket)|Socket creation|(?<!d\] )Accept|socket[A-Z]\w{0,30}(?: poll\(\))?"
        r"|UDS: [\w ]{1,40})(?: \S{1,120})? ?(?:failed|error)[^\n]{0,80}"
        r"|exceeded error retry count[^\n]{0,60})(?<!reset by peer)(?<!Broken pipe)",
        "a call on a socket failed: {what}",
        _SHARED + "; ranks of one host in one network namespace",
        unless=("connect", "connect_loopback", "connect_refused", "wire_lost", "peer_closed"),
    ),
    Rule(
        "size_mismatch",
        "(?:truncated : receiv(?:ed|ing)"
        r"|collective mismatch error,? local size) (?P<a>[\d,]+) (?:bytes instead of"
        r"|remote(?: size)?) (?P<b>[\d,]+)",
        "a message has {a} bytes where {b} were expected: the ranks do not call the same"
        " collective, or do not run the same NCCL with the same NCCL_* variables",
        "the same versions and NCCL_* on all nodes; the same collectives, sizes and order on all"
        " ranks; no second job on the same port",
    ),
    Rule(
        "foreign_connection",
        r"wrong (?:type|magic) \S{1,20} != \S{1,20}|mismatch in (?:info|rank count) from procs"
        "|has already checked in|incorrect receive info",
        "a connection came from where it was not expected: another communicator or job at the"
        " same port, ranks that were started twice, or different versions of NCCL",
        "one job at a MASTER_PORT, each rank once, the same NCCL on all nodes",
    ),
)
