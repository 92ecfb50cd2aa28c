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
    Rule(
        name="ras",
        kind="harmless",
        pattern=r"",
        place=r"^ras/",
        source="NCCL ras/: its own monitor, without which the job goes on",
    ),
    # The program: the same on a perfect network.
    Rule(
        name="duplicate_gpu",
        pattern=r"Duplicate GPU detected : rank (?P<a>\d+) and rank (?P<b>\d+) both on CUDA device",
        cause="ranks {a} and {b} use the same GPU",
        fix=(
            "one rank a GPU: torch.cuda.set_device(LOCAL_RANK) before the first collective, and"
            " no more ranks a node than GPUs"
        ),
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
        pattern=(
            r"Mismatched NCCL version detected : rank (?P<a>\d+) version (?P<va>\d+) rank"
            r" (?P<b>\d+) version (?P<vb>\d+)"
        ),
        cause="the ranks run different versions of NCCL: rank {a} has {va}, rank {b} has {vb}",
        fix=(
            "the same environment or container on all nodes; look for an NCCL in LD_LIBRARY_PATH"
            " and LD_PRELOAD"
        ),
        source="NCCL init.cc",
    ),
    Rule(
        name="collective_mismatch",
        pattern=(
            r"Detected mismatch between collectives on ranks\. Rank (?P<a>\d+) is running"
            r" collective: (?P<ca>.{1,80}?)(?:, Tensor"
            r"|\)).{0,900}?but Rank (?P<b>\d+) is running collective: (?P<cb>.{1,80}?)(?:, Tensor"
            r"|\)|$)"
        ),
        cause="the ranks called different collectives: rank {a} {ca}), rank {b} {cb})",
        fix=(
            "every rank has to call the same collectives in the same order with the same shapes:"
            " look for a branch that only some ranks take"
        ),
        source="torch ProcessGroupWrapper.cpp",
    ),
    Rule(
        name="collective_mismatch_nccl",
        pattern=(
            r"[Mm]ismatched collective detected|[Dd]etected mismatch between collectives"
            r"|caused by a collective mismatch"
        ),
        cause="the ranks called different collectives",
        fix=(
            "every rank has to call the same collectives in the same order with the same shapes;"
            " TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks"
        ),
        source="NCCL init.cc, torch",
        unless=("collective_mismatch",),
    ),
    Rule(
        name="torch_oom",
        pattern=r"(?:CUDA out of memory|OutOfMemoryError|" + CUDA % "out of memory" + ")",
        cause="a GPU ran out of memory; the other ranks then wait for that one or lose it",
        fix=(
            "less memory a rank: a smaller micro batch, activation checkpointing, sharding; and"
            " nothing else on the GPU"
        ),
        source="CUDA, by torch or NCCL",
    ),
    Rule(
        name="cuda_kernel",
        pattern=CUDA
        % (
            "(?:an illegal memory access|unspecified launch failure|device-side assert|misaligned"
            " address|an illegal instruction)"
        ),
        cause="a CUDA kernel failed, most often the program's own and not NCCL's: {error}",
        fix=(
            "run once with CUDA_LAUNCH_BLOCKING=1 to find the kernel; on one node alone, look for"
            " Xid errors in dmesg"
        ),
        source="CUDA, by torch or NCCL",
    ),
    # The node: GPU, limits, shared memory.
    Rule(
        name="gpu_lost",
        pattern=(
            r"(?P<error>GPU is lost|[Uu]ncorrectable (?:NVLink |ECC )?error|fell off the bus"
            r"|unspecified hardware error|Driver/library version mismatch"
            r"|CUDA driver version is insufficient[\w ]{0,40}|no CUDA-capable device[\w ]{0,20}"
            r"|system not yet initialized)"
        ),
        cause="the GPU or its driver does not work: {error}",
        fix=(
            "nvidia-smi and dmesg | grep -i xid on that node; drain it ('system not yet"
            " initialized': start nvidia-fabricmanager)"
        ),
        source="CUDA and NVML, by NCCL",
    ),
    Rule(
        name="device_ordinal",
        pattern=r"invalid device ordinal",
        cause="a process does not see the GPU that it was to use, its own or that of a peer",
        fix=(
            "no more ranks a node than GPUs, and the local rank as the device; all ranks of a node"
            " see all its GPUs: Slurm's --gpus-per-node instead of --gpus-per-task, containers"
            " likewise"
        ),
        source="CUDA, by NCCL",
    ),
    Rule(
        name="driver",
        pattern=(
            r"(?P<what>not supported prior to CUDA [\d.]{1,8}|CUDA [Dd]river (?:is older"
            r"|version found is \d+[\w. ]{0,40})|requires CUDA driver [\d.]{1,8}"
            r"|does not support this CUDA version|Failed to find CUDA library|compiled with too old"
            r" version of NCCL|Failed to open libnvidia-ml)"
        ),
        cause="driver, CUDA and NCCL do not fit together: {what}",
        fix="nvidia-smi's driver against the CUDA of the container; one NCCL in LD_LIBRARY_PATH",
        source="NCCL misc/cudawrap.cc, include/alloc.h",
    ),
    Rule(
        name="nvml",
        pattern=r"(?P<call>nvml\w{1,40})\(.{0,40}?\) failed: (?P<error>[^\n]{1,60})",
        cause="the GPU's management library failed ({call}: {error})",
        fix="nvidia-smi on that node; the driver inside the container is that of the host",
        source="NCCL misc/nvmlwrap.cc",
    ),
    Rule(
        name="host_memory",
        pattern=r"Failed to malloc|Allocation failed|malloc\(size=\d+\) returned null",
        cause="the host had no memory for NCCL",
        fix="memory of the node and of the job's cgroup (sacct's MaxRSS, dmesg | grep -i oom)",
        source="NCCL include/alloc.h",
    ),
    Rule(
        name="cuda_init",
        pattern=CUDA % "(?:initialization error|CUDA_ERROR_NOT_INITIALIZED)",
        cause=(
            "CUDA could not be initialised in this process: often it was forked after CUDA had"
            " started"
        ),
        fix=(
            "start workers with spawn instead of fork; otherwise nvidia-smi in the same container,"
            " and its libcuda against the host's driver"
        ),
        source="CUDA, by NCCL",
    ),
    Rule(
        name="nvls",
        pattern=r"Cuda failure|Failed to bind NVLink SHARP|CUDA error",
        place=r"nvls",
        cause=(
            "NVLink SHARP (NVLS) could not be set up: usually the fabric manager or the"
            " NVSwitches of that node"
        ),
        fix=(
            "nvidia-smi -q | grep -A3 Fabric; reset the GPUs after the fabric manager was"
            " restarted, or reboot; NCCL_NVLS_ENABLE=0 goes on without NVLS"
        ),
        source="NCCL transport/nvls.cc",
    ),
    Rule(
        name="nvls_bind",
        pattern=(
            r"Failed to bind NVLink SHARP \(NVLS\)|UC alloc size \d+ failed"
            r"|nvls\w{0,20}.{0,40}failed"
        ),
        cause=(
            "NVLink SHARP (NVLS) could not be set up: usually the fabric manager or the"
            " NVSwitches of that node"
        ),
        fix=(
            "nvidia-smi -q | grep -A3 Fabric; reset the GPUs after the fabric manager was"
            " restarted, or reboot; NCCL_NVLS_ENABLE=0 goes on without NVLS"
        ),
        source="NCCL transport/nvls.cc, 2.27",
        unless=("nvls",),
    ),
    Rule(
        name="shm_size",
        pattern=(
            r"failed to extend /dev/shm/\S{1,60} to \d+ bytes(?!, error: (?!No space))"
            r"|posix_fallocate failed : No space left on device"
            r"|shared memory segment \S{1,80} \(size \d+\), error: No space left"
        ),
        cause="/dev/shm is too small or full",
        fix=(
            "docker --shm-size=8g or --ipc=host, Kubernetes: an emptyDir of medium Memory at"
            " /dev/shm; df -h /dev/shm, and remove stale /dev/shm/nccl-*"
        ),
        source="NCCL misc/shmutils.cc, include/shm.h, os/linux.cc",
    ),
    Rule(
        name="cuda_shm",
        pattern=CUDA % "",
        place=r"shmutils|include/shm|transport/shm",
        cause="CUDA could not use the host memory that the ranks of a node share: {error}",
        fix=(
            "NCCL_CUMEM_HOST_ENABLE=0 (from 2.24 on) or NCCL_SHM_DISABLE=1, which is slower;"
            " driver and CUDA of one version in the container"
        ),
        source="NCCL misc/shmutils.cc, transport/shm.cc",
    ),
    Rule(
        name="shm_attach",
        pattern=(
            r"Error while attaching to shared memory segment"
            r"|shared memory segment .{0,80}No such file or directory"
        ),
        cause="a rank could not open the shared memory that another rank on its host announced",
        fix=(
            "ranks of one host in one container, or with one IPC namespace (--ipc=host); did the"
            " other rank end first? NCCL_CUMEM_HOST_ENABLE=0 (from 2.24 on), where the ranks choose"
            " different kinds of memory; NCCL_SHM_DISABLE=1 is slower"
        ),
        source="NCCL misc/shmutils.cc",
        unless=("cuda_shm",),
    ),
    Rule(
        name="shm",
        pattern=(
            r"[Ee]rror while creating shared memory segment|failed to create shared memory file"
            r"|Could not map /dev/shm|failed to extend /dev/shm"
        ),
        cause="NCCL could not create its shared memory in /dev/shm",
        fix=(
            "df -h /dev/shm and its permissions; --shm-size or --ipc=host; remove stale"
            " /dev/shm/nccl-*"
        ),
        source="NCCL misc/shmutils.cc",
        unless=(
            "shm_size",
            "shm_attach",
            "cuda_shm",
        ),
    ),
    Rule(
        name="gid_unreadable",
        pattern=r"(?:open|read) failed in ncclIbRoceGetVersionNum: (?P<error>[\w ]{1,60})",
        cause=(
            "NCCL stopped at a GID index of an HCA that it could not read ({error}): in a container"
            " an index that belongs to another one"
        ),
        fix="NCCL_IB_GID_INDEX with an index that show_gids lists there; or NCCL 2.26 and later",
        source="NCCL transport/net_ib.cc, 2.21",
    ),
    Rule(
        name="memlock",
        pattern=IB_CALL + r".{0,40}Cannot allocate memory",
        cause=(
            "{call} could not lock memory: the limit of locked memory (memlock) is too low inside"
            " the job"
        ),
        fix=(
            "ulimit -l has to say unlimited in the job itself: LimitMEMLOCK=infinity for slurmd,"
            " --ulimit memlock=-1 for a container"
        ),
        source="NCCL misc/ibvwrap.cc; NCCL's troubleshooting guide",
    ),
    Rule(
        name="memlock_ofi",
        pattern=r"Unable to register memory .{0,60}Cannot allocate memory",
        cause=(
            "libfabric could not lock memory: the limit of locked memory (memlock) is too low, or"
            " the GPU's window is used up"
        ),
        fix="ulimit -l has to say unlimited in the job itself: --ulimit memlock=-1 for a container",
        source="aws-ofi-nccl",
    ),
    Rule(
        name="gpu_memory_registration",
        pattern=(
            r"Call to (?P<call>ibv_reg_\w{1,30}) failed.{0,30}(?P<error>Bad address"
            r"|Invalid argument|Operation not (?:supported|permitted))"
        ),
        cause="the NIC could not register GPU memory ({call}: {error})",
        fix=(
            "load nvidia_peermem (or use the open kernel driver with DMA-BUF) on that node;"
            " NCCL_NET_GDR_LEVEL=LOC goes on without GPUDirect"
        ),
        source="NCCL misc/ibvwrap.cc",
    ),
    Rule(
        name="ofi_registration",
        pattern=r"Unable to register memory .{0,60}Invalid argument",
        cause=(
            "libfabric refused to register memory: libfabric and NCCL or the driver do not fit"
            " together"
        ),
        fix=(
            "a newer EFA installer (1.29 or later with NCCL 2.19 or later);"
            " FI_EFA_SET_CUDA_SYNC_MEMOPS=0 helps with an older one"
        ),
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
        pattern=(
            r"(?:pthread_create|Thread creation).{0,30}(?:failed|Resource temporarily unavailable)"
        ),
        cause="no further thread could be started",
        fix="ulimit -u and the pids limit of the container or cgroup",
        source="NCCL include/checks.h",
    ),
    Rule(
        name="port_in_use",
        pattern=(
            r"(?:bind|listen|EADDRINUSE|server socket).{0,80}(?:Address already in use"
            r"|address already in use)|Address already in use"
        ),
        cause="a port is in use by another process, perhaps one of an earlier run",
        fix="another MASTER_PORT; end what is left of the earlier run on that node",
        source="the kernel, by NCCL or torch",
    ),
)
