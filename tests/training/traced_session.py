"""One rank of a raw loop that writes down each place of it that runs; started by `ranks.Ranks`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def main(spec: dict[str, Any]) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from hpc_train.training.rank_failure import leave
    from hpc_train.training.resume import agreement
    from hpc_train.training.session import Session

    os.environ["HPC_TRAIN_ATTEMPT"] = str(spec["attempt"])
    torch.set_num_threads(1)
    agreement.REACTION_S = spec["reaction_s"]
    run_dir = Path(spec["run_dir"])

    def say(*words: object) -> None:
        with (run_dir / f"trace-{spec['attempt']}.txt").open("a") as trace:
            trace.write(" ".join(map(str, words)) + "\n")

    say("before the session")
    with Session.open(run_dir=run_dir, global_batch_size=2) as session:
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        session.restore(model=model, optimizer=optimizer)
        for epoch in session.epochs(spec["epochs"]):
            say("epoch", epoch, "begins")
            train = DataLoader(TensorDataset(torch.ones(spec["samples"], 1)))
            for (x,) in session.batches(train):
                time.sleep(spec["step_s"])
                if session.step + 1 == spec["nan_at"]:
                    raise ValueError("my own mistake")
                model(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                session.stepped()
                say("step", session.step)
            say("behind the batches of", epoch)
            for _ in session.evaluation(DataLoader(TensorDataset(torch.ones(1, 1)))):
                say("evaluation of", epoch)
            if session.should_stop:
                break
            say("epoch", epoch, "ends")
        say("behind the epochs")
    say("behind the session")
    leave(0)
