"""A number in brackets of a pandas table is told with `.iloc`, a column with those that there are.

pandas is not installed where this is tested: its classes stand in, with what is read of them.
"""

from __future__ import annotations

from typing import Any

import pytest
from torch.utils.data import DataLoader, Dataset

from hpc_train.training.failures.failure_words import fix_of

PANDAS = """
class Names(list):
    def tolist(self):
        return list(self)

class Series:
    def __init__(self, values):
        self.index, self._values = Names(values), values

    def __getitem__(self, key):
        return self._values[key]

    @property
    def loc(self):
        return self

class Rows:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, key):
        return self.rows[key]

class DataFrame:
    def __init__(self, columns, index):
        self.columns, self.index = Names(columns), Names(index)

    def __getitem__(self, key):
        if key not in self.columns:
            raise KeyError(key)
        return Series(dict.fromkeys(self.index, 1.0))

    @property
    def loc(self):
        return Rows(dict.fromkeys(self.index, 1.0))
"""
_MADE: dict[str, Any] = {"__name__": "pandas.core"}
# As of an installed package: its frames are none of the user's.
exec(compile(PANDAS, "/x/site-packages/pandas/core.py", "exec"), _MADE)
Series, DataFrame = _MADE["Series"], _MADE["DataFrame"]


class Table(Dataset[Any]):
    """Of rows that were drawn or sorted out: the labels are not the places."""

    def __init__(self, way: int = 0) -> None:
        self.way = way
        self.df = DataFrame(["a", "b", "label"], [7, 2, 1, 6, 9, 4])
        self.x, self.y = Series({7: 0.5, 2: 0.1}), Series({7: 1, 2: 0})
        self.plain = {"k": 1}

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        df = self.df
        if self.way == 0:
            return self.df[i]
        if self.way == 1:
            return self.x[i], self.y[i]
        if self.way == 2:
            return self.df.loc[i]
        if self.way == 3:
            return df["labels"][i]
        if self.way == 4:
            return Series({"a": 1})["z"]
        return self.plain[i]


INDEX = "(7, 2, 1, 6, 9, ...) has no label 0"
TOLD = [
    "self.df[...] is a column of that name ('a', 'b', 'label'), and no row: write self.df.iloc[i]",
    (
        "self.x[...] takes a label, and its index (7, 2) has no label 0: write self.x.iloc[i] for"
        " the place"
    ),
    f"self.df.loc[...] takes a label, and its index {INDEX}: write self.df.iloc[i] for the place",
    "df has the columns 'a', 'b', 'label': did you mean 'label'?",
    "",
    "self.plain has 1 key: 'k'",
]


@pytest.mark.parametrize("way", range(6))
def test_what_is_asked_of_a_table(way: int) -> None:
    with pytest.raises(KeyError) as caught:
        Table(way)[0]
    assert fix_of(caught.value) == TOLD[way]


@pytest.mark.parametrize("way", [0, 1, 2])
def test_the_same_in_a_data_worker(way: int) -> None:
    with pytest.raises(KeyError, match="Original Traceback") as caught:
        list(DataLoader(Table(way), num_workers=1))
    assert fix_of(caught.value) == TOLD[way]


def test_a_table_of_another_library_is_left_alone() -> None:
    other = type("DataFrame", (DataFrame,), {"__module__": "polars.frame"})(["a"], [1])
    with pytest.raises(KeyError) as caught:
        other[0]
    assert fix_of(caught.value) == ""
