"""Checks of the GPUs. NVML that cannot answer is `unknown`; a card without NVLink is healthy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hpc_train.preflight.checks.check_context import Context, Skip
from hpc_train.preflight.checks.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpc_train.preflight.inventory.inventory import Gpu, NodeInventory

__all__ = [
    "check_gpu_busy",
    "check_gpu_count",
    "check_gpu_health",
    "check_gpu_model",
    "check_gpudirect",
    "check_nvlink",
]


def _say(
    node: NodeInventory, gpu: Gpu | None, check: str, level: Level, evidence: str, fix: str
) -> Finding:
    part = "gpus" if gpu is None else f"gpu {gpu.index}"
    return Finding(node=node.node, part=part, check=check, level=level, evidence=evidence, fix=fix)


def check_gpu_count(context: Context) -> Iterator[Finding]:
    """NVML sees as many GPUs as Slurm gave."""
    if not any(node.gpus or node.gpus_expected for node in context.nodes):
        raise Skip("no GPUs were asked for")
    for node in context.nodes:
        expected = node.gpus_expected
        if expected is None:
            continue
        if node.nvml != "ok":
            yield _say(
                node, None, "gpu_count", "unknown",
                f"Slurm gave {expected} GPUs and NVML cannot be asked ({node.nvml})",
                "nvidia-smi on that node",
            )  # fmt: skip
        elif len(node.gpus) < expected:
            yield _say(
                node, None, "gpu_count", "fail",
                f"{len(node.gpus)} GPUs answer, Slurm gave {expected}",
                "nvidia-smi; dmesg | grep -i xid; drain and reboot the node",
            )  # fmt: skip


def check_gpu_model(context: Context) -> Iterator[Finding]:
    """All GPUs of a job are of one model: the slowest sets the pace."""
    context.need_gpus()
    models = Counter(gpu.model for node in context.nodes for gpu in node.gpus if gpu.model)
    if not models:
        raise Skip("no driver tells its model")
    common = max(models, key=lambda model: (models[model], model))
    for node in context.nodes:
        for gpu in node.gpus:
            if gpu.model not in (None, common):
                yield _say(
                    node, gpu, "gpu_model", "warn", f"{gpu.model}; the others are {common}",
                    "ask for one model (--gres=gpu:MODEL:N, --constraint)",
                )  # fmt: skip


def check_gpu_health(context: Context) -> Iterator[Finding]:
    """The driver wants a reset, a row could not be remapped, or memory errors were counted."""
    context.need_gpus()
    for node in context.nodes:
        for gpu in node.gpus:
            yield from _health(node, gpu)


def _health(node: NodeInventory, gpu: Gpu) -> Iterator[Finding]:
    drain = "nvidia-smi -q; drain the node and reset or replace the GPU"
    if gpu.recovery not in (None, "none"):
        what = "does not answer" if gpu.recovery == "lost" else f"wants: {gpu.recovery}"
        yield _say(node, gpu, "gpu_health", "fail", f"the GPU {what}", drain)
    if gpu.remap_failed:
        yield _say(node, gpu, "gpu_health", "fail", "a memory row could not be remapped", drain)
    elif gpu.remap_pending:
        yield _say(
            node, gpu, "gpu_health", "warn", "a memory row waits for a reset to be remapped", drain
        )
    if gpu.ecc_uncorrected:
        yield _say(
            node, gpu, "gpu_health", "warn", f"{gpu.ecc_uncorrected} uncorrected ECC errors", drain
        )


def check_gpu_busy(context: Context) -> Iterator[Finding]:
    """Nobody else is on the GPUs before our ranks start."""
    context.need_gpus()
    limit = context.thresholds.gpu_used_mib
    for node in context.nodes:
        for gpu in node.gpus:
            if gpu.used_mib is not None and gpu.used_mib > limit:
                pids = ", ".join(str(pid) for pid in gpu.processes) or "none that is visible here"
                yield _say(
                    node, gpu, "gpu_busy", "fail",
                    f"{gpu.used_mib} MiB in use before the training starts (PIDs: {pids})",
                    "a left-over process: kill it, or drain the node",
                )  # fmt: skip


def check_nvlink(context: Context) -> Iterator[Finding]:
    """A GPU with fewer live NVLinks than the others of its model."""
    context.need_gpus()
    links: dict[str | None, Counter[int]] = {}
    for node in context.nodes:
        for gpu in node.gpus:
            if gpu.nvlinks_up is not None:
                links.setdefault(gpu.model, Counter())[gpu.nvlinks_up] += 1
    if not links:
        raise Skip("these GPUs have no NVLink")
    for node in context.nodes:
        for gpu in node.gpus:
            if gpu.nvlinks_up is None:
                continue
            counts = links[gpu.model]
            common = max(counts, key=lambda number: (counts[number], number))
            if gpu.nvlinks_up < common:
                yield _say(
                    node, gpu, "nvlink", "fail",
                    f"{gpu.nvlinks_up} NVLinks are active, {common} on the others",
                    "nvidia-smi nvlink -s; restart the fabric manager; drain the node",
                )  # fmt: skip


def check_gpudirect(context: Context) -> Iterator[Finding]:
    """Without GPUDirect each message takes a detour through the host's memory."""
    context.need_hcas()
    context.need_gpus()
    missing = [n for n in context.nodes if n.gpus and n.hcas and not n.verbs.gpudirect]
    for node in missing:
        is_odd = len(missing) < len(context.nodes)
        yield _say(
            node, None, "gpudirect", "warn" if is_odd else "note",
            "no nvidia_peermem, no memory_peers, no DMA-BUF: InfiniBand without GPUDirect",
            "modprobe nvidia_peermem",
        )  # fmt: skip
