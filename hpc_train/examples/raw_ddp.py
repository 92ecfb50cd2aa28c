"""A loop of one's own with DistributedDataParallel, and the ten lines that make it exactly-once.

    torchrun --nproc-per-node 2 -m hpc_train.examples.raw_ddp runs/raw

Interrupt it (kill -TERM one of the ranks, or touch runs/raw/stop), type the same line again (after
rm runs/raw/stop), and it goes on behind the last step. The lines that a plain DDP loop would
not have are marked with `# +`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from hpc_train import Session  # +
from hpc_train.examples.digits import DigitsData


def make_model(seed: int, world_size: int) -> nn.Module:
    """The same weights on every rank; wrapped in DDP where there are several."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)
    )
    return DistributedDataParallel(model) if world_size > 1 else model


def train(run_dir: Path, *, epochs: int = 3, batch: int = 48, seed: int = 0) -> float:
    """Train on the digits; returns the share of validation images that rank 0 got right.

    Args:
        batch: Samples an optimizer step, over all ranks.
    """
    data = DigitsData(augment=True)
    data.setup("fit")
    with Session.open(run_dir=run_dir, global_batch_size=batch, seed=seed) as session:  # +
        model = make_model(seed, session.world_size)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        torch.manual_seed(seed + session.rank)
        session.restore(model=model, optimizer=optimizer)  # +
        right = 0.0
        for epoch in session.epochs(epochs):  # +
            loader = DataLoader(data.train, shuffle=True)
            for images, labels in session.batches(loader):  # +
                loss = nn.functional.cross_entropy(model(images), labels)
                torch.autograd.backward(loss / session.accumulate)
                if session.step_is_due:  # +
                    optimizer.step()
                    optimizer.zero_grad()
                    session.stepped()  # +
            if session.should_stop:  # +
                break  # +
            right = evaluate(model, data, session)
            if session.rank == 0:
                print(f"epoch {epoch}: {100 * right:.1f} % right", flush=True)  # noqa: T201
    return right


def evaluate(model: nn.Module, data: DigitsData, session: Session) -> float:
    """Share of this rank's part of the validation images that is named right."""
    model.eval()
    right = count = 0
    with torch.no_grad():
        for images, labels in session.evaluation(DataLoader(data.validation, batch_size=64)):  # +
            right += int((model(images).argmax(1) == labels).sum())
            count += len(labels)
    model.train()
    return right / count


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="digits with a plain DDP loop")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=48, help="samples a step, over all ranks")
    arguments = parser.parse_args()
    train(arguments.run_dir, epochs=arguments.epochs, batch=arguments.batch)


if __name__ == "__main__":
    main()
