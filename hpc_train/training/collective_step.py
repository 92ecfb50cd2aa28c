"""A collective of the ranks before the training: `python -m hpc_train.training.collective_step`.

Started as the ranks are, once each; it needs a minute at most and torch only. Every node's first
rank leaves `collective-NODE.json` (a `preflight.collective.CollectiveResult`) in the folder --out.
NCCL's own log goes there too, for what no timing shows: which way the bytes really went.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines
from hpc_train.errors import CheckError, HpcTrainError
from hpc_train.plan.states import RankExit
from hpc_train.plan.world import World
from hpc_train.preflight.choose.choose import NCCL_DEBUG_SUBSYS
from hpc_train.preflight.collective import CollectiveResult, GpuRate, PairTransport
from hpc_train.runs.atomic import write_text
from hpc_train.training.prepare import make_group, own_device
from hpc_train.training.rank_failure import failure_of
from hpc_train.training.world_check import open_store

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from hpc_train.training.private.torch_store import Store

_SMALL_ROUNDS = 20
_LARGE_ROUNDS = 5
_GEMM_SIZE = 8192  # a square of bf16; large enough to keep every tensor core of an H100 busy
_GEMM_ROUNDS = 10
_LARGE_MIB = {"nccl": 256, "gloo": 8}
_FLOAT_BYTES = 4


def result_file(folder: Path, node: str) -> Path:
    """Where the result of `node` is."""
    return folder / f"collective-{node}.json"


def bus_bandwidth_gbps(size_bytes: int, seconds: float, ranks: int) -> float:
    """Bus bandwidth of an all-reduce in Gbit/s.

    As nccl-tests defines it (doc/PERFORMANCE.md): 2 (n - 1) / n times size over time, which
    does not depend on the number of ranks and compares with the link's rate.
    """
    return size_bytes * 8 / seconds / 1e9 * 2 * (ranks - 1) / ranks


@dataclass(kw_only=True)
class CollectiveStep:
    """One rank's part.

    Attributes:
        deadline_s: From the start, torch's import included.
        large_mib: Size of the large all-reduce; None = by the backend.
        doing: What a failure is a failure of.
    """

    world: World
    node: str
    folder: Path
    deadline_s: float
    large_mib: int | None = None
    doing: str = "importing torch"

    def run(self) -> int:
        """Measure, and leave the node's result; returns an exit code, see `RankExit`."""
        timer = threading.Timer(self.deadline_s, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            self._write(self._measure())
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is the finding
            failure = failure_of(error)
            self._fail(f"{self.doing}: {failure.error}")
            return failure.code
        return int(RankExit.FINISHED)

    def _give_up(self) -> None:
        """The deadline: collectives cannot be interrupted, so the process ends here."""
        self._fail(f"{self.doing} was not done after {self.deadline_s:.0f} s")
        os._exit(int(RankExit.NETWORK))

    def _fail(self, error: str) -> None:
        torch = sys.modules.get("torch")
        backend = "nccl" if torch is not None and torch.cuda.is_available() else "gloo"
        self._write(CollectiveResult(node=self.node, backend=backend, ok=False, error=error))
        print(f"error: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def _write(self, result: CollectiveResult) -> None:
        if self.world.local_rank == 0:
            text = json.dumps(result.to_json(), indent=2) + "\n"
            write_text(result_file(self.folder, self.node), text)

    def _measure(self) -> CollectiveResult:
        import torch

        world = self.world
        device = own_device("auto", world)
        place = torch.device("cpu") if device.index is None else torch.device("cuda", device.index)
        self.doing = f"meeting at {world.master_addr}:{world.master_port}"
        store = open_store(world, os.environ, timeout_s=self.deadline_s)
        if device.backend == "nccl":
            _log_nccl_to(self.folder)
        make_group(store, world, device, timeout_s=self.deadline_s, connect=False)
        self.doing = "a small all-reduce"
        small_s = _all_reduce_s(torch.ones(1, device=place), _SMALL_ROUNDS, world)
        self.doing = "a large all-reduce"
        size_bytes = (self.large_mib or _LARGE_MIB[device.backend]) * 2**20
        large = torch.ones(size_bytes // _FLOAT_BYTES, device=place)
        large_s = _all_reduce_s(large, _LARGE_ROUNDS, world)
        self.doing = "a GEMM on each GPU"
        if device.kind == "cuda":
            store.set(f"gemm/{world.rank}", str(_gemm_tflops(place)))
        self.doing = "the last barrier"
        torch.distributed.barrier()
        result = CollectiveResult(
            node=self.node,
            backend=device.backend,
            ok=True,
            small_us=small_s * 1e6,
            busbw_gbps=bus_bandwidth_gbps(size_bytes, large_s, world.world_size),
            gemm=_rates_of_node(store, world) if device.kind == "cuda" else (),
        )
        torch.distributed.destroy_process_group()
        if device.backend != "nccl" or world.rank != 0:
            return result
        return _with_log(result, self.folder)


def _with_log(result: CollectiveResult, folder: Path) -> CollectiveResult:
    """Add what NCCL's logs tell; rank 0 alone can read those of all nodes."""
    logs = sorted(folder.glob("nccl-*.log"))
    if not logs:
        return result
    texts = (path.read_text(errors="replace").splitlines() for path in logs)
    report = read_nccl_lines(chain.from_iterable(texts), str(folder))
    transports = {
        (pair.host_a, pair.host_b, pair.transport): PairTransport(
            a=pair.host_a or "?",
            b=pair.host_b or "?",
            transport=pair.transport,
            gdr=pair.gdr_channels > 0,
        )
        for pair in report.pairs
    }
    return replace(
        result, transports=tuple(transports.values()), rings_complete=report.rings_complete
    )


def _log_nccl_to(folder: Path) -> None:
    """Before the first communicator: NCCL reads these once (NCCL's env.html)."""
    os.environ["NCCL_DEBUG"] = "INFO"
    os.environ["NCCL_DEBUG_SUBSYS"] = NCCL_DEBUG_SUBSYS
    os.environ["NCCL_DEBUG_FILE"] = str(folder / "nccl-%h-%p.log")


def _all_reduce_s(values: Tensor, rounds: int, world: World) -> float:
    """Median seconds of an all-reduce of ones, whose sum is checked.

    Raises:
        CheckError: the sum is wrong: bytes were lost or changed on the way.
    """
    import torch

    times = []
    for _ in range(rounds + 1):  # the first one connects
        values.fill_(1)
        _wait(values)
        start = time.perf_counter()
        torch.distributed.all_reduce(values)
        _wait(values)
        times.append(time.perf_counter() - start)
        if not bool((values == world.world_size).all()):
            raise CheckError(
                f"an all-reduce over {world.world_size} ranks gave {values.max().item()}",
                "the network or a GPU changes data: take the node out",
            )
    return statistics.median(times[1:])


def _wait(values: Tensor) -> None:
    import torch

    if values.is_cuda:
        torch.cuda.synchronize()


def _gemm_tflops(gpu: torch.device) -> float:
    """Rate of a bf16 matrix product on one GPU, the best of a few."""
    import torch

    left = torch.randn((_GEMM_SIZE, _GEMM_SIZE), device=gpu, dtype=torch.bfloat16)
    best_s = float("inf")
    for _ in range(_GEMM_ROUNDS):
        _wait(left)
        start = time.perf_counter()
        left @ left
        _wait(left)
        best_s = min(best_s, time.perf_counter() - start)
    return 2 * _GEMM_SIZE**3 / best_s / 1e12


def _rates_of_node(store: Store, world: World) -> tuple[GpuRate, ...]:
    first = world.node_rank * world.ranks_per_node
    return tuple(
        GpuRate(gpu=local, tflops=float(store.get(f"gemm/{first + local}")))
        for local in range(world.ranks_per_node)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Read the arguments and the environment; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m hpc_train.training.collective_step")
    parser.add_argument("--out", type=Path, required=True, help="folder for results and logs")
    parser.add_argument("--deadline-s", type=float, default=30.0)
    parser.add_argument("--large-mib", type=int, default=None)
    parser.add_argument("--node", default=os.environ.get("SLURMD_NODENAME", socket.gethostname()))
    given = parser.parse_args(argv)
    try:
        world = World.from_env(os.environ)
    except HpcTrainError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    given.out.mkdir(parents=True, exist_ok=True)
    settings = {"deadline_s": given.deadline_s, "large_mib": given.large_mib}
    code = CollectiveStep(world=world, node=given.node, folder=given.out, **settings).run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a backend that lost a peer may wait for it in its destructors


if __name__ == "__main__":
    sys.exit(main())
