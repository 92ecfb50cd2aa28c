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
        "no_transport",
        r"No transport found for rank (?P<a>\d+)\S* -> rank (?P<b>\d+)",
        "no way from rank {a} to rank {b}: P2P, shared memory and network are each off or unusable",
        "NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET unset; a network device that both see",
    ),
    Rule(
        "ranks_disagree",
        r"ring \d+ does not (?:loop back|contain rank)|Failed to determine (?:intra|local)"
        r"|Group creation failed|[Tt]opoRankToIndex could not|nLocals = \d+ should be"
        "|tree already has|P2p schedule creation has bugs",
        "the ranks did not find the same rings: they see nodes, GPUs or networks differently",
        "the same NCCL, NCCL_* (NCCL_HOSTID, NCCL_TOPO_FILE, NCCL_IB_HCA) and GPUs on all nodes;"
        " containers of one host with one host name",
    ),
    Rule(
        "peer_address",
        "connecting to address .{0,80}is neither AF_INET",
        "a rank was given an address that is none: its peer found no interface for its settings,"
        " or uses another network plugin",
        "compare NCCL_SOCKET_IFNAME with `ip -br addr` of all nodes; the same plugin (`Using"
        " network`) and NCCL on all ranks",
    ),
    Rule(
        "topology",
        "Could not find (?:real path of /sys/class/pci_bus|NET with id|NIC for rank|gpu rank"
        "|net id)|No path computed to go from|unique busId"
        r"|Attribute \w{1,30} of node \w{1,30} not found",
        "NCCL could not place the GPUs and network devices on the node's PCI tree",
        "mount /sys, where the container or VM hides it; NCCL_TOPO_FILE unset, or a file of this"
        " kind of node; NCCL_IB_HCA without virtual devices",
    ),
    Rule(
        "topology_file",
        r"XML (?:Import Channel|Parse|Mismatch|\w{5,8} has wrong version|parser is limited)",
        "the topology or graph file that NCCL was given does not fit this node",
        "NCCL_TOPO_FILE and NCCL_GRAPH_FILE unset: also in /etc/nccl.conf and ~/.nccl.conf",
    ),
    Rule(
        "p2p",
        "failed to peer with device|failed to open CUDA IPC handle|peer access is not supported"
        r"|peer mapping resources exhausted|(?:cudaIpc|cuIpc)\w{1,40} failed"
        r"|P2P is disabled between NVLINK|^\S*/p2p\.cc\S* .{0,40}C(?:uda|UDA) (?:failure|error)",
        "two GPUs of one host could not map each other's memory (P2P)",
        "nvidia-smi topo -p2p r; in a container or VM: PCIe ACS and --ipc=host; NCCL_CUMEM_ENABLE=0"
        " where the place is about cuMem; NCCL_P2P_DISABLE=1 goes on without P2P, slower",
    ),
    Rule(
        "invalid_use",
        r"(?P<what>Invalid (?:rank|device|config|NCCL_COMM_BLOCKING)[^\n]{1,60}"
        r"|[Ii]nvalid device count|rank \d+ exceeds ndev|improper usage of[^\n]{1,60}"
        r"|[Nn]o algorithm/protocol available[^\n]{0,80}|Trying to (?:send"
        r"|recv) to self[\w ]{0,40}|(?:Mixing|mixing) different streams[\w ]{0,40}"
        r"|communicator was revoked|Attempt to use communicator before[\w ]{0,60}"
        r"|comm \S{1,20} has already been destroyed|Data type supplied[\w ]{0,60}"
        r"|Streams given to a communicator[\w ]{0,60}|not in a group call"
        r"|Blocking and nonblocking[\w ]{0,60}|argument not initialized via \w{1,40}"
        r"|[Tt]oo many (?:aggregated|async)[\w ]{1,40}|FP8 reduction support[\w ]{0,40}"
        r"|\w{1,30} : (?:invalid|\w{1,20} argument is NULL|\w{1,20} is not a valid)[^\n]{0,60})",
        "NCCL was called in a way that it refuses: {what}",
        "the call of the program (or the NCCL_* variables) that the line names",
    ),
    Rule(
        "cuda",
        CUDA % "",
        "a CUDA call failed: {error}",
        "the same test on one node alone; dmesg | grep -i xid; driver and CUDA of one version in"
        " the container; NCCL_CUMEM_ENABLE=0 where the place is about cuMem",
        unless=("nvls", "cuda_shm", "cuda_init", "cuda_kernel", "torch_oom", "p2p"),
    ),
    Rule(
        "heartbeat",
        r"watchdog got stuck for (?P<seconds>\d+) seconds|Heartbeat monitor timed out",
        "torch's watchdog thread itself stood still: a CUDA or NCCL call hangs, the GIL is held,"
        " or the host stalls",
        "the stacks of the ranks (py-spy dump); storage or host that stalls;"
        " TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC is the limit",
    ),
    # What another failure brings about.
    Rule(
        "proxy_system",
        "(?:Failed to execute operation "
        r"|progressing operation=)(?P<op>\w{1,20})(?: from rank \d+, retcode |, res=)2\b",
        "a call of the system failed in NCCL's proxy ({op}); its reason is not in this log",
        "over sockets NCCL_SOCKET_IFNAME and open TCP ports between the nodes; over InfiniBand"
        " memlock and dmesg; NCCL_DEBUG_SUBSYS=INIT,NET,PROXY",
        kind="follows",
    ),
    Rule(
        "peer_closed",
        "(?:closed by remote peer|(?:recv|send|read|write)(?: from"
        "| to)?(?=.{0,140}(?:reset by peer|Broken pipe"
        r"|Connection refused)))(?: (?!failed)(?P<peer>[^\s<]{1,120}))?",
        "{peer} closed the connection: something failed or ended there first",
        "read that node's log: what ended there, or was the connection cut on the way?",
        kind="follows",
    ),
    Rule(
        "remote_error",
        "ncclRemoteError|remote process (?:exited|has terminated)|unexpected exit of a remote peer",
        "a peer ended or could not be reached any more",
        "the log of the rank that ended first has the cause",
        kind="follows",
    ),
    Rule(
        "allocation",
        "Failed to CUDA (?:host alloc|malloc|calloc)",
        "NCCL got no memory for its buffers",
        "the CUDA failure just before it says why; less memory a rank",
        kind="follows",
    ),
    Rule(
        "aftermath",
        r"\[Proxy Service|\[Service thread\]|\[Proxy Progress\]|Socket recv failed while polling"
        "|communicator encountered a fatal error|Proxy Call to rank"
        r"|[Pp]roxy\w{0,20} .{0,60}failed|is in abort state|ncclAsyncJobComplete|commReclaim"
        r"|ncclCommSetAsyncError|socketProgress\w{0,4}: abort|NET/Socket : socket progress error"
        "|NCCL communicator was aborted|NCCL operations have failed or timed out|"
        + STATUS.format("5"),
        "NCCL or torch stopped its work after another failure",
        "the first failure is earlier in this log, or in that of another rank",
        kind="follows",
    ),
    # No failure.
    Rule(
        "libibverbs",
        r"Failed to open libibverbs\.so",
        "libibverbs could not be loaded, so NCCL has no InfiniBand or RoCE there",
        "install rdma-core (libibverbs1) in the image, if the nodes have HCAs",
        kind="note",
        level="ANY",
    ),
    Rule(
        "no_ib_device",
        "NET/IB ?: No device found",
        "NCCL found no InfiniBand or RoCE device",
        "ibstat on the node; /dev/infiniband in the container; NCCL_IB_HCA",
        kind="note",
        level="INFO",
    ),
    Rule(
        "simple_order",
        r"Could not find (?:a path for pattern \d+, falling back|any local path)",
        "NCCL found no good order of GPUs and network devices, and takes a simple one",
        "slower, no failure: /sys in the container, NCCL_P2P_LEVEL, NCCL_IB_HCA",
        kind="note",
    ),
    Rule(
        "missing_peermem",
        r"GPU Direct RDMA Disabled for (?:GPU \S{1,20} / )?HCA \d+ '?\S{0,40}'? ?\(no module",
        "GPUDirect RDMA is off: the kernel module is missing (nvidia_peermem, earlier nv_peer_mem)",
        "modprobe nvidia_peermem on the nodes",
        kind="note",
        level="INFO",
    ),
    Rule(
        "harmless",
        "GID table change|Got non-fatal async event|Got async (?:error )?event ?: (?:port active"
        "|client reregister|LID change|SM change|P_Key)|Disabling shared memory failed"
        "|Failed to initialize NET plugin|TUNER/Plugin|PROFILER/Plugin|Configured with"
        "|is being ignored|lib wrapper not initialized|Setting .{0,60}not supported|libgdrapi"
        "|GDR_COPY|GDRCOPY|Could not find real path|unlink shared memory|munmap of shared memory"
        r"|SHARP|, using [\w -]{1,40} instead|, disabling|, ignoring|[Dd]efaulting to|, cap it to",
        kind="harmless",
    ),
)

# The order matters: a line is of the first rule that fits, and the first cause is told first.
RULES = NODE_RULES + NET_RULES + _LATE_RULES
