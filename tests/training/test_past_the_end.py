"""What is asked for and is not there, told with what there is: samples, keys, objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from hpc_train.training.failures.failure_words import fix_of


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


class OfTwo(Longer):
    """Reads its samples of two, as of images and labels."""

    def __getitem__(self, index: int) -> Any:
        return self.held[index], self.more


class Through(Longer):
    def __getitem__(self, index: int) -> Any:
        held = self.held
        return held[index]


def fix_in_worker(dataset: Any) -> str:
    with pytest.raises(IndexError, match="Original Traceback") as caught:
        list(DataLoader(dataset, batch_size=2, num_workers=1))
    return fix_of(caught.value)


LINE = Longer.__len__.__code__.co_firstlineno
PLACE = f"Longer.__len__ (tests/training/test_past_the_end.py:{LINE})"
SAID = f"{PLACE} gives 5, and self.held holds 4: write return len(self.held) there"


class Table:
    """As of pandas: taken by its place by `iloc`."""

    def __init__(self, rows: list[float]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def iloc(self) -> Any:
        table = self

        class Rows:
            def __getitem__(self, place: int) -> float:
                if place >= len(table.rows):
                    raise IndexError("single positional indexer is out-of-bounds")
                return table.rows[place]

        return Rows()


class OfTable(Longer):
    def __getitem__(self, index: int) -> Any:
        return self.held.iloc[index]


@pytest.mark.parametrize(
    "held",
    [torch.zeros(4, 2), np.zeros((4, 2)), [1.0, 2.0, 3.0, 4.0], TensorDataset(torch.zeros(4))],
)
@pytest.mark.parametrize("fix", [fix_for, fix_in_worker])
def test_a_length_that_says_too_many_is_told_with_what_to_return(held: Any, fix: Any) -> None:
    if fix is fix_in_worker and isinstance(held, TensorDataset):  # whose own frame is the last
        return
    assert fix(Longer(held)) == f"{__name__}.{SAID}"
    assert fix(Subset(Longer(held), [0, 4])) == f"{__name__}.{SAID}"
    assert fix(OfTwo(held)).endswith(
        "gives 5, and self.held holds 4: write return len(self.held) there"
    )


def test_rows_of_a_table_are_told_as_those_of_a_list() -> None:
    assert fix_for(OfTable(Table([1.0] * 4))).endswith(
        "self.held holds 4: write return len(self.held) there"
    )


def test_what_is_indexed_in_another_way_is_told_with_its_size_alone() -> None:
    told = "gives 5, and what its __getitem__ takes sample 4 of has 4"
    assert fix_for(Through(torch.zeros(4, 2))).endswith(told)
    assert fix_in_worker(Through(torch.zeros(4, 2))) == ""


def test_an_index_within_a_sample_follows_from_no_length() -> None:
    assert fix_for(OfRows(torch.zeros(4, 2))) == ""
    assert fix_for(OfRows([[1.0, 2.0], [3.0]])) == ""
    assert fix_in_worker(OfRows(torch.zeros(4, 2))) == ""
    assert fix_in_worker(OfRows([[1.0, 2.0], [3.0]])) == ""


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
