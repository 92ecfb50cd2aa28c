"""A raw loop in which rank 1 holds the GIL from its step 5 on: no thread of Python goes on."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
Path(f"pid-{dist.get_rank()}").write_text(str(os.getpid()))
for step in range(20):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 5 and dist.get_rank() == 1:
        libc, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)  # it keeps the GIL
        for _ in range(2):  # the second time it waits for itself, whatever signals come
            libc.pthread_mutex_lock(mutex)
