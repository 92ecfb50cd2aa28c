"""What a check says, and the thresholds by which it says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "unknown", "warn", "fail"]

# From harmless to bad. `unknown` stands above `note`: it is no pass, but it is no fault either.
_LEVELS: tuple[Level, ...] = ("ok", "note", "unknown", "warn", "fail")

# Stands for the node where a finding is about the fabric, the job, or every node alike.
ALL_NODES = "*"


@dataclass(frozen=True)
class Finding:
    """One answer of one check."""

    node: str  # the node it is about, or `*`
    part: str  # the thing on it: `mlx5_0:1`, `eth0`, `gpu 3`, `/dev/shm`, a variable's name
    check: str  # the check's name, as in the table of docs/preflight.md
    # `ok`, `note` (harmless), `unknown` (did not run or could not be read: not a pass), `warn`
    # (works, but slower or riskier) or `fail` (will not work)
    level: Level
    evidence: str  # what was seen, with numbers and units
    fix: str = ""  # what to do about it; empty where there is nothing to do


def severity(level: Level) -> int:
    """Return how bad a level is, 0 for ok."""
    return _LEVELS.index(level)


def worst(levels: Iterable[Level]) -> Level:
    """Return the worst level, `ok` for none."""
    return max(levels, key=severity, default="ok")


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Where a number becomes a finding. Every one can be set in the config."""

    memlock_mib: int = 4096  # below this much lockable memory an HCA cannot register NCCL's buffers
    shm_warn_mib: int = 1024  # below this /dev/shm is tight for NCCL and data workers
    shm_fail_mib: int = 64  # at or below this (Docker's default is 64) NCCL fails to start
    # Spread of the clocks above which logs of two nodes cannot be ordered
    clock_warn_s: float = 1.0
    # Memory in use before our ranks start, above which someone else is on the GPU
    gpu_used_mib: int = 1024
    hca_share: float = 0.5  # a node that offers less than this share of the others' bandwidth fails
    slow_warn: float = 0.4  # a pair (or a node's GEMM) below this share of the median is slow
    slow_fail: float = 0.15  # below this share it is broken
    latency_warn: float = 10.0  # a pair above this many times the median latency is slow ...
    # ... if it is also above this, so that noise on a fast net is no alarm.
    latency_floor_us: float = 2000.0
    # Share of segments sent again, or of datagrams lost, that makes a path lossy
    loss_warn: float = 0.005
    loss_fail: float = 0.02  # the share that makes it unusable
    min_gbps: float = 0.0  # absolute floor of a pair's bandwidth, 0 for none
    # Floor as a share of the interface's advertised speed (of 25 Gbit/s at most, which is about
    # what one TCP stream carries)
    speed_share: float = 0.02
    counter_warn: int = 10  # link errors counted during the test from which a link is suspect
