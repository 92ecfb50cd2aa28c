"""A table with text in it that was to become a tensor: its columns are named, and what to write.

pandas is not installed where this is tested: its class stands in, with what is read of it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hpc_train.training.failures.failure_words import fix_of

TABLE = """
class DataFrame:
    def __init__(self, columns):
        self.columns = columns

    def __getitem__(self, name):
        return Namespace(iloc=self.columns[name])

    @property
    def dtypes(self):
        return {name: Namespace(kind=asarray(it).dtype.kind) for name, it in self.columns.items()}

    @property
    def values(self):
        return asarray([[*row] for row in zip(*self.columns.values())], dtype=object)

    def to_numpy(self, dtype):
        return self.values.astype(dtype)
"""
_MADE: dict[str, Any] = {
    "__name__": "pandas.core",
    "Namespace": SimpleNamespace,
    "asarray": np.asarray,
}
# As of an installed package: its frames are none of the user's.
exec(compile(TABLE, "/x/site-packages/pandas/core.py", "exec"), _MADE)
DataFrame = _MADE["DataFrame"]
CITIES = {"area": [1, 2], "city": ["Bern", "Basel"]}
DAYS = {"day": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")}


def told(make: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    return fix_of(caught.value)


def test_values_of_a_table_with_text() -> None:
    df = DataFrame(CITIES)
    assert told(lambda: torch.tensor(df.values)) == (
        "df has no numbers in the column 'city' (Bern): write df.drop(columns=['city']), or"
        " pd.get_dummies(df, columns=['city']), for df, and .to_numpy(dtype='float32') for .values"
    )


def test_numbers_that_are_asked_of_text_and_days() -> None:
    df = DataFrame(CITIES | DAYS)
    write = "write df.drop(columns=['city', 'day']) for df"
    assert told(lambda: df.to_numpy("float32")) == (
        f"df has no numbers in the columns 'city' (Bern), 'day' (2020-01-01): {write}"
    )


def test_numbers_alone_and_no_table_are_told_as_ever() -> None:
    df = DataFrame({"area": [1, 2], "sold": [True, False]})
    assert told(lambda: torch.tensor(df.values)) == ""
    assert "is no number" in told(lambda: float("Bern"))
