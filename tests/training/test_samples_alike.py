"""Samples that become no batch: what makes images, boxes and windows of a series alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset

from hpc_train.training.rank_failure import RankFailure, failure_of
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


def failure(dataset: Any, workers: int = 0) -> RankFailure:
    with pytest.raises(RuntimeError) as caught:
        list(DataLoader(dataset, batch_size=4, num_workers=workers))
    return failure_of(caught.value)


def told(dataset: Any, workers: int = 0) -> str:
    return failure(dataset, workers).fix.partition(" gives samples that differ in size: ")[2]


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


class Boxes(Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return torch.zeros(3, 8, 8), {"boxes": torch.zeros(index + 1, 4), "image_id": index}

    def __len__(self) -> int:
        return 3


class BoxesByKey(Boxes):
    def __getitem__(self, index: int) -> Any:
        target: dict[str, Any] = {}
        target["boxes"] = torch.zeros(index + 1, 4)
        return torch.zeros(3, 8, 8), target


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", [Boxes, BoxesByKey])
def test_boxes_of_a_detection_are_kept_as_a_list(kind: Any, workers: int) -> None:
    assert told(kind(), workers) == (
        "each has boxes of its own number: keep them as a list, by collate_fn=collate of the"
        " DataLoader, with def collate(batch): return tuple(zip(*batch)) in that file"
    )


class Windows(Dataset[Any]):
    def __init__(self) -> None:
        self.series, self.window, self.horizon = torch.zeros(8, 2), 3, 2

    def __getitem__(self, index: int) -> Any:
        x = self.series[index : index + self.window]
        y = self.series[index + self.window : index + self.window + self.horizon]
        return x, y

    def __len__(self) -> int:
        return len(self.series)


class OfNumbers(Windows):
    def __getitem__(self, i: int) -> Any:
        return self.series[i : i + 3, 0]


class Whole(Windows):
    def __getitem__(self, index: int) -> Any:
        return self.series[index : index + self.window]

    def __len__(self) -> int:
        return len(self.series) - self.window + 2


class WholeOfOne(Whole):
    """All windows are whole, and what they hold is not."""

    def __getitem__(self, index: int) -> Any:
        return self.series[index : index + self.window][: index + 1]

    def __len__(self) -> int:
        return len(self.series) - self.window + 1


class Short(Windows):
    def __len__(self) -> int:
        return len(self.series) - self.window


@pytest.mark.parametrize("workers", [0, 1])
def test_windows_past_the_end_of_a_series_are_counted(workers: int) -> None:
    """To pad them was told, by which a model learns the padding."""
    place = f"tests/training/test_samples_alike.py:{Windows.__len__.__code__.co_firstlineno + 1}"
    past = "the last windows go past the end of self.series: write return len(self.series) -"
    assert told(Windows(), workers) == f"{past} (self.window + self.horizon) + 1 ({place})"
    assert told(OfNumbers(), workers) == f"{past} 3 + 1 ({place})"
    assert told(Whole(), workers).startswith(f"{past} self.window + 1 (")
    assert told(WholeOfOne(), workers) == "pad or crop them there, or in a collate_fn"


@pytest.mark.parametrize("workers", [0, 1])
def test_windows_of_several_series_are_counted_as_well(workers: int) -> None:
    """A ConcatDataset is torch's own: the set that gives the samples is below it."""
    past = "the last windows go past the end of self.series: write return len(self.series) -"
    parts: Any = ConcatDataset([Short(), Subset(Short(), range(4))])
    assert told(parts, workers).startswith(f"{past} (self.window + self.horizon) + 1 (")
    line = Windows.__getitem__.__code__.co_firstlineno
    found = failure(parts, workers)
    assert found.where.endswith(f"tests/training/test_samples_alike.py:{line}")
    mixed: Any = ConcatDataset([OfNumbers(), Short()])  # of which either may be the one
    assert "past the end" not in failure(mixed, workers).fix
