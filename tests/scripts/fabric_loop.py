"""A Fabric loop in the manner of Lightning's examples, for one device as its author had it."""

import argparse
import importlib
import os
import time

import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", default="lightning.fabric")
    parser.add_argument("--devices", default="1")
    parser.add_argument("--slow", type=float, default=0.05)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    fabric = importlib.import_module(args.package).Fabric(
        accelerator="cpu", devices=args.devices, strategy="ddp"
    )
    fabric.launch()
    fabric.seed_everything(1)
    model, optimizer = torch.nn.Linear(4, 1), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = fabric.setup(model, optimizer)
    data = TensorDataset(torch.randn(96, 4), torch.randn(96, 1))
    loader = fabric.setup_dataloaders(DataLoader(data, batch_size=4))
    state = {"model": model, "optimizer": optimizer, "step": 0}
    path = f"{args.out}/ckpt.pt"
    if os.path.exists(path):  # noqa: PTH110 - as people write it
        fabric.load(path, state)
    print(f"{fabric.world_size} ranks, {len(loader)} batches, from {state['step']}", flush=True)
    for step, (x, y) in enumerate(loader):
        if step < state["step"]:
            continue
        time.sleep(args.slow)
        optimizer.zero_grad()
        fabric.backward((model(x) - y).square().mean())
        optimizer.step()
        state["step"] = step + 1
        fabric.save(path, state)


if __name__ == "__main__":
    main()
