"""What is asked for and is not there, told with what there is: samples, keys, objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from hpc_train.training.failure_words import fix_of


class Longer(Dataset[Any]):
    def __init__(self, held: Any, more: int = 1) -> None:
        self.held, self.more = held, more
        self.labels = {f"img{number}": number for number in range(3)}

    def __len__(self) -> int:
        return len(self.held) + self.more

    def __getitem__(self, index: int) -> Any:
        return self.held[index]


class ByKey(Longer):
    def __getitem__(self, index: int) -> Any:
        return self.labels[f"img{index}"]


class OfRows(Longer):
    def __getitem__(self, index: int) -> Any:
        row = self.held[0]
        return row[index + 7]


def fix_for(dataset: Any) -> str:
    with pytest.raises((IndexError, KeyError)) as caught:
        list(DataLoader(dataset, batch_size=2))
    return fix_of(caught.value)


@pytest.mark.parametrize(
    "held",
    [torch.zeros(4, 2), np.zeros((4, 2)), [1.0, 2.0, 3.0, 4.0], TensorDataset(torch.zeros(4))],
)
def test_a_length_that_says_too_many_is_told_with_both_numbers(held: Any) -> None:
    said = f"{__name__}.Longer.__len__ says 5, and what its __getitem__ takes sample 4 of has 4"
    assert fix_for(Longer(held)) == said
    assert fix_for(Subset(Longer(held), [0, 4])) == said


def test_an_index_within_a_sample_follows_from_no_length() -> None:
    assert fix_for(OfRows(torch.zeros(4, 2))) == ""
    assert fix_for(OfRows([[1.0, 2.0], [3.0]])) == ""


def test_a_dict_that_has_no_such_key_is_told_with_those_it_has() -> None:
    assert fix_for(ByKey([1.0] * 4)) == "self.labels has 3 keys: 'img0', 'img1', 'img2'"
    many = dict.fromkeys(range(9))
    with pytest.raises(KeyError) as caught:
        _ = many["a"]  # type: ignore[index]
    assert fix_of(caught.value) == "many has 9 keys: 0, 1, 2, 3, 4, ..."


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_an_array_of_objects_is_read_where_it_is_trusted(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    objects = np.array([{"a": 1}, None], dtype=object)
    np.save(path, objects) if name.endswith("y") else np.savez(path, objects)
    with pytest.raises(ValueError, match="Object arrays") as caught, np.load(path) as held:
        held["arr_0"]
    file = repr(str(path)) if name.endswith("y") else "FILE"
    assert fix_of(caught.value) == (
        f"it holds objects: np.load({file}, allow_pickle=True), for a file that you trust"
    )
