"""A data set without `__len__` that a loader of the training surely takes is refused early."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import write
from tests.config.test_sure_refusals import GIVES, said_of

DATA = """
from torch.utils.data import DataLoader, Dataset, IterableDataset
class Shapes(Dataset):
    def __getitem__(self, i): return self.x[i], self.y[i]
class Data(pl.LightningDataModule):
    def setup(self, stage):
        self.train_set = Shapes(8)
    def train_dataloader(self): return DataLoader(self.train_set, batch_size=4)
"""
ITEM = "def __getitem__(self, i): return self.x[i], self.y[i]"
VALIDATES = "    def validation_step(self, batch, batch_idx): ...\n"


def said(folder: Path, patch: pytest.MonkeyPatch, new: dict[str, str], more: str = "") -> str:
    text = DATA
    for old, wanted in new.items():
        assert old in text
        text = text.replace(old, wanted)
    return said_of(folder, patch, f"{GIVES}{VALIDATES}", f"{text}{more}")


@pytest.mark.parametrize(
    ("new", "fix"),
    [
        ({}, "write in it def __len__(self): return len(self.x)"),
        ({ITEM: "def __getitem__(self, n): return self.df.iloc[n]"}, "len(self.df)"),
        ({ITEM: "def __getitem__(self, i): return load(self.names[self.index[i]])"}, "self.index"),
        (
            {ITEM: "def __getitem__(self, i): return i"},
            "write in it def __len__(self), which returns the number of samples",
        ),
        (
            {ITEM: f"def len(self): return 4\n    {ITEM}"},
            "rename len (line 15) to __len__",
        ),
        ({"Shapes(Dataset)": "Shapes(Dataset[int])"}, "len(self.x)"),
        ({"DataLoader(self.train_set,": "DataLoader(dataset=self.train_set,"}, "len(self.x)"),
        ({"DataLoader(self.train_set,": "DataLoader(Shapes(8),"}, "len(self.x)"),
        (
            {
                "return DataLoader(self.train_set,": (
                    "\n        some = Shapes(8)\n        return DataLoader(some,"
                )
            },
            "len(self.x)",
        ),
    ],
)
def test_the_class_is_named_with_its_line_and_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str], fix: str
) -> None:
    told, _, hint = said(tmp_path, monkeypatch, new).partition(" -> ")
    assert told.startswith("cfg.yaml:4: data.class_path: nets.Shapes (nets.py:14) has no __len__, ")
    assert "which the DataLoader of nets.Data.train_dataloader (nets.py:" in told
    assert fix in hint


def test_the_set_of_a_validation_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = {"train_dataloader(self)": "val_dataloader(self)"}
    more = "    def train_dataloader(self): return [1]\n"
    assert "the DataLoader of nets.Data.val_dataloader" in said(tmp_path, monkeypatch, new, more)


def test_a_set_and_a_module_may_have_their_bases_in_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = "from torch.utils.data import Dataset\nclass Base(Dataset):\n"
    write(tmp_path, f"{sets}    def __getitem__(self, i): return self.rows[i]\n", "sets.py")
    new = {"class Shapes(Dataset)": "import sets\nclass Shapes(sets.Base)"}
    told = said(tmp_path, monkeypatch, new)
    assert "nets.Shapes (nets.py:15) has no __len__" in told
    below = {**new, "class Data(": "class Images("}
    assert said(tmp_path, monkeypatch, below, "class Data(Images): pass\n") == told
    other = "class Data(Images):\n    def setup(self, stage): self.train_set = make()\n"
    assert said(tmp_path, monkeypatch, below, other) == ""
    write(tmp_path, f"{sets}    def __len__(self): return 4\n", "sets.py")
    assert said(tmp_path, monkeypatch, new) == ""


@pytest.mark.parametrize(
    ("new", "more"),
    [
        ({"Shapes(Dataset)": "Shapes(IterableDataset)"}, ""),
        ({"Shapes(Dataset)": "Shapes(Dataset, list)"}, ""),
        ({"Shapes(Dataset)": "Shapes(make)"}, ""),
        ({"class Shapes": "@given\nclass Shapes"}, ""),
        ({ITEM: f"def __len__(self): return 4\n    {ITEM}"}, ""),
        ({ITEM: f"{ITEM}\n    __len__ = make"}, ""),
        ({}, "Shapes.__len__ = make\n"),
        ({"batch_size=4": "batch_sampler=make(4)"}, ""),
        ({"batch_size=4": "sampler=make(4)"}, ""),
        ({"batch_size=4": "**self.given"}, ""),
        ({"batch_size=4": "4, False, make(4)"}, ""),
        ({"return DataLoader(self.train_set,": "return DataLoader(make(self.train_set),"}, ""),
        ({"return DataLoader": "\n        if make: return [1]\n        return DataLoader"}, ""),
        ({}, "    def prepare_data(self): self.train_set = [1]\n"),
        ({}, "    def prepare_data(self): self.train_set, self.other = make()\n"),
        ({"self.train_set = Shapes(8)": "self.train_set = make(Shapes(8))"}, ""),
        ({"train_dataloader(self)": "test_dataloader(self)"}, "    train_dataloader = make\n"),
    ],
)
def test_what_may_have_a_length_or_needs_none_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str], more: str
) -> None:
    assert "__len__" not in said(tmp_path, monkeypatch, new, more)
