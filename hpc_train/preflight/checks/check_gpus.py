"""Checks of the GPUs. NVML that cannot answer is `unknown`; a card without NVLink is healthy."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.preflight.checks.check_context import Context, Skip
from hpc_train.preflight.checks.findings import Finding, Level
from hpc_train.preflight.checks.middle import most_common


def check_gpu_count(context: Context) -> Iterator[Finding]:
    """NVML sees as many GPUs as Slurm gave."""
    if not any(node.gpus or node.gpus_expected for node in context.nodes):
        raise Skip("no GPUs were asked for")
    for node in context.nodes:
        expected, count = node.gpus_expected, len(node.gpus)
        if expected is None:
            continue
        if node.nvml != "ok":
            text = f"Slurm gave {expected} GPUs and NVML cannot be asked ({node.nvml})"
            fix = "nvidia-smi on that node"
            yield Finding(node.node, "gpus", "gpu_count", "unknown", text, fix)
        elif count < expected:
            text = f"{count} GPUs answer, Slurm gave {expected}"
            fix = "nvidia-smi; dmesg | grep -i xid; drain and reboot the node"
            yield Finding(node.node, "gpus", "gpu_count", "fail", text, fix)


def check_gpu_model(context: Context) -> Iterator[Finding]:
    """All GPUs of a job are of one model: the slowest sets the pace."""
    common = most_common(gpu.model for _, gpu in context.gpus() if gpu.model)
    if common is None:
        raise Skip("no driver tells its model")
    fix = "ask for one model (--gres=gpu:MODEL:N, --constraint)"
    for node, gpu in context.gpus():
        if gpu.model not in (None, common):
            text = f"{gpu.model}; the others are {common}"
            yield Finding(node.node, gpu.label, "gpu_model", "warn", text, fix)


def check_gpu_health(context: Context) -> Iterator[Finding]:
    """The driver wants a reset, a row could not be remapped, or memory errors were counted."""
    fix = "nvidia-smi -q; drain the node and reset or replace the GPU"
    for node, gpu in context.gpus():
        said: list[tuple[Level, str]] = []
        if gpu.recovery not in (None, "none"):
            what = "does not answer" if gpu.recovery == "lost" else f"wants: {gpu.recovery}"
            said.append(("fail", f"the GPU {what}"))
        if gpu.remap_failed:
            said.append(("fail", "a memory row could not be remapped"))
        elif gpu.remap_pending:
            said.append(("warn", "a memory row waits for a reset to be remapped"))
        if gpu.ecc_uncorrected:
            said.append(("warn", f"{gpu.ecc_uncorrected} uncorrected ECC errors"))
        for level, text in said:
            yield Finding(node.node, gpu.label, "gpu_health", level, text, fix)


def check_gpu_busy(context: Context) -> Iterator[Finding]:
    """Nobody else is on the GPUs before our ranks start."""
    fix = "a left-over process: kill it, or drain the node"
    for node, gpu in context.gpus():
        if gpu.used_mib is not None and gpu.used_mib > context.thresholds.gpu_used_mib:
            pids = ", ".join(map(str, gpu.processes)) or "none that is visible here"
            text = f"{gpu.used_mib} MiB in use before the training starts (PIDs: {pids})"
            yield Finding(node.node, gpu.label, "gpu_busy", "fail", text, fix)


def check_nvlink(context: Context) -> Iterator[Finding]:
    """A GPU with fewer live NVLinks than the others of its model."""
    links: dict[str | None, list[int]] = {}
    for _, gpu in context.gpus():
        if gpu.nvlinks_up is not None:
            links.setdefault(gpu.model, []).append(gpu.nvlinks_up)
    if not links:
        raise Skip("these GPUs have no NVLink")
    fix = "nvidia-smi nvlink -s; restart the fabric manager; drain the node"
    for node, gpu in context.gpus():
        common = most_common(links.get(gpu.model, ()))
        if gpu.nvlinks_up is not None and common is not None and gpu.nvlinks_up < common:
            text = f"{gpu.nvlinks_up} NVLinks are active, {common} on the others"
            yield Finding(node.node, gpu.label, "nvlink", "fail", text, fix)


def check_gpudirect(context: Context) -> Iterator[Finding]:
    """Without GPUDirect each message takes a detour through the host's memory."""
    context.need_hcas()
    context.need_gpus()
    missing = [n for n in context.nodes if n.gpus and n.hcas and not n.verbs.gpudirect]
    level: Level = "warn" if len(missing) < len(context.nodes) else "note"
    text = "no nvidia_peermem, no memory_peers, no DMA-BUF: InfiniBand without GPUDirect"
    for node in missing:
        yield Finding(node.node, "gpus", "gpudirect", level, text, "modprobe nvidia_peermem")
