"""What a step costs with the saved order of DDP's buckets, beside plain DDP.

    python -m benchmarks buckets

Both models live in the same ranks and take steps in turn; a ratio is the median of the pairs'.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from benchmarks.measure import BenchError
from benchmarks.places import REPOSITORY, Places
from benchmarks.rows import Row

AT_MOST = 1.01
RANKS = 3
PAIRS = int(os.environ.get("HPC_TRAIN_BENCH_STEPS", "400"))
WARM_UP = 20
MODELS = ("MLP", "several buckets, another order")


def rows(places: Places) -> Iterator[Row]:
    """One group of ranks for all models."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    world = {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks = [
        subprocess.Popen(
            [places.python, "-W", "ignore", "-m", "benchmarks.buckets"],
            cwd=REPOSITORY,
            env={**os.environ, **world, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    ended = [rank.communicate() for rank in ranks]
    for rank, (_, said) in zip(ranks, ended, strict=True):
        if rank.returncode:
            raise BenchError(said[-2000:])
    for model, pairs in json.loads(ended[0][0].splitlines()[-1]).items():
        ratio = median(ours / plain for ours, plain in pairs)
        yield Row(
            what=f"step, {RANKS} ranks, {model}, resumed : plain DDP",
            ours=f"{1000 * median(ours for ours, _ in pairs):.2f} ms",
            peer=f"{1000 * median(plain for _, plain in pairs):.2f} ms",
            ratio=f"{ratio:.3f}",
            target=f"<= {AT_MOST}",
            ok=ratio <= AT_MOST,
        )


def _net(name: str) -> Any:
    import torch

    class Turned(torch.nn.Sequential):
        def forward(self, x: Any) -> Any:
            for layer in reversed(self):
                x = torch.tanh(layer(x))
            return x

    kind = torch.nn.Sequential if name == MODELS[0] else Turned
    return kind(*[torch.nn.Linear(512, 512) for _ in range(4)])


def _pairs(name: str) -> list[tuple[float, float]]:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    from hpc_train.training.resume.buckets import GradientBuckets

    options = {} if name == MODELS[0] else {"bucket_cap_mb": 1}

    def started(saved: Any) -> tuple[Any, Any, GradientBuckets]:
        net = DistributedDataParallel(_net(name), **options)
        buckets = GradientBuckets(saved)
        if saved is not None:
            buckets.begin(model=net)
        return net, torch.optim.SGD(net.parameters(), lr=1e-3), buckets

    def step(net: Any, optimizer: Any, _: Any) -> float:
        torch.distributed.barrier()
        began = time.perf_counter()
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        return time.perf_counter() - began

    x = torch.randn(32, 512)
    plain = started(None)
    first = started({})
    step(*first)
    ours = started(first[2].capture())
    pairs = []
    for number in range(PAIRS + WARM_UP):  # each of both begins every other pair
        both = [ours, plain] if number % 2 else [plain, ours]
        taken = [step(*one) for one in both]
        pairs.append((taken[0], taken[1]) if number % 2 else (taken[1], taken[0]))
    return pairs[WARM_UP:]


def main() -> None:
    """One rank."""
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    found = {name: _pairs(name) for name in MODELS}
    print(json.dumps(found), flush=True)
    torch.distributed.barrier()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
