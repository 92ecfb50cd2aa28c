"""A sampler of a script's train loader that each run would refuse: told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import write
from tests.config.test_script_starts import folder
from tests.config.test_script_trainer_calls import refusals

__all__ = ["folder"]

HEAD = """\
import lightning.pytorch as L
from torch.utils.data import DataLoader, WeightedRandomSampler, SubsetRandomSampler
from nets import Net, Data, Plain, seen
class Own(L.Callback):
    def on_fit_end(self, trainer, loader): print(trainer, loader)
"""
NETS = """\
import lightning.pytorch as L
from torch.utils.data import DataLoader, WeightedRandomSampler
class Net(L.LightningModule):
    def training_step(self, batch, _): ...
class Data(L.LightningDataModule):
    def train_dataloader(self): return DataLoader(seen, sampler=WeightedRandomSampler(w, 9))
class Plain(L.LightningDataModule):
    def train_dataloader(self): return DataLoader(seen, shuffle=True)
seen = [1]
"""
MAIN = """\
def main():
    sampler = WeightedRandomSampler([1], 9)
    loader = DataLoader(seen, 4, sampler=sampler)
    trainer = L.Trainer(max_epochs=1)
    trainer.fit(Net(), loader)
main()
"""
ORDER = "cannot be continued by other ranks or after an interruption"
WEIGHTS = (
    "use shuffle=True and weights in the loss"
    " (CrossEntropyLoss(weight=...) or BCEWithLogitsLoss(pos_weight=...))"
)


def told(text: str) -> list[str]:
    write(Path(), NETS, "nets.py")
    write(Path(), f"{HEAD}{text}\n", "train.py")
    return refusals()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        (MAIN, "train.py:10 fits with the DataLoader of line 8, with the sampler of line 7"),
        (
            MAIN.replace("Net(), loader", "model=Net(), train_dataloaders=loader"),
            "train.py:10 fits with the DataLoader of line 8, with the sampler of line 7",
        ),
        (
            "L.Trainer().fit(Net(), DataLoader(seen, 4, None, WeightedRandomSampler([1], 9)))",
            "train.py:6 fits with the DataLoader of line 6",
        ),
        (
            "L.Trainer().fit(Net(), Data())",
            "train.py:6 fits with Data.train_dataloader (nets.py:6)",
        ),
        (
            "data = Data()\nL.Trainer().fit(Net(), datamodule=data)",
            "train.py:7 fits with Data.train_dataloader (nets.py:6)",
        ),
    ],
)
def test_it_is_refused_with_its_line(text: str, where: str) -> None:
    (said,) = told(text)
    assert said.startswith(f"{where}: the order that WeightedRandomSampler gives {ORDER} -> ")
    assert WEIGHTS in said


@pytest.mark.usefixtures("folder")
def test_a_subset_is_told_with_what_keeps_it() -> None:
    (said,) = told(MAIN.replace("Weighted", "Subset"))
    assert "give the DataLoader torch.utils.data.Subset(DATASET, INDICES) and shuffle=True" in said


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "text",
    [
        MAIN.replace("sampler=sampler", "shuffle=True"),
        MAIN.replace("Net(), loader", "Net(), DataLoader(seen), loader"),
        MAIN.replace("    trainer =", "    if not seen: loader = DataLoader(seen)\n    trainer ="),
        MAIN.replace("(seen, 4, s", "(seen, 4, **{}, s"),
        MAIN.replace("    trainer.fit", "    if seen: trainer.fit"),
        MAIN.replace("def main():", "def main(loader):\n    trainer = None")
        .replace("    loader =", "    other =")
        .replace("main()\n", "main(DataLoader(seen))\n"),
        MAIN.replace("    trainer = L.Trainer(max_epochs=1)", "    trainer = make()"),
        MAIN.replace("    loader =", "    class WeightedRandomSampler: ...\n    loader =").replace(
            "    sampler = W", "    sampler = mine.W"
        ),
        "L.Trainer().fit(Net(), Plain())",
        "L.Trainer().fit(Net(), DataLoader(seen, 2))",
    ],
)
def test_another_loader_is_the_scripts_business(text: str) -> None:
    assert told(text) == []
