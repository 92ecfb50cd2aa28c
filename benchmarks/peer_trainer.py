"""The peer: what a user of Lightning writes, started by `srun python`.

Checkpoints and progress bar are off, and the loggers are those that hpc-train has by default, so
that the steps differ in nothing but hpc-train.
"""

from __future__ import annotations

import sys

import pytorch_lightning as pl
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger

from benchmarks.clocked import ClockedDigits
from hpc_train.examples.digits import DigitsData

clock, folder, nodes, epochs, batch_size = sys.argv[1:]
pl.seed_everything(1)
trainer = pl.Trainer(
    accelerator="cpu",
    devices=1,
    num_nodes=int(nodes),
    strategy="ddp",
    max_epochs=int(epochs),
    logger=[CSVLogger(folder), TensorBoardLogger(folder)],
    default_root_dir=folder,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(ClockedDigits(clock), DigitsData(batch_size=int(batch_size)))
