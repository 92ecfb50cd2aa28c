"""A collate_fn, or a `__len__`, that gives a loader nothing is refused before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import write
from tests.config.test_sure_refusals import GIVES, said_of

DATA = """
from torch.utils.data import DataLoader, Dataset
class Shapes(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return i
def collate(batch):
    x = make()
    y = make()
    return x, y
class Data(pl.LightningDataModule):
    def collate(self, batch): return batch
    def train_dataloader(self): return DataLoader(Shapes(), collate_fn=collate)
"""
DEF, END = "def collate(batch):", "    return x, y\n"
OWN = "def collate(self, batch): return batch"


def said(folder: Path, patch: pytest.MonkeyPatch, new: dict[str, str]) -> str:
    text = DATA
    for old, wanted in new.items():
        assert old in text
        text = text.replace(old, wanted)
    return said_of(folder, patch, GIVES, text)


LOADER = "the DataLoader of nets.Data.train_dataloader (nets.py:"


@pytest.mark.parametrize(
    ("new", "wrong", "hint"),
    [
        (
            {DEF: "def collate(xs, ys):"},
            "nets.collate (nets.py:16) takes more than one argument, and the DataLoader",
            "write def collate(batch), and begin it with xs, ys = zip(*batch)",
        ),
        ({DEF: "def collate(a, b, c):"}, "(nets.py:16) takes more", "a, b, c = zip(*batch)"),
        (
            {DEF: "def collate(batch, pad):"},
            "takes more than one",
            "give it the others: collate_fn=functools.partial(collate, pad=...)",
        ),
        (
            {OWN: "def collate(self, xs, ys): return xs", "=collate)": "=self.collate)"},
            "nets.Data.collate (nets.py:21) takes more",
            "write def collate(self, batch), and begin it with xs, ys = zip(*batch)",
        ),
        ({END: ""}, "nets.collate (nets.py:16) returns nothing, so", "end it with return x, y"),
        ({END: "    print(x)\n"}, "returns nothing", "end it with return BATCH, of what it makes"),
        (
            {OWN: "def collate(self, batch): make(batch)", "=collate)": "=self.collate)"},
            "nets.Data.collate (nets.py:21) returns nothing",
            "end it with return BATCH",
        ),
    ],
)
def test_the_function_is_named_with_its_line_and_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str], wrong: str, hint: str
) -> None:
    told, _, fix = said(tmp_path, monkeypatch, new).partition(" -> ")
    assert told.startswith("cfg.yaml:4: data.class_path: ")
    assert wrong in told
    assert LOADER in told
    assert fix.startswith(hint) or hint in fix


def test_a_function_of_another_file_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "\ndef joined(xs, ys): return xs\n", "own.py")
    new = {
        "class Data(": "from own import joined as collate2\nclass Data(",
        "=collate)": "=collate2)",
    }
    assert "own.joined (own.py:2) takes more than one" in said(tmp_path, monkeypatch, new)


@pytest.mark.parametrize(
    "new",
    [
        {},
        {DEF: "def collate(batch, pad=0):"},
        {DEF: "def collate(*batch):"},
        {DEF: "def collate(batch, *rest):"},
        {DEF: "@given\ndef collate(xs, ys):"},
        {END: "    yield x\n"},
        {END: "    raise make(x)\n"},
        {"=collate)": "=self.collate)"},
        {"=collate)": "=make(collate))"},
        {"=collate)": "=lambda xs: xs)"},
        {DEF: "def collate(xs, ys):", "=collate)": "=None)"},
        {
            DEF: "def collate(xs, ys):",
            "return DataLoader": "\n        collate = make\n        return DataLoader",
        },
        {DEF: "def collate(xs, ys):", "return DataLoader": "return make if make else DataLoader"},
        {OWN: "@staticmethod\n    def collate(batch): return batch", "=collate)": "=self.collate)"},
    ],
)
def test_what_may_make_a_batch_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str]
) -> None:
    assert said(tmp_path, monkeypatch, new) == ""


@pytest.mark.parametrize(
    ("length", "hint"),
    [
        ("def __len__(self): len(self.y)", "write return len(self.y)"),
        ("def __len__(self): n = make(self)", "end it with return NUMBER, the number of samples"),
        ("def __len__(self): return make(self)", ""),
        ("def __len__(self): raise NotImplementedError", ""),
        ("def __len__(self): ...", ""),
    ],
)
def test_a_length_that_returns_nothing_is_told_with_what_to_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: str, hint: str
) -> None:
    told = said(tmp_path, monkeypatch, {"def __len__(self): return 4": length})
    if not hint:
        assert told == ""
        return
    assert "nets.Shapes.__len__ (nets.py:14) returns nothing, and the DataLoader of" in told
    assert told.endswith(f" needs a number -> {hint}")
