"""What a collective of the real ranks tells: filled in where torch is, judged here without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpc_train.codec import decode, encode
from hpc_train.preflight.checks.findings import ALL_NODES, Finding
from hpc_train.preflight.checks.medians import median_high

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CollectiveResult", "GpuRate", "PairTransport", "check_collectives"]


@dataclass(frozen=True, kw_only=True)
class GpuRate:
    """A GEMM on one GPU.

    Attributes:
        gpu: Index on the node.
        tflops: Measured.
    """

    gpu: int
    tflops: float


@dataclass(frozen=True, kw_only=True)
class PairTransport:
    """What two nodes really used, by NCCL's own log.

    Attributes:
        a: Node of the sending rank.
        b: Node of the receiving rank.
        transport: `NET/IB`, `NET/Socket`, ...
        gdr: Whether GPUDirect was used.
    """

    a: str
    b: str
    transport: str
    gdr: bool = False


@dataclass(frozen=True, kw_only=True)
class CollectiveResult:
    """One node's part of the all-reduce under a deadline.

    Attributes:
        node: The node.
        backend: `nccl` or `gloo`.
        ok: Whether it finished with the right sum.
        error: What it said; empty where ok.
        small_us: Time of a small all-reduce.
        busbw_gbps: Bus bandwidth of a large one in Gbit/s, as nccl-tests defines it.
        gemm: One rate a GPU.
        transports: From the log; empty without NCCL.
        rings_complete: Whether every ring of the log is closed; None without NCCL.
    """

    node: str
    backend: str
    ok: bool
    error: str = ""
    small_us: float | None = None
    busbw_gbps: float | None = None
    gemm: tuple[GpuRate, ...] = ()
    transports: tuple[PairTransport, ...] = ()
    rings_complete: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON's own types."""
        document: dict[str, Any] = encode(self)
        return document

    @classmethod
    def from_json(cls, data: Any) -> CollectiveResult:
        """Return the result written by `to_json`; raises ValueError for anything else."""
        return decode(cls, data)


def check_collectives(
    results: list[CollectiveResult], transport: str, gemm_warn: float
) -> Iterator[Finding]:
    """Yield findings; one that a single node reports names it, one that all report names nobody."""
    failed = [result for result in results if not result.ok]
    is_alike = len(failed) == len(results) and len(results) > 1
    for result in failed[: 1 if is_alike else None]:
        yield Finding(
            node=ALL_NODES if is_alike else result.node,
            part=result.backend,
            check="collective",
            level="fail",
            evidence=result.error
            + ("; every node failed, so that nothing can be told apart" if is_alike else ""),
            fix="read the log: hpc-train preflight --explain NCCL_LOG",
        )
    if results and not failed:
        yield Finding(
            node=ALL_NODES, part=results[0].backend, check="collective", level="ok",
            evidence=f"{len(results)} nodes",
        )  # fmt: skip
    yield from _transports(results, transport)
    yield from _stragglers(results, gemm_warn)


def _transports(results: list[CollectiveResult], transport: str) -> Iterator[Finding]:
    """InfiniBand that was found is not InfiniBand that is used: look at every pair of nodes."""
    for result in results:
        if result.rings_complete is False:
            yield Finding(
                node=result.node, part="rings", check="rings", level="fail",
                evidence="NCCL's log shows a ring that is not closed",
                fix="hpc-train preflight --explain NCCL_LOG",
            )  # fmt: skip
        if transport == "TCP":
            continue
        slow = [p for p in result.transports if p.a != p.b and not p.transport.startswith("NET/IB")]
        if slow:
            yield Finding(
                node=result.node, part=f"{slow[0].a} -> {slow[0].b}", check="transport",
                level="warn",
                evidence=f"{len(slow)} pairs use {slow[0].transport}, {transport} was chosen",
                fix="hpc-train preflight --explain NCCL_LOG",
            )  # fmt: skip


def _stragglers(results: list[CollectiveResult], gemm_warn: float) -> Iterator[Finding]:
    rates = [rate.tflops for result in results for rate in result.gemm]
    if len(rates) < 2:
        return
    middle = median_high(rates)
    for result in results:
        for rate in result.gemm:
            if rate.tflops < middle * gemm_warn:
                yield Finding(
                    node=result.node, part=f"gpu {rate.gpu}", check="gemm", level="warn",
                    evidence=f"{rate.tflops:.0f} TFLOP/s, {rate.tflops / middle:.0%} of the"
                    f" median {middle:.0f}",
                    fix="nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER: it is throttled",
                )  # fmt: skip
