"""A data set whose `__getitem__` has another name is refused before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_sure_refusals import GIVES, said_of

SETS = """
from torch.utils.data import Dataset
class Base(Dataset):
    def __len__(self): return 4
class Texts(Dataset):
    def __len__(self): return 4
    def METHOD(self, i): return i
class Data(pl.LightningDataModule):
    def train_dataloader(self): return make(CALL)
"""


def said(
    folder: Path, patch: pytest.MonkeyPatch, method: str = "get_item", more: str = "", **new: str
) -> str:
    text = SETS.replace("METHOD", method)
    for old, wanted in {"CALL": "Texts()", **new}.items():
        text = text.replace(old, wanted)
    return said_of(folder, patch, GIVES, f"{text}{more}")


@pytest.mark.parametrize("method", ["get_item", "getitem", "__get_item__", "_getitem_", "getItem"])
def test_the_method_that_is_meant_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    assert said(tmp_path, monkeypatch, method) == (
        "cfg.yaml:4: data.class_path: nets.Data makes nets.Texts, which has no __getitem__, and a"
        f" {method} (nets.py:17) that nothing calls -> rename {method} to __getitem__"
    )


@pytest.mark.parametrize(
    ("method", "more", "new"),
    [
        ("__getitem__", "", {}),
        ("get", "", {}),
        ("get_text", "", {}),
        (
            "get_item",
            "    __getitem__ = get_item\n",
            {"class Data": "    __getitem__ = None\nclass Data"},
        ),
        (
            "get_item",
            "class Other(Texts):\n    def __getitem__(self, i): return self.get_item(i)\n",
            {},
        ),
        ("get_item", "", {"CALL": "[1]"}),
        ("get_item", "", {"class Texts(Dataset)": "class Texts(Base)"}),
        ("get_item", "", {"class Texts(Dataset)": "@given\nclass Texts(Dataset)"}),
        ("get_item", "", {"class Texts(Dataset)": "class Texts(torch.nn.Module)"}),
    ],
)
def test_what_may_give_samples_is_not_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    more: str,
    new: dict[str, str],
) -> None:
    assert said(tmp_path, monkeypatch, method, more, **new) == ""
