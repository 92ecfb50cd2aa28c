"""The rules for NCCL's, its plugins' and torch's words: what each line means, root causes first.

Patterns are made from the format strings of NCCL 2.4 to 2.30 (src/), aws-ofi-nccl, HPC-X's
nccl-rdma-sharp-plugins and torch's ProcessGroupNCCL; status numbers are ibv_wc_status of
rdma-core's verbs.h. docs/preflight.md shows this table, and a test holds the two together.
"""

from __future__ import annotations

from hpc_train.preflight.nccl.nccl_causes_net import NET_RULES, STATUS
from hpc_train.preflight.nccl.nccl_causes_node import CUDA, NODE_RULES
from hpc_train.preflight.nccl.nccl_rules import Rule

__all__ = ["RULES"]

_LATE_RULES: tuple[Rule, ...] = (
    # What failed is certain, and less so why.
    Rule(
        name="ranks_disagree",
        pattern=(
            r"ring \d+ does not (?:loop back|contain rank)|Failed to determine (?:intra|local)"
            r"|Group creation failed|[Tt]opoRankToIndex could not|nLocals = \d+ should be"
            r"|tree already has|P2p schedule creation has bugs|No transport found"
        ),
        cause="the ranks did not find the same rings: they see nodes, GPUs or networks differently",
        fix=(
            "the same NCCL, NCCL_* (NCCL_HOSTID, NCCL_TOPO_FILE, NCCL_IB_HCA) and GPUs on all"
            " nodes;"
            " containers of one host with one host name"
        ),
        source="NCCL graph/rings.cc, init.cc",
    ),
    Rule(
        name="peer_address",
        pattern=r"connecting to address .{0,80}is neither AF_INET",
        cause=(
            "a rank was given an address that is none: its peer found no interface for its"
            " settings, or uses another network plugin"
        ),
        fix=(
            "compare NCCL_SOCKET_IFNAME with `ip -br addr` of all nodes; the same plugin"
            " (`Using network`) and NCCL on all ranks"
        ),
        source="NCCL misc/socket.cc",
    ),
    Rule(
        name="topology",
        pattern=(
            r"Could not find (?:real path of /sys/class/pci_bus|NET with id"
            r"|any local path|NIC for rank"
            r"|gpu rank|net id)|No path computed to go from|unique busId"
            r"|Attribute \w{1,30} of node \w{1,30} not found"
        ),
        cause="NCCL could not place the GPUs and network devices on the node's PCI tree",
        fix=(
            "mount /sys, where the container or VM hides it; NCCL_TOPO_FILE unset, or a file of"
            " this kind of node; NCCL_IB_HCA without virtual devices"
        ),
        source="NCCL graph/topo.cc, graph/search.cc",
    ),
    Rule(
        name="topology_file",
        pattern=(
            r"XML (?:Import Channel|Parse|Mismatch|\w{5,8} has wrong version|parser is limited)"
        ),
        cause="the topology or graph file that NCCL was given does not fit this node",
        fix=("NCCL_TOPO_FILE and NCCL_GRAPH_FILE unset: also in /etc/nccl.conf and ~/.nccl.conf"),
        source="NCCL graph/xml.cc, graph/search.cc",
    ),
    Rule(
        name="p2p",
        pattern=(
            r"failed to peer with device|failed to open CUDA IPC handle"
            r"|peer access is not supported|peer mapping resources exhausted|(?:cudaIpc"
            r"|cuIpc)\w{1,40} failed|P2P is disabled between NVLINK"
        ),
        cause="two GPUs of one host could not map each other's memory (P2P)",
        fix=(
            "nvidia-smi topo -p2p r; in a container or VM: PCIe ACS and --ipc=host;"
            " NCCL_P2P_DISABLE=1 goes on without P2P, slower"
        ),
        source="NCCL transport/p2p.cc",
    ),
    Rule(
        name="invalid_use",
        pattern=(
            r"(?P<what>Invalid (?:rank|device|config|NCCL_COMM_BLOCKING)[^\n]{1,60}"
            r"|[Ii]nvalid device"
            r" count|rank \d+ exceeds ndev|improper usage of[^\n]{1,60}|[Nn]o algorithm/protocol"
            r" available[^\n]{0,80}|Trying to (?:send|recv) to self[\w ]{0,40}|(?:Mixing"
            r"|mixing) different"
            r" streams[\w ]{0,40}|communicator was revoked"
            r"|Attempt to use communicator before[\w ]{0,60}"
            r"|comm \S{1,20} has already been destroyed|Data type supplied[\w ]{0,60}"
            r"|Streams given to a"
            r" communicator[\w ]{0,60}|not in a group call|Blocking and nonblocking[\w ]{0,60}"
            r"|argument not initialized via \w{1,40}|[Tt]oo many (?:aggregated|async)[\w ]{1,40}"
            r"|FP8 reduction support[\w ]{0,40}|\w{1,30} : (?:invalid|\w{1,20} argument is NULL"
            r"|\w{1,20} is not a valid)[^\n]{0,60})"
        ),
        cause="NCCL was called in a way that it refuses: {what}",
        fix="the call of the program (or the NCCL_* variables) that the line names",
        source="NCCL init.cc, enqueue.cc",
    ),
    Rule(
        name="cuda",
        pattern=CUDA % "",
        cause="a CUDA call failed: {error}",
        fix=(
            "the same test on one node alone; dmesg | grep -i xid; driver and CUDA of one version"
            " in the container; NCCL_CUMEM_ENABLE=0 where the place is about cuMem"
        ),
        source="CUDA, by NCCL",
        unless=(
            "nvls",
            "nvls_bind",
            "cuda_shm",
            "cuda_init",
            "cuda_kernel",
            "torch_oom",
        ),
    ),
    Rule(
        name="heartbeat",
        pattern=r"watchdog got stuck for (?P<seconds>\d+) seconds|Heartbeat monitor timed out",
        cause=(
            "torch's watchdog thread itself stood still: a CUDA or NCCL call hangs, the GIL is"
            " held, or the host stalls"
        ),
        fix=(
            "the stacks of the ranks (py-spy dump); storage or host that stalls;"
            " TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC is the limit"
        ),
        source="torch ProcessGroupNCCL.cpp",
    ),
    # What another failure brings about.
    Rule(
        name="proxy_system",
        kind="follows",
        pattern=(
            r"(?:Failed to execute operation |progressing operation=)(?P<op>\w{1,20})"
            r"(?: from rank \d+, retcode |, res=)2\b"
        ),
        cause="a call of the system failed in NCCL's proxy ({op}); its reason is not in this log",
        fix=(
            "over sockets NCCL_SOCKET_IFNAME and open TCP ports between the nodes; over"
            " InfiniBand memlock and dmesg; NCCL_DEBUG_SUBSYS=INIT,NET,PROXY"
        ),
        source="NCCL proxy.cc",
    ),
    Rule(
        name="peer_closed",
        kind="follows",
        pattern=(
            r"(?:closed by remote peer|(?:recv|send|read|write)(?: from| to)?"
            r"(?=.{0,140}(?:reset by peer|Broken pipe|Connection refused)))"
            r"(?: (?!failed)(?P<peer>[^\s<]{1,120}))?"
        ),
        cause="{peer} closed the connection: something failed or ended there first",
        fix="read that node's log: the cause is there",
        source="NCCL misc/socket.cc",
    ),
    Rule(
        name="remote_error",
        kind="follows",
        pattern=(
            r"ncclRemoteError|remote process (?:exited|has terminated)"
            r"|unexpected exit of a remote peer"
        ),
        cause="a peer ended or could not be reached any more",
        fix="the log of the rank that ended first has the cause",
        source="torch NCCLUtils",
    ),
    Rule(
        name="aborted",
        kind="follows",
        pattern=r"NCCL communicator was aborted|NCCL operations have failed or timed out",
        cause="torch gave up its communicator after a failure",
        fix="the first failure is earlier in this log, or in that of another rank",
        source="torch NCCLUtils",
    ),
    Rule(
        name="flushed",
        kind="follows",
        pattern=STATUS.format("5"),
        cause="transfers were thrown away after the queue pair had failed",
        fix="the first error of that connection, here or in the peer's log",
        source="NCCL transport/net_ib; IBV_WC_WR_FLUSH_ERR",
    ),
    Rule(
        name="allocation",
        kind="follows",
        pattern=r"Failed to CUDA (?:host alloc|malloc|calloc)",
        cause="NCCL got no memory for its buffers",
        fix="the CUDA failure just before it says why; less memory a rank",
        source="NCCL include/alloc.h",
    ),
    Rule(
        name="aftermath",
        kind="follows",
        pattern=(
            r"\[Proxy Service|\[Service thread\]|\[Proxy Progress\]"
            r"|Socket recv failed while polling|communicator encountered a fatal error"
            r"|Proxy Call to rank|[Pp]roxy\w{0,20} .{0,60}failed|is in abort state"
            r"|ncclAsyncJobComplete|commReclaim|ncclCommSetAsyncError"
            r"|socketProgress\w{0,4}: abort|NET/Socket : socket progress error"
        ),
        cause="NCCL's proxy stopped after another failure",
        fix="the log of the other ranks has the cause",
        source="NCCL proxy.cc",
    ),
    # No failure.
    Rule(
        name="libibverbs",
        kind="note",
        level="ANY",
        pattern=r"Failed to open libibverbs\.so",
        cause="libibverbs could not be loaded, so NCCL has no InfiniBand or RoCE there",
        fix="install rdma-core (libibverbs1) in the image, if the nodes have HCAs",
        source="NCCL misc/ibvwrap.cc, misc/ibvsymbols.cc",
    ),
    Rule(
        name="no_ib_device",
        kind="note",
        level="INFO",
        pattern=r"NET/IB ?: No device found",
        cause="NCCL found no InfiniBand or RoCE device",
        fix="ibstat on the node; /dev/infiniband in the container; NCCL_IB_HCA",
        source="NCCL transport/net_ib",
    ),
    Rule(
        name="simple_order",
        kind="note",
        pattern=r"Could not find a path for pattern \d+, falling back",
        cause="NCCL found no good order of GPUs and network devices, and takes a simple one",
        fix="slower, no failure: /sys in the container, NCCL_P2P_LEVEL, NCCL_IB_HCA",
        source="NCCL graph/search.cc",
    ),
    Rule(
        name="missing_peermem",
        kind="note",
        level="INFO",
        pattern=(
            r"GPU Direct RDMA Disabled for (?:GPU \S{1,20} / )?HCA \d+ '?\S{0,40}'? ?\(no module"
        ),
        cause=(
            "GPUDirect RDMA is off: the kernel module is missing (nvidia_peermem, earlier"
            " nv_peer_mem)"
        ),
        fix="modprobe nvidia_peermem on the nodes",
        source="NCCL transport/net_ib, up to 2.13",
    ),
    Rule(
        name="harmless",
        kind="harmless",
        pattern=(
            r"GID table change|Got non-fatal async event"
            r"|Got async (?:error )?event ?: (?:port active|client reregister|LID change"
            r"|SM change|P_Key)|Disabling shared memory failed|Failed to initialize NET plugin"
            r"|TUNER/Plugin|PROFILER/Plugin|Configured with|is being ignored"
            r"|lib wrapper not initialized|Setting .{0,60}not supported|libgdrapi|GDR_COPY"
            r"|GDRCOPY|Could not find real path|unlink shared memory|munmap of shared memory|SHARP"
            r"|, using [\w -]{1,40} instead|, disabling|, ignoring|[Dd]efaulting to|, cap it to"
        ),
        source="NCCL and its plugins",
    ),
)

# The order matters: a line is of the first rule that fits, and the first cause is told first.
RULES = NODE_RULES + NET_RULES + _LATE_RULES
