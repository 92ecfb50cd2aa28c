"""Images of PIL out of a set of torchvision's: its line, and the transform that it lacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader, Subset

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import user_frame

# As torchvision has it: the image goes through the transform, where there is one.
SETS = """\
from torch.utils.data import Dataset
from PIL import Image

class Images(Dataset):
    def __init__(self, size=4, transform=None):
        self.size, self.transform = size, transform
    def __len__(self):
        return self.size
    def __getitem__(self, index):
        image = Image.Image()
        return (self.transform(image) if self.transform else image), 0
"""
USERS = """\
from torchvision.datasets import Images
from torch.utils.data import Dataset

class Own(Images):
    pass

class Whole(Dataset):
    def __init__(self):
        self.transform = None
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return __import__("PIL.Image").Image.Image(), 0

def keep(image): return image

def train(): return Images(8)
def other(): return Images(transform=keep)
def more(): return Images(2)
def own(): return Own()
"""


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of the user's that makes sets of a package torchvision."""
    before = {*sys.modules}
    site = tmp_path / "site-packages"
    for name, text in (
        ("torchvision/__init__.py", ""),
        ("torchvision/datasets.py", SETS),
        ("PIL/__init__.py", ""),
        ("PIL/Image.py", "class Image: ..."),
    ):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (tmp_path / "images_of_mine.py").write_text(USERS)
    for name in [it for it in before if it.partition(".")[0] in ("PIL", "torchvision")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import images_of_mine  # type: ignore[import-not-found]

    yield images_of_mine
    names = ("PIL", "torchvision", "images_of_mine")
    for name in [it for it in sys.modules if it.partition(".")[0] in names]:
        if name not in before:
            del sys.modules[name]


def failed(dataset: Any, workers: int = 0) -> TypeError:
    with pytest.raises(TypeError) as raised:
        next(iter(DataLoader(dataset, 2, num_workers=workers)))
    return raised.value


TRANSFORM = (
    " has no transform, and gives images of PIL: write Images(..., transform=ToTensor()), with from"
    " torchvision.transforms import ToTensor"
)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("is_part", [False, True])
def test_the_lines_that_make_it_are_told(users: Any, workers: int, *, is_part: bool) -> None:
    dataset = Subset(users.train(), [0, 1]) if is_part else users.train()
    error = failed(dataset, workers)
    lines = "images_of_mine.py:17, images_of_mine.py:19"
    assert fix_of(error) == f"Images(...) ({lines})" + TRANSFORM
    assert user_frame(error).endswith("images_of_mine.py:17")


def test_a_transform_that_leaves_them_is_told(users: Any) -> None:
    error = failed(users.other())
    assert "the transform of Images(...) (" in fix_of(error)
    assert fix_of(error).endswith(
        " leaves images of PIL: write Compose([..., ToTensor()]) for it, with from"
        " torchvision.transforms import ToTensor, Compose"
    )


def test_a_class_that_only_derives_from_one_is_told_by_its_own_name(users: Any) -> None:
    assert fix_of(failed(users.own())).startswith("Own(...) (images_of_mine.py:20) has no tran")


def test_a_set_that_gives_its_samples_itself_is_not(users: Any) -> None:
    assert "transform" not in fix_of(failed(users.Whole()))
