"""Rules whose cause is the program or one node: the network is not to blame.

Sources: see `nccl_causes`.
"""

from __future__ import annotations

from hpc_train.preflight.nccl.nccl_rules import Rule

__all__ = ["CUDA", "IB_CALL", "NODE_RULES"]

IB_CALL = r"(?P<call>ibv_\w{1,40})(?:\(\))? (?:failed|returned)"
# nccl-tests says the file in between.
CUDA = (
    r"C(?:uda|UDA) (?:failure|error):? ?(?:\w{1,40}\.cu:\d+ |\d{1,4} )?"
    r"'?(?P<error>%s[^'\n]{0,80})"
)

NODE_RULES: tuple[Rule, ...] = (
    Rule("ras", "^ras/", kind="harmless"),  # NCCL's own monitor: the job goes on without it
    # The program: the same on a perfect network.
    Rule(
        "duplicate_gpu",
        r"Duplicate GPU detected : (?P<ranks>rank \d+ and rank \d+) both on CUDA device"
        "|Multiple Ranks are using the same GPU",
        "{ranks} use the same GPU",
        "one rank a GPU: torch.cuda.set_device(LOCAL_RANK) before the first collective, and no"
        " more ranks a node than GPUs",
    ),
    Rule(
        "version_mismatch",
        r"Mismatched NCCL version detected : rank (?P<a>\d+) version (?P<va>\d+) rank (?P<b>\d+)"
        r" version (?P<vb>\d+)",
        "the ranks run different versions of NCCL: rank {a} has {va}, rank {b} has {vb}",
        "the same environment or container on all nodes; look for an NCCL in LD_LIBRARY_PATH and"
        " LD_PRELOAD",
    ),
    Rule(
        "collective_mismatch",
        r"[Dd]etected mismatch between collectives(?: on ranks\. (?P<what>Rank \d+ is running"
        r" collective: .{1,900}?but Rank \d+ is running collective: .{1,200}))?"
        "|[Mm]ismatched collective detected|caused by a collective mismatch",
        "the ranks called different collectives: {what}",
        "every rank has to call the same collectives in the same order with the same shapes: look"
        " for a branch that only some ranks take; TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks",
    ),
    Rule(
        "torch_oom",
        r"(?:CUDA out of memory|OutOfMemoryError|" + CUDA % "out of memory" + ")",
        "a GPU ran out of memory; the other ranks then wait for that one or lose it",
        "less memory a rank: a smaller micro batch, activation checkpointing, sharding; and"
        " nothing else on the GPU",
    ),
    Rule(
        "cuda_kernel",
        CUDA % "(?:an illegal|unspecified launch failure|device-side assert|misaligned address)",
        "a CUDA kernel failed, most often the program's own and not NCCL's: {error}",
        "run once with CUDA_LAUNCH_BLOCKING=1 to find the kernel; on one node alone, look for Xid"
        " errors in dmesg",
    ),
    # The node: GPU, limits, shared memory.
    Rule(
        "cuda_init",
        CUDA % "(?:initialization error|CUDA_ERROR_NOT_INITIALIZED)",
        "CUDA could not be initialised in this process: often it was forked after CUDA had started",
        "start workers with spawn instead of fork; otherwise nvidia-smi in the same container, and"
        " its libcuda against the host's driver",
    ),
    Rule(
        "nvls",
        r"^\S*nvls\S* .*(?:Cuda failure|CUDA error)|Failed to bind NVLink SHARP"
        r"|UC alloc size \d+ failed|nvls\w{0,20}.{0,40}failed",
        "NVLink SHARP (NVLS) could not be set up: usually the fabric manager or the NVSwitches of"
        " that node, or a driver that is too old for this NCCL",
        "nvidia-smi -q | grep -A3 Fabric; reset the GPUs after the fabric manager was restarted, or"
        " reboot; NCCL_NVLS_ENABLE=0 goes on without NVLS",
    ),
    Rule(
        "system_not_ready",
        "system not yet initialized",
        "CUDA calls this node not ready: a service that it needs does not run, on machines with"
        " NVSwitch the fabric manager",
        "systemctl status nvidia-fabricmanager, of the driver's version; then nvidia-smi -q | grep"
        " -A3 Fabric",
    ),
    Rule(
        "gpu_lost",
        "(?P<error>GPU is lost|[Uu]ncorrectable (?:NVLink |ECC )?error|fell off the bus"
        r"|unspecified hardware error|no CUDA-capable device[\w ]{0,20})",
        "the GPU or its driver does not work: {error}",
        "nvidia-smi and dmesg | grep -i xid on that node; drain it",
    ),
    Rule(
        "device_ordinal",
        "invalid device ordinal",
        "a process does not see the GPU that it was to use, its own or that of a peer",
        "no more ranks a node than GPUs, and the local rank as the device; all ranks of a node"
        " see all its GPUs: Slurm's --gpus-per-node instead of --gpus-per-task, containers"
        " likewise",
    ),
    Rule(
        "driver",
        r"(?P<what>API call is not supported in the installed CUDA driver|forward compatibility was"
        r" attempted|Driver/library version mismatch|CUDA driver version is insufficient[\w ]{0,40}"
        r"|not supported prior to CUDA [\d.]{1,8}|CUDA [Dd]river (?:is older"
        r"|version found is \d+[\w. ]{0,40})|requires CUDA driver [\d.]{1,8}"
        "|does not support this CUDA version|Failed to find CUDA library"
        "|compiled with too old version of NCCL|Failed to open libnvidia-ml)",
        "driver, CUDA and NCCL do not fit together: {what}",
        "nvidia-smi's driver against the CUDA of the container; one NCCL in LD_LIBRARY_PATH",
    ),
    Rule(
        "shm_size",
        r"failed to extend /dev/shm/\S{1,60} to \d+ bytes(?!, error: (?!No space))"
        "|posix_fallocate failed : No space left on device"
        r"|shared memory segment \S{1,80} \(size \d+\), error: No space left",
        "/dev/shm is too small or full",
        "docker --shm-size=8g or --ipc=host, Kubernetes: an emptyDir of medium Memory at"
        " /dev/shm; df -h /dev/shm, and remove stale /dev/shm/nccl-*",
    ),
    Rule(
        "cuda_shm",
        r"^\S*shm\w*\.\S* .{0,40}" + CUDA % "",
        "CUDA could not use the host memory that the ranks of a node share: {error}",
        "NCCL_CUMEM_HOST_ENABLE=0 (from 2.24 on) or NCCL_SHM_DISABLE=1, which is slower; driver and"
        " CUDA of one version in the container",
    ),
    Rule(
        "shm_attach",
        "Error while attaching to shared memory segment"
        "|shared memory segment .{0,80}No such file or directory",
        "a rank could not open the shared memory that another rank on its host announced",
        "ranks of one host in one container, or with one IPC namespace (--ipc=host); did the"
        " other rank end first? NCCL_CUMEM_HOST_ENABLE=0 (from 2.24 on), where the ranks choose"
        " different kinds of memory; NCCL_SHM_DISABLE=1 is slower",
        unless=("cuda_shm",),
    ),
    Rule(
        "shm",
        "[Ee]rror while creating shared memory segment|failed to create shared memory file"
        "|Could not map /dev/shm|failed to extend /dev/shm",
        "NCCL could not create its shared memory in /dev/shm",
        "df -h /dev/shm and its permissions; --shm-size or --ipc=host; remove stale"
        " /dev/shm/nccl-*",
        unless=("shm_size", "shm_attach", "cuda_shm"),
    ),
    Rule(
        "gid_unreadable",
        r"(?:open|read) failed in ncclIbRoceGetVersionNum: (?P<error>[\w ]{1,60})",
        "NCCL stopped at a GID index of an HCA that it could not read ({error}): in a container"
        " an index that belongs to another one",
        "NCCL_IB_GID_INDEX with an index that show_gids lists there; or NCCL 2.26 and later",
    ),
    Rule(
        "memlock",
        "(?:" + IB_CALL + "|Unable to register memory) ?.{0,60}Cannot allocate memory",
        "{call} could not lock memory: most often the limit of locked memory (memlock) is too low"
        " inside the job",
        "ulimit -l has to say unlimited in the job itself: LimitMEMLOCK=infinity for slurmd,"
        " --ulimit memlock=-1 for a container; where it does, the host's memory and dmesg",
    ),
    Rule(
        "gpu_memory_registration",
        r"Call to (?P<call>ibv_reg_\w{1,30}) failed.{0,30}(?P<error>Bad address|Invalid argument"
        "|Operation not (?:supported|permitted))",
        "the NIC could not register GPU memory ({call}: {error})",
        "load nvidia_peermem (or use the open kernel driver with DMA-BUF) on that node;"
        " NCCL_NET_GDR_LEVEL=LOC goes on without GPUDirect",
    ),
    Rule(
        "ofi_registration",
        "Unable to register memory .{0,60}Invalid argument",
        "libfabric refused to register memory: libfabric, its plugin and the CUDA driver do not fit"
        " together",
        "one CUDA driver library in the process, that of the host (cuda-compat before it in"
        " LD_LIBRARY_PATH?); on EFA an installer of 1.29 or later with NCCL 2.19 or later, or"
        " FI_EFA_SET_CUDA_SYNC_MEMOPS=0 with an older one",
    ),
    Rule(
        "open_files",
        "Too many open files",
        "the process may open no more files or sockets",
        "ulimit -n 1048576 in the job; LimitNOFILE for slurmd or the container",
    ),
    Rule(
        "port_in_use",
        "(?:bind|listen|EADDRINUSE|server socket).{0,80}(?:Address already in use"
        "|address already in use)|Address already in use",
        "a port is in use by another process, perhaps one of an earlier run",
        "another MASTER_PORT; end what is left of the earlier run on that node",
    ),
)
