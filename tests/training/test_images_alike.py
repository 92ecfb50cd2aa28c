"""Images that become no batch: what makes them alike in channels and in size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from hpc_train.training.rank_failure import failure_of
from tests.training.images_of_files import AsTheyAre, ReadAsTheyAre

HERE = "tests/training/images_of_files.py"
CONVERT = 'Image.open(self.paths[index]).convert("RGB")'


class Resize:
    """As torchvision has it, of either version of its transforms."""

    def __init__(self, size: Any) -> None:
        self.size = size

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        for it in self.transforms:
            image = it(image)
        return image


class Plain(Dataset[torch.Tensor]):
    def __init__(self, shapes: list[list[int]], transform: Any = None) -> None:
        self.shapes = shapes
        self.transform = transform

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(self.shapes[index])

    def __len__(self) -> int:
        return len(self.shapes)


class Pixels(torch.Tensor):
    def convert(self, mode: str) -> torch.Tensor:
        return self


class Converted(AsTheyAre):
    def __getitem__(self, index: int) -> torch.Tensor:
        return super().__getitem__(index).as_subclass(Pixels).convert("RGB")


def told(dataset: Any, workers: int = 0) -> str:
    with pytest.raises(RuntimeError) as caught:
        list(DataLoader(dataset, batch_size=4, num_workers=workers))
    return failure_of(caught.value).fix.partition(" gives samples that differ in size: ")[2]


GREY = [[3, 8, 8], [3, 8, 8], [1, 8, 8]]
SIZES = [[3, 8, 9], [3, 8, 8]]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_grey_image_among_others_is_to_be_converted(workers: int) -> None:
    fix = told(AsTheyAre(GREY), workers)
    gives = "Image.open(self.paths[index]) gives as many channels as the file has"
    assert fix == f"{gives}: write {CONVERT} ({HERE}:26)"
    assert told(Subset(AsTheyAre(GREY), [0, 2]), workers) == fix
    fix = told(ReadAsTheyAre(GREY), workers)
    assert "write read_image(self.paths[index], mode='RGB')" in fix


def test_where_the_text_opens_no_image_the_channels_are_told() -> None:
    assert told(Plain(GREY)) == "they differ in channels, 3 and 1: give each as many"
    assert told(Converted(GREY)) == "they differ in channels, 3 and 1: give each as many"


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("size", [224, [224], (224,)])
def test_a_resize_of_one_number_is_the_reason(size: Any, workers: int) -> None:
    for transform in (Resize(size), Compose([Compose([Resize(size)])])):
        assert told(Plain(SIZES, transform), workers) == (
            "Resize(224) keeps the ratio of the sides: write Resize((224, 224))"
        )


@pytest.mark.parametrize(
    "dataset",
    [
        Plain(SIZES),
        Plain(SIZES, Compose([Resize((8, 8))])),
        Plain([[2], [3]]),
        Plain([[5, 8], [6, 8]]),
        AsTheyAre(SIZES),
    ],
)
def test_what_is_no_image_or_has_another_size_is_told_as_before(dataset: Any) -> None:
    assert told(dataset) == "pad or crop them there, or in a collate_fn"


def test_the_line_of_the_image_is_the_one_that_is_named() -> None:
    assert "Image.open(self.paths[index])" in Path(HERE).read_text().splitlines()[25]
