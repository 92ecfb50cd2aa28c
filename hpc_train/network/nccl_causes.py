"""The rules for NCCL's, its plugins' and torch's words: what each line means, root causes first.

Patterns are made from the format strings of NCCL 2.4 to 2.30 (src/), aws-ofi-nccl, HPC-X's
nccl-rdma-sharp-plugins and torch's ProcessGroupNCCL; status numbers are ibv_wc_status of rdma-core's
verbs.h. docs/preflight.md shows this table, and a test holds the two together.
"""

from __future__ import annotations

from hpc_train.network.nccl_rules import Rule

__all__ = ["RULES"]

_STATUS = r"Got completion (?:from peer (?P<peer>\S{{1,120}}) )?with (?:error |status=)(?:\w{{1,40}}\()?{}\b"
_CONNECT = (
    r"(?i:connect)(?: to (?P<peer>\S{1,120}?<\d+>))? (?:failed|returned)"
    r"(?: with error)?(?: :)? ?(?:\d+\()?(?P<error>%s)(?!.{0,20}retrying)"
)
_IB_CALL = r"Call to (?P<call>ibv_\w{1,40}) failed"
_CUDA = r"C(?:uda|UDA) (?:failure|error):? ?(?:\d{1,4} )?'?(?P<error>%s[^'\n]{0,80})"
_TEST_BOTH = "The line names an end point, not the culprit: test both nodes against others"

