"""One rank of a raw loop with a session, started by `ranks.Ranks`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def _models(spec: dict[str, Any], world_size: int) -> tuple[Any, Any]:
    """The model, and what is called in its place."""
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    plain = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 1))
    if spec["ddp"]:
        plain.append(nn.BatchNorm1d(1))
    plain[0].requires_grad_(not spec["thaw"])
    if spec["data"] == "fsdp":
        return plain, fully_shard(plain, mesh=init_device_mesh("cpu", (world_size,)))
    return plain, DistributedDataParallel(plain, **spec["ddp"]) if world_size > 1 else plain


def main(spec: dict[str, Any]) -> None:
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader

    from hpc_train.config.schema import CheckpointConfig
    from hpc_train.training.rank_failure import leave
    from hpc_train.training.resume import agreement
    from hpc_train.training.session import Session
    from tests.ledger import Ledger
    from tests.training.training import Augmented, Stream

    os.environ["HPC_TRAIN_ATTEMPT"] = str(spec["attempt"])
    torch.set_num_threads(1)
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if world_size > 1:
        method = f"file://{os.environ['RENDEZVOUS_FILE']}"
        dist.init_process_group("gloo", method, rank=rank, world_size=world_size)
    agreement.REACTION_S = spec["reaction_s"]
    run_dir = Path(spec["run_dir"])
    with Session.open(
        run_dir=run_dir,
        global_batch_size=spec["global_batch"],
        micro_batch_size=spec["global_batch"]
        // int(os.environ["WORLD_SIZE"])
        // spec["accumulate"],
        seed=7,
        checkpoint=CheckpointConfig(**{"every_n_minutes": None, **spec["checkpoint"]}),
    ) as session:
        ledger = Ledger(run_dir / "ledger", rank=session.rank, attempt=spec["attempt"])
        torch.manual_seed(7)
        plain, model = _models(spec, session.world_size)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
        torch.manual_seed(7 + session.rank)
        session.restore(model=model, optimizer=optimizer, scheduler=scheduler)
        print(f"rank {session.rank}: first {session.step}", flush=True)
        used: list[int] = []
        for epoch in session.epochs(spec["epochs"]):
            plain[0].requires_grad_(plain[0].weight.requires_grad or epoch == 1)
            n, workers = spec["samples"], spec["workers"]
            if spec["data"] == "stream":
                data: Any = Stream(n, session.rank, session.world_size, sized=False)
                loader: Any = DataLoader(data, batch_size=3, num_workers=workers)
            else:
                loader = DataLoader(Augmented(n), shuffle=True, num_workers=workers)
            for x, ids in session.batches(loader):
                time.sleep(spec["step_s"])
                loss = (model(x).squeeze(1) - ids / 10).square().mean()
                (loss / session.accumulate).backward()
                used += ids.tolist()
                if not session.step_is_due:
                    continue
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                ledger.write(
                    epoch=epoch,
                    step=session.step + 1,
                    samples=used,
                    parameters=model.parameters(),
                )
                used = []
                session.stepped()
            model.train(not spec["ddp"])  # BatchNorm does not train on one sample
            for x, _ in session.evaluation(DataLoader(Augmented(20), batch_size=2)):
                time.sleep(spec["val_batch_s"])
                with torch.no_grad():
                    model(x)
            model.train()
        if not session.should_stop:
            final = dict(plain.named_parameters())
            torch.save(dict(plain.named_buffers()), run_dir / f"buffers-{session.rank}.pt")
            if spec["data"] != "fsdp" and session.rank == 0:
                torch.save(final, run_dir / "final.pt")
    leave(0)
