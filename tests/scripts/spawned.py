"""A script that starts its own ranks, as PyTorch's examples do: node * ranks a node + local."""

import argparse
import os
import signal
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(local, args):
    rank = int(os.environ["NODE_RANK"]) * args.per_node + local
    size = int(os.environ["NNODES"]) * args.per_node
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    path = f"{args.out}/ckpt.pt"
    if os.path.exists(path):  # noqa: PTH110 - as people write it
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        step = saved["step"]
    print(f"rank {rank} of {size} starts at {step}", flush=True)
    while step < args.steps and not told:
        if rank == args.fail and step == 3 and not os.path.exists(f"{args.out}/failed"):  # noqa: PTH110
            os.mkdir(f"{args.out}/failed")  # noqa: PTH102
            os.kill(os.getpid(), getattr(signal, args.how)) if args.how else 1 / 0
        time.sleep(args.slow)
        optimizer.zero_grad()
        model(torch.full((2, 4), float(rank + step))).mean().backward()
        optimizer.step()
        step += 1
    if rank == 0:
        torch.save({"model": model.state_dict(), "step": step}, path)
    print(f"rank {rank} ends at {step}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--per-node", type=int, default=2)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--slow", type=float, default=0.05)
    parser.add_argument("--fail", type=int, default=-1)
    parser.add_argument("--how", default="")
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)  # noqa: PTH103
    print("the script starts its ranks", flush=True)
    mp.spawn(train, (args,), nprocs=args.per_node)
    print("all ranks have ended", flush=True)
