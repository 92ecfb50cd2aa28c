"""What a collective of the real ranks tells: filled in where torch is, judged here without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpc_train.codec import Document
from hpc_train.preflight.checks.findings import ALL_NODES, Finding
from hpc_train.preflight.checks.middle import median_high

_GEMM_WARN = 0.8  # of the median rate: a GPU below it is a straggler
_EXPLAIN = "hpc-train preflight --explain NCCL_LOG"


@dataclass(frozen=True, kw_only=True)
class GpuRate:
    """A GEMM on one GPU."""

    gpu: int  # index on the node
    tflops: float  # measured


@dataclass(frozen=True, kw_only=True)
class PairTransport:
    """What two nodes really used, by NCCL's own log."""

    a: str  # node of the sending rank
    b: str  # node of the receiving rank
    transport: str  # `NET/IB`, `NET/Socket`, ...
    gdr: bool = False  # whether GPUDirect was used


@dataclass(frozen=True, kw_only=True)
class CollectiveResult(Document):
    """One node's part of the all-reduce under a deadline."""

    node: str
    backend: str  # `nccl` or `gloo`
    ok: bool  # whether it finished with the right sum
    error: str = ""  # what it said; empty where ok
    small_us: float | None = None  # time of a small all-reduce
    # Bus bandwidth of a large one in Gbit/s, as nccl-tests defines it
    busbw_gbps: float | None = None
    gemm: tuple[GpuRate, ...] = ()  # one rate a GPU
    transports: tuple[PairTransport, ...] = ()  # from the log; empty without NCCL
    rings_complete: bool | None = None  # whether every ring of the log is closed; None without NCCL


def check_collectives(results: list[CollectiveResult], transport: str) -> Iterator[Finding]:
    """Yield findings; one that a single node reports names it, one that all report names nobody."""
    failed = [result for result in results if not result.ok]
    fix = f"read the log: {_EXPLAIN}"
    if len(failed) == len(results) > 1:
        text = f"{failed[0].error}; every node failed, so that nothing can be told apart"
        yield Finding(ALL_NODES, failed[0].backend, "collective", "fail", text, fix)
    else:
        for result in failed:
            yield Finding(result.node, result.backend, "collective", "fail", result.error, fix)
    if results and not failed:
        yield Finding(ALL_NODES, results[0].backend, "collective", "ok", f"{len(results)} nodes")
    for result in results:
        yield from _log(result, transport)
    yield from _stragglers(results)


def _log(result: CollectiveResult, transport: str) -> Iterator[Finding]:
    """InfiniBand that was found is not InfiniBand that is used: look at every pair of nodes."""
    if result.rings_complete is False:
        text = "NCCL's log shows a ring that is not closed"
        yield Finding(result.node, "rings", "rings", "fail", text, _EXPLAIN)
    slow = [p for p in result.transports if p.a != p.b and not p.transport.startswith("NET/IB")]
    if slow and transport != "TCP":
        text = f"{len(slow)} pairs use {slow[0].transport}, {transport} was chosen"
        part = f"{slow[0].a} -> {slow[0].b}"
        yield Finding(result.node, part, "transport", "warn", text, _EXPLAIN)


def _stragglers(results: list[CollectiveResult]) -> Iterator[Finding]:
    rates = [rate.tflops for result in results for rate in result.gemm]
    if len(rates) < 2:
        return
    middle = median_high(rates)
    fix = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER: it is throttled"
    for result in results:
        for rate in result.gemm:
            share = rate.tflops / middle
            if share < _GEMM_WARN:
                text = f"{rate.tflops:.0f} TFLOP/s, {share:.0%} of the median {middle:.0f}"
                yield Finding(result.node, f"gpu {rate.gpu}", "gemm", "warn", text, fix)
