"""A raw loop of several groups, each with a DDP that a function leaves behind after their end."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# gloo's threads ask for the GIL and do not get it while Python goes on: as on a busy machine.
sys.setswitchinterval(60)


def train() -> None:
    group = dist.new_group()
    model = DistributedDataParallel(nn.Linear(8, 1), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(20):
        x = torch.randn(16, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group(group)


dist.init_process_group("gloo")
for _ in range(int(sys.argv[1])):
    train()
dist.destroy_process_group()
print("left")