RULES: tuple[Rule, ...] = (
    # The program: the same on a perfect network.
    Rule(
        name="duplicate_gpu",
        pattern=r"Duplicate GPU detected : rank (?P<a>\d+) and rank (?P<b>\d+) both on CUDA device",
        cause="ranks {a} and {b} use the same GPU",
        fix="one rank a GPU: torch.cuda.set_device(LOCAL_RANK) before the first collective, and no more ranks a node than GPUs",
        source="NCCL init.cc",
    ),
    Rule(
        name="shared_gpu",
        pattern=r"Multiple Ranks are using the same GPU",
        cause="several ranks use the same GPU",
        fix="one rank a GPU: torch.cuda.set_device(LOCAL_RANK) before the first collective",
        source="NCCL init.cc, 2.30",
    ),
    Rule(
        name="version_mismatch",
        pattern=r"Mismatched NCCL version detected : rank (?P<a>\d+) version (?P<va>\d+) rank (?P<b>\d+) version (?P<vb>\d+)",
        cause="the ranks run different versions of NCCL: rank {a} has {va}, rank {b} has {vb}",
        fix="the same environment or container on all nodes; look for an NCCL in LD_LIBRARY_PATH and LD_PRELOAD",
        source="NCCL init.cc",
    ),
    Rule(
        name="collective_mismatch",
        pattern=r"Detected mismatch between collectives on ranks\. Rank (?P<a>\d+) is running collective: (?P<ca>.{1,80}?)(?:, Tensor|\)).{0,900}?but Rank (?P<b>\d+) is running collective: (?P<cb>.{1,80}?)(?:, Tensor|\)|$)",
        cause="the ranks called different collectives: rank {a} {ca}), rank {b} {cb})",
        fix="every rank has to call the same collectives in the same order with the same shapes: look for a branch that only some ranks take",
        source="torch ProcessGroupWrapper.cpp",
    ),
    Rule(
        name="collective_mismatch_nccl",
        pattern=r"[Mm]ismatched collective detected|(?:D|d)etected mismatch between collectives",
        cause="the ranks called different collectives",
        fix="every rank has to call the same collectives in the same order with the same shapes; TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks",
        source="NCCL init.cc, torch",
    ),
    Rule(
        name="torch_oom",
        pattern=r"(?:CUDA out of memory|OutOfMemoryError|" + _CUDA % "out of memory" + ")",
        cause="a GPU ran out of memory; the other ranks then wait for that one or lose it",
        fix="less memory a rank: a smaller micro batch, activation checkpointing, sharding; and nothing else on the GPU",
        source="CUDA, by torch or NCCL",
    ),
    Rule(
        name="cuda_kernel",
        pattern=_CUDA
        % "(?:an illegal memory access|unspecified launch failure|device-side assert|misaligned address|an illegal instruction)",
        cause="a CUDA kernel failed before NCCL's call: {error}; the network is not the cause",
        fix="run once with CUDA_LAUNCH_BLOCKING=1 to find the kernel; on one node alone, look for Xid errors in dmesg",
        source="CUDA, by torch or NCCL",
    ),
    # The node: GPU, limits, shared memory.
    Rule(
        name="gpu_lost",
        pattern=r"(?P<error>GPU is lost|[Uu]ncorrectable (?:NVLink |ECC )?error|fell off the bus|unspecified hardware error|Driver/library version mismatch|CUDA driver version is insufficient[\w ]{0,40}|no CUDA-capable device[\w ]{0,20}|system not yet initialized|invalid device ordinal)",
        cause="the GPU or its driver does not work: {error}",
        fix="nvidia-smi and dmesg | grep -i xid on that node; drain it ('system not yet initialized': start nvidia-fabricmanager)",
        source="CUDA and NVML, by NCCL",
    ),
    Rule(
        name="nvls",
        pattern=r"Cuda failure|Failed to bind NVLink SHARP|CUDA error",
        place=r"nvls",
        cause="NVLink SHARP (NVLS) could not be set up: usually the fabric manager or the NVSwitches of that node",
        fix="nvidia-smi -q | grep -A3 Fabric; reset the GPUs after the fabric manager was restarted, or reboot; NCCL_NVLS_ENABLE=0 goes on without NVLS",
        source="NCCL transport/nvls.cc",
    ),
    Rule(
        name="nvls_bind",
        pattern=r"Failed to bind NVLink SHARP \(NVLS\)|UC alloc size \d+ failed|nvls\w{0,20}.{0,40}failed",
        cause="NVLink SHARP (NVLS) could not be set up: usually the fabric manager or the NVSwitches of that node",
        fix="nvidia-smi -q | grep -A3 Fabric; reset the GPUs after the fabric manager was restarted, or reboot; NCCL_NVLS_ENABLE=0 goes on without NVLS",
        source="NCCL transport/nvls.cc, 2.27",
    ),
    Rule(
        name="shm_size",
        pattern=r"failed to extend /dev/shm/\S{1,60} to (?P<size>\d+) bytes|posix_fallocate failed : No space left on device|shared memory segment \S{1,80} \(size \d+\), error: No space left",
        cause="/dev/shm is too small or full",
        fix="docker --shm-size=8g or --ipc=host, Kubernetes: an emptyDir of medium Memory at /dev/shm; df -h /dev/shm, and remove stale /dev/shm/nccl-*",
        source="NCCL misc/shmutils.cc, include/shm.h, os/linux.cc",
    ),
    Rule(
        name="shm_attach",
        pattern=r"Error while attaching to shared memory segment|shared memory segment .{0,80}No such file or directory",
        cause="a rank cannot see the shared memory of another rank on its host: they do not share /dev/shm, or that rank has ended",
        fix="ranks of one host in one container, or with one IPC namespace (--ipc=host); otherwise NCCL_SHM_DISABLE=1, which is slower",
        source="NCCL misc/shmutils.cc",
    ),
    Rule(
        name="shm",
        pattern=r"[Ee]rror while creating shared memory segment|failed to create shared memory file|Could not map /dev/shm",
        cause="NCCL could not create its shared memory in /dev/shm",
        fix="df -h /dev/shm and its permissions; --shm-size or --ipc=host; remove stale /dev/shm/nccl-*",
        source="NCCL misc/shmutils.cc",
    ),
    Rule(
        name="memlock",
        pattern=_IB_CALL + r".{0,40}Cannot allocate memory",
        cause="{call} could not lock memory: the limit of locked memory (memlock) is too low inside the job",
        fix="ulimit -l has to say unlimited in the job itself: LimitMEMLOCK=infinity for slurmd, --ulimit memlock=-1 for a container",
        source="NCCL misc/ibvwrap.cc; NCCL's troubleshooting guide",
    ),
    Rule(
        name="memlock_ofi",
        pattern=r"Unable to register memory .{0,60}Cannot allocate memory",
        cause="libfabric could not lock memory: the limit of locked memory (memlock) is too low, or the GPU's window is used up",
        fix="ulimit -l has to say unlimited in the job itself: --ulimit memlock=-1 for a container",
        source="aws-ofi-nccl",
    ),
    Rule(
        name="gpu_memory_registration",
        pattern=r"Call to (?P<call>ibv_reg_\w{1,30}) failed.{0,30}(?P<error>Bad address|Invalid argument|Operation not (?:supported|permitted))",
        cause="the NIC could not register GPU memory ({call}: {error})",
        fix="load nvidia_peermem (or use the open kernel driver with DMA-BUF) on that node; NCCL_NET_GDR_LEVEL=LOC goes on without GPUDirect",
        source="NCCL misc/ibvwrap.cc",
    ),
    Rule(
        name="ofi_registration",
        pattern=r"Unable to register memory .{0,60}Invalid argument",
        cause="libfabric refused to register memory: libfabric and NCCL or the driver do not fit together",
        fix="a newer EFA installer (1.29 or later with NCCL 2.19 or later); FI_EFA_SET_CUDA_SYNC_MEMOPS=0 helps with an older one",
        source="aws-ofi-nccl",
    ),
    Rule(
        name="open_files",
        pattern=r"Too many open files",
        cause="the process may open no more files or sockets",
        fix="ulimit -n 1048576 in the job; LimitNOFILE for slurmd or the container",
        source="the kernel, by NCCL",
    ),
    Rule(
        name="threads",
        pattern=r"(?:pthread_create|Thread creation).{0,30}(?:failed|Resource temporarily unavailable)",
        cause="no further thread could be started",
        fix="ulimit -u and the pids limit of the container or cgroup",
        source="NCCL include/checks.h",
    ),
    Rule(
        name="port_in_use",
        pattern=r"(?:bind|listen|EADDRINUSE|server socket).{0,80}(?:Address already in use|address already in use)|Address already in use",
        cause="a port is in use by another process, perhaps one of an earlier run",
        fix="another MASTER_PORT; end what is left of the earlier run on that node",
        source="the kernel, by NCCL or torch",
    ),
    # Which interface, which device.
    Rule(
        name="no_interface",
        pattern=r"[Nn]o socket interface found|no device found (?:matching|after)|No interface found|NET/Socket : no interface found|No usable listening interface|No IP interface found|is neither AF_INET",
        cause="NCCL found no interface on this node that fits its settings",
        fix="compare NCCL_SOCKET_IFNAME with `ip -br addr` of that node; a leading = takes names exactly, ^ leaves out; unset, NCCL chooses",
        source="NCCL bootstrap.cc, misc/socket.cc",
    ),
    Rule(
        name="mixed_link_layers",
        pattern=r"ncompatible devices?|device is incompatible with the local",
        cause="HCAs of different kinds (InfiniBand and Ethernet) were to talk to each other",
        fix="NCCL_IB_HCA with HCAs of one link layer alone, the same on all nodes",
        source="NCCL transport/net_ib",
    ),
    Rule(
        name="mixed_hcas",
        pattern=r"Detected mixed local (?P<what>Net|CollNet) device counts across ranks \(min (?P<low>\d+), max (?P<high>\d+)\)",
        cause="the nodes do not see the same number of network devices: {low} to {high}",
        fix="ibstat on the nodes; a port that is down, or a device that is missing in the container",
        source="NCCL init.cc, 2.30",
    ),
    Rule(
        name="gid",
        pattern=r"Call to ibv_modify_qp failed.{0,20}(?P<error>No such device|Invalid argument|Network is unreachable|No data available|(?:19|22|61|101)\b)",
        cause="the queue pair could not be connected ({error}): the GID that is used does not reach the peer's, or does not exist",
        fix="show_gids on both nodes: a RoCE v2 GID with a routable address, the same index; leave NCCL_IB_GID_INDEX unset from NCCL 2.21 on; HCAs of one network in NCCL_IB_HCA",
        source="NCCL misc/ibvwrap.cc",
    ),
    Rule(
        name="gid_timeout",
        pattern=r"Call to ibv_modify_qp failed.{0,20}(?:Connection timed out|110\b)(?!.{0,400}retrying)",
        cause="the NIC could not resolve the way to the peer's GID: on RoCE a wrong GID, no route between these two networks, or a filter",
        fix="show_gids, and ping -I between the two addresses; rails that are not routed among each other: NCCL_CROSS_NIC=0; ib_write_bw -R between the nodes",
        source="NCCL misc/ibvwrap.cc",
    ),
    Rule(
        name="port_error",
        pattern=r"NET/IB ?: (?:(?P<hca>[\w.-]{1,60}:\d+) )?(?:Got async (?:error )?event|async fatal event(?: on [A-Z]{2})?)[^:]{0,200}: (?P<event>port error|local catastrophic error|device fatal error|CQ error|local work queue catastrophic error|QP access violation.{0,20}|.{0,20}fatal.{0,40})",
        cause="{hca} reported: {event}",
        fix="the link of that HCA: ibstat, dmesg | grep mlx5, cable and switch port",
        source="NCCL transport/net_ib, ibv_event_type_str",
    ),
    # The wire.
    Rule(
        name="local_protection",
        pattern=_STATUS.format("4"),
        cause="the NIC may not reach the memory it was given (local protection error): with vendor err 81 and GPUDirect it is the way between NIC and GPU",
        fix="PCIe ACS off, IOMMU off or in passthrough, nvidia_peermem of the driver's version; NCCL_NET_GDR_LEVEL=LOC shows whether GPUDirect is the cause",
        source="NCCL transport/net_ib; IBV_WC_LOC_PROT_ERR",
    ),
    Rule(
        name="remote_access",
        pattern=_STATUS.format("(?:9|10)"),
        cause="the peer's NIC refused the access to its memory (remote access or remote invalid request)",
        fix="the peer's log says why: its memory was freed or registered otherwise (it ended first?); ACS, IOMMU and nvidia_peermem on the peer",
        source="NCCL transport/net_ib; IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR",
    ),
    Rule(
        name="remote_operation",
        pattern=_STATUS.format("11"),
        cause="the peer's NIC could not carry out the operation (remote operation error)",
        fix="the peer's log and its dmesg: the fault is on that side; ACS, IOMMU and nvidia_peermem there",
        source="NCCL transport/net_ib; IBV_WC_REM_OP_ERR",
    ),
    Rule(
        name="retry_exceeded",
        pattern=_STATUS.format("12"),
        cause="the NIC of {peer} did not answer (retries exceeded): the fabric between the two, or the peer is dead",
        fix="the peer's log first: did it end before? Then ibstat and counters of both, MTU, RoCE: GID index, PFC; rails that do not reach each other: NCCL_CROSS_NIC=0. "
        + _TEST_BOTH,
        source="NCCL transport/net_ib; IBV_WC_RETRY_EXC_ERR",
    ),
    Rule(
        name="receiver_not_ready",
        pattern=_STATUS.format("13"),
        cause="{peer} posted no receive in time (receiver not ready): it hangs or has ended, or the fabric loses packets",
        fix="the peer's log first; then the fabric. " + _TEST_BOTH,
        source="NCCL transport/net_ib; IBV_WC_RNR_RETRY_EXC_ERR",
    ),
    Rule(
        name="completion",
        pattern=_STATUS.format(r"(?P<status>(?!5\b)\d+)"),
        cause="a transfer of the HCA failed with status {status}",
        fix="ibv_wc_status_str of that number; dmesg of both nodes. " + _TEST_BOTH,
        source="NCCL transport/net_ib",
    ),
    Rule(
        name="ib_call",
        pattern=_IB_CALL + r"(?: with)?(?: error)? ?(?P<error>[\w ]{0,60})",
        cause="the verbs library refused {call}: {error}",
        fix="dmesg of that node; ibv_devinfo; /dev/infiniband in the container",
        source="NCCL misc/ibvwrap.cc",
    ),
    Rule(
        name="ofi_no_provider",
        pattern=r"find any optimal provider|No eligible providers|Only EFA provider is supported|NET/OFI .{0,40}initialization failed|Failed to initialize (?:rdma|sendrecv|\w+) protocol",
        cause="the libfabric plugin found no provider that it can use, and NCCL goes on without it or stops",
        fix="fi_info -p efa in the container; /dev/infiniband/uverbs* passed into it, libfabric of the EFA installer in LD_LIBRARY_PATH",
        source="aws-ofi-nccl",
    ),
    Rule(
        name="ofi",
        pattern=r"NET/OFI (?P<what>(?:Request|Couldn't|Unable|Creating|Error|Could not|Initializing|OFI call|Call to|CM|Caught|Retrieving|Querying)[^.\n]{0,80})(?:.{0,20}RC: ?-?\d+\S? )?(?:.{0,5}E(?:rror|RROR): (?P<error>[^\n]{0,80}))?",
        cause="libfabric failed: {what}",
        fix="fi_info -p efa and the same libfabric and plugin on all nodes; an EFA security group that lets all traffic in it pass",
        source="aws-ofi-nccl",
    ),
    Rule(
        name="connect_refused",
        pattern=_CONNECT % "Connection refused",
        cause="nothing listens at {peer}: that process has ended, or the address is not that of the node one meant",
        fix="the peer's log: did it end first? Otherwise the interface: NCCL_SOCKET_IFNAME on all nodes",
        source="NCCL misc/socket.cc",
    ),
    Rule(
        name="connect",
        pattern=_CONNECT
        % r"No route to host|Network is unreachable|Connection timed out|Software caused connection abort|Invalid argument|Cannot assign requested address|Network is down|Host is down",
        cause="{peer} could not be reached: {error}. A firewall between the nodes, or an address of an interface that the others do not reach",
        fix="NCCL_SOCKET_IFNAME with the interface that all nodes share; open all TCP ports between the nodes (NCCL's ports are random)",
        source="NCCL misc/socket.cc",
    ),
    Rule(
        name="connect_retried",
        level="INFO",
        pattern=r"connect(?: to (?P<peer>\S{1,120}))? returned (?P<error>[\w ]{1,60}), retrying \((?P<n>\d+)/(?P=n)\)",
        cause="the other side could not be reached at {peer} in {n} tries: {error}",
        fix="NCCL_SOCKET_IFNAME with the interface that all nodes share; open all TCP ports between the nodes; the peer's log: did it end first?",
        source="NCCL misc/socket.cc, 2.23",
    ),
    Rule(
        name="wire_lost",
        pattern=r"(?:recv from|send to|recv|send)(?: (?P<peer>\S{1,120}))? failed : (?P<error>Connection timed out|No route to host|Network is (?:down|unreachable)|Host is down)",
        cause="an open connection to {peer} was lost: {error}. The node died, or its network did",
        fix="is the peer's node up? Its log, then cable and switch port",
        source="NCCL misc/socket.cc",
    ),
    Rule(
        name="size_mismatch",
        pattern=r"[Mm]essage truncated : receiv(?:ed|ing) (?P<a>[\d,]+) bytes instead of (?P<b>[\d,]+)",
        cause="a message has {a} bytes where {b} were expected: the ranks do not call the same collective, or do not run the same NCCL with the same NCCL_* variables",
        fix="the same versions and NCCL_* on all nodes; the same collectives, sizes and order on all ranks; no second job on the same port",
        source="NCCL bootstrap.cc, transport/net_socket.cc",
    ),
    Rule(
        name="foreign_connection",
        pattern=r"wrong (?:type|magic) \S{1,20} != \S{1,20}|mismatch in (?:info|rank count) from procs|has already checked in|incorrect receive info",
        cause="a connection came from where it was not expected: another communicator or job at the same port, ranks that were started twice, or different versions of NCCL",
        fix="one job at a MASTER_PORT, each rank once, the same NCCL on all nodes",
        source="NCCL misc/socket.cc, bootstrap.cc, transport/net_ib",
    ),
    Rule(
        name="p2p",
        pattern=r"failed to peer with device|peer mapping resources exhausted|(?:cudaIpc|cuIpc)\w{1,40} failed|P2P is disabled between NVLINK",
        cause="two GPUs of one host could not map each other's memory (P2P)",
        fix="nvidia-smi topo -p2p r; in a container or VM: PCIe ACS and --ipc=host; NCCL_P2P_DISABLE=1 goes on without P2P, slower",
        source="NCCL transport/p2p.cc",
    ),
    Rule(
        name="invalid_use",
        pattern=r"(?P<what>Invalid rank requested : \S{1,20}|invalid device count|rank \d+ exceeds ndev|No algorithm/protocol available for function [^\n]{0,80}|Send and Recv to self|communicator was revoked|Attempt to use communicator before[\w ]{0,60}|Data type supplied[\w ]{0,60}|Streams given to a communicator[\w ]{0,60}|FP8 reduction support)",
        cause="NCCL was called in a way that it refuses: {what}",
        fix="the call of the program (or the NCCL_* variables) that the line names",
        source="NCCL init.cc, enqueue.cc",
    ),
    Rule(
        name="cuda",
        pattern=_CUDA % "",
        cause="a CUDA call inside NCCL failed: {error}",
        fix="the same test on one node alone; dmesg | grep -i xid; driver and CUDA of one version in the container; NCCL_CUMEM_ENABLE=0 where the place is about cuMem",
        source="CUDA, by NCCL",
    ),
    Rule(
        name="heartbeat",
        pattern=r"watchdog got stuck for (?P<seconds>\d+) seconds|Heartbeat monitor timed out",
        cause="torch's watchdog thread itself stood still: a CUDA or NCCL call hangs, the GIL is held, or the host stalls",
        fix="the stacks of the ranks (py-spy dump); storage or host that stalls; TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC is the limit",
        source="torch ProcessGroupNCCL.cpp",
    ),
    # What another failure brings about.
    Rule(
        name="peer_closed",
        kind="follows",
        pattern=r"(?:closed by remote peer|(?:recv|send)(?: from| to)?(?=.{0,140}(?:reset by peer|Broken pipe)))(?: (?!failed)(?P<peer>[^\s<]{1,120}))?",
        cause="{peer} closed the connection: it ended first",
        fix="read that node's log: the cause is there",
        source="NCCL misc/socket.cc",
    ),
    Rule(
        name="remote_error",
        kind="follows",
        pattern=r"ncclRemoteError|remote process (?:exited|has terminated)|NCCL communicator was aborted|unexpected exit of a remote peer",
        cause="a peer ended or could not be reached any more",
        fix="the log of the rank that ended first has the cause",
        source="torch NCCLUtils",
    ),
    Rule(
        name="flushed",
        kind="follows",
        pattern=_STATUS.format("5"),
        cause="transfers were thrown away after the queue pair had failed",
        fix="the first error of that connection, here or in the peer's log",
        source="NCCL transport/net_ib; IBV_WC_WR_FLUSH_ERR",
    ),
    Rule(
        name="aftermath",
        kind="follows",
        pattern=r"\[Proxy Service|\[Service thread\]|\[Proxy Progress\]|Socket recv failed while polling|communicator encountered a fatal error|Proxy Call to rank|[Pp]roxy\w{0,20} .{0,60}failed|is in abort state|ncclAsyncJobComplete|commReclaim|ncclCommSetAsyncError|socketProgress\w{0,4}: abort|NET/Socket : socket progress error",
        cause="NCCL's proxy stopped after another failure",
        fix="the log of the other ranks has the cause",
        source="NCCL proxy.cc",
    ),
    # No failure.
    Rule(
        name="libibverbs",
        kind="note",
        pattern=r"Failed to open libibverbs\.so",
        cause="libibverbs could not be loaded, so NCCL has no InfiniBand or RoCE there",
        fix="install rdma-core (libibverbs1) in the image, if the nodes have HCAs",
        source="NCCL misc/ibvwrap.cc",
    ),
    Rule(
        name="libibverbs_info",
        kind="note",
        level="INFO",
        pattern=r"Failed to open libibverbs\.so",
        cause="libibverbs could not be loaded, so NCCL has no InfiniBand or RoCE there",
        fix="install rdma-core (libibverbs1) in the image, if the nodes have HCAs",
        source="NCCL misc/ibvsymbols.cc",
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
        name="missing_peermem",
        kind="note",
        level="INFO",
        pattern=r"GPU Direct RDMA Disabled for (?:GPU \S{1,20} / )?HCA \d+ '?\S{0,40}'? ?\(no module",
        cause="GPUDirect RDMA is off: the kernel module is missing (nvidia_peermem, earlier nv_peer_mem)",
        fix="modprobe nvidia_peermem on the nodes",
        source="NCCL transport/net_ib, up to 2.13",
    ),
    Rule(
        name="harmless",
        kind="harmless",
        pattern=r"GID table change|Got non-fatal async event|Got async (?:error )?event ?: (?:port active|client reregister|LID change|SM change|P_Key)|Disabling shared memory failed|Failed to initialize NET plugin|Could not find real path|TUNER/Plugin|PROFILER/Plugin|Configured with|is being ignored|lib wrapper not initialized|Setting .{0,60}not supported|libgdrapi|GDR_COPY|GDRCOPY|unlink shared memory|munmap of shared memory|SHARP",
        source="NCCL and its plugins",
    ),
)
