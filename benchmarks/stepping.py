"""A script that steps in turn with another one: `python stepping.py KIND FOLDER BLOCKS SIDE`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

SIDES = ("ours", "bare")
STEPS = 50  # of a block
BATCH = 32  # of a rank
WIDTH = 1024


def times_file(folder: Path, side: str) -> Path:
    """Seconds of each block."""
    return folder / f"{side}.json"


class Turns:
    """The clock of one rank: runs while it is this side's turn. A pipe a side passes it on."""

    def __init__(self, folder: Path, side: str) -> None:
        self.folder, self.side = folder, side
        self.times_s: list[float] = []
        self.pipes: list[Any] = []
        self.began: float | None = None

    def switch(self, *, last: bool = False) -> None:
        """Between two blocks, on all ranks: end one, let the other side have its own, begin."""
        import torch.distributed as dist

        is_first = dist.get_rank() == 0
        dist.barrier()
        if self.began is not None:
            self.times_s.append(time.perf_counter() - self.began)
        if is_first:
            if not self.pipes:  # opened for both directions, so that nobody waits for a reader
                self.pipes = [(self.folder / side).open("r+b", buffering=0) for side in SIDES]
            mine = SIDES.index(self.side)
            if self.began is not None:
                self.pipes[1 - mine].write(b".")
            if not last and (self.began is not None or mine == 1):
                self.pipes[mine].read(1)
            if last:
                times_file(self.folder, self.side).write_text(json.dumps(self.times_s))
        dist.barrier()
        self.began = time.perf_counter()


def net() -> Any:
    """What all kinds train."""
    import torch

    layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()] * 3
    return torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1))


def data(blocks: int) -> Any:
    """As many samples as the two ranks take in all blocks."""
    import torch

    x = torch.randn(1024, WIDTH)

    class Samples(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 2 * BATCH * STEPS * blocks

        def __getitem__(self, index: int) -> Any:
            return {"x": x[index % 1024], "labels": x[index % 1024, 0]}

    return Samples()


def ddp(turns: Turns, blocks: int) -> None:
    """A loop by hand."""
    import torch
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler

    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(net())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    samples = data(blocks)
    loader = DataLoader(samples, BATCH, sampler=DistributedSampler(samples))
    for number, batch in enumerate(loader):
        if number % STEPS == 0:
            turns.switch()
        optimizer.zero_grad()
        (model(batch["x"]).squeeze(1) - batch["labels"]).square().mean().backward()
        optimizer.step()
    turns.switch(last=True)
    torch.distributed.destroy_process_group()


def lightning(turns: Turns, blocks: int) -> None:
    """A Trainer of Lightning's."""
    import pytorch_lightning as pl
    import torch
    from torch.utils.data import DataLoader

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def training_step(self, batch: Any, _: int) -> Any:
            return (self.net(batch["x"]).squeeze(1) - batch["labels"]).square().mean()

        def on_train_batch_start(self, _: Any, batch_idx: int) -> None:
            if batch_idx % STEPS == 0:
                turns.switch()

        def on_train_end(self) -> None:
            turns.switch(last=True)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), DataLoader(data(blocks), batch_size=BATCH))


def hugging_face(turns: Turns, blocks: int) -> None:
    """A Trainer of transformers'."""
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: Any, labels: Any) -> Any:
            return {"loss": (self.net(x).squeeze(1) - labels).square().mean()}

    class Switch(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            if state.global_step % STEPS == 0:
                turns.switch()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            turns.switch(last=True)

    arguments = TrainingArguments(
        output_dir=str(turns.folder / turns.side[:1]),
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        save_strategy="no",
        logging_strategy="no",
        use_cpu=True,
        ddp_backend="gloo",
        report_to=[],
        disable_tqdm=True,
    )
    Trainer(Model(), arguments, train_dataset=data(blocks), callbacks=[Switch()]).train()


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    kind, folder, blocks, side = sys.argv[1:]
    globals()[kind](Turns(Path(folder), side), int(blocks))
