"""A loop of Accelerate's, as its manual has it; prints what it takes its place for."""

import sys

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(32, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
print("ranks", accelerator.num_processes, accelerator.distributed_type, flush=True)
steps = 0
for _ in range(2):
    for batch, target in loader:
        accelerator.backward(torch.nn.functional.mse_loss(model(batch), target))
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
print("steps", steps, flush=True)
accelerator.save_state(sys.argv[1])
