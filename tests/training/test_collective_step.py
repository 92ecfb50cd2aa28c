from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpc_train.preflight.collective import CollectiveResult
from hpc_train.runs.layout import RunDir
from hpc_train.training.collective_step import bus_bandwidth_gbps, result_file
from tests.training.launched import free_port, make_plan, rank_environ


def probe(
    tmp_path: Path, *, nodes: int = 2, leave_out: tuple[int, ...] = (), deadline_s: float = 150
) -> list[int]:
    plan = make_plan(tmp_path, nodes=nodes, ranks_per_node=1)
    port = free_port()
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                *(
                    "-m",
                    "hpc_train.training.collective_step",
                    "--out",
                    str(tmp_path),
                    "--large-mib",
                    "1",
                ),
                *("--node", f"node{rank + 1}", "--deadline-s", str(deadline_s)),
            ],
            env=rank_environ(plan, RunDir(tmp_path), rank, port),
            stderr=subprocess.DEVNULL,
        )
        for rank in range(nodes)
        if rank not in leave_out
    ]
    return [process.wait(200) for process in processes]


def read(tmp_path: Path, node: str) -> CollectiveResult:
    return CollectiveResult.from_json(json.loads(result_file(tmp_path, node).read_text()))


def test_every_node_leaves_its_measurements(tmp_path: Path) -> None:
    assert probe(tmp_path) == [0, 0]
    for node in ("node1", "node2"):
        result = read(tmp_path, node)
        assert result.ok, result.error
        assert result.backend == "gloo"
        assert result.small_us is not None
        assert result.busbw_gbps is not None
        assert 0 < result.small_us < 1e6
        assert result.busbw_gbps > 0
        assert result.gemm == ()


def test_a_rank_that_does_not_come_ends_the_probe_at_its_deadline(tmp_path: Path) -> None:
    start = time.monotonic()
    assert probe(tmp_path, leave_out=(1,), deadline_s=25) == [76]
    assert time.monotonic() - start < 25 + 150
    result = read(tmp_path, "node1")
    assert not result.ok
    assert "all-reduce" in result.error or "meeting" in result.error


def test_bus_bandwidth_is_that_of_nccl_tests() -> None:
    # nccl-tests, doc/PERFORMANCE.md: busbw = algbw * 2 (n - 1) / n
    assert bus_bandwidth_gbps(10**9, 1.0, 2) == pytest.approx(8.0)
    assert bus_bandwidth_gbps(10**9, 1.0, 4) == pytest.approx(12.0)
