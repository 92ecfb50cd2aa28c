"""A loop in the manner of many a train.py: DDP by hand, a checkpoint now and then, on SIGTERM."""

# ruff: noqa: C901, N817, PTH103, PTH105 - as people write it

import argparse
import os
import signal
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--slow", type=float, default=0.02)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--out", default="out")
    parser.add_argument("--resume", default="")
    parser.add_argument("--leave", type=int, default=-1, help="rank 1 leaves before this step")
    parser.add_argument("--alone", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    os.makedirs(args.out, exist_ok=True)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    rank = 0
    if not args.alone:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        model = DDP(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(256, 4), torch.randn(256, 1))
    sampler = None if args.alone else DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=0)
    step, told = 0, []
    if args.resume:
        saved = torch.load(args.resume)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]

    def save(name):
        if rank == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            torch.save(state, f"{args.out}/{name}.tmp")
            os.replace(f"{args.out}/{name}.tmp", f"{args.out}/{name}.pt")

    signal.signal(signal.SIGTERM, lambda *_: told.append(step))
    print(f"starts at {step}", flush=True)
    while step < args.steps and not told:
        for number, (x, y) in enumerate(loader):
            if number < step % len(loader):
                continue
            if step >= args.steps or told:
                break
            if rank == 1 and step == args.leave:
                raise SystemExit(0)
            time.sleep(args.slow)
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
            step += 1
            if step % args.every == 0:
                save("ckpt")
    save("ckpt" if told else "final")
    print(f"ends at {step}, told at {told}", flush=True)


if __name__ == "__main__":
    main()
