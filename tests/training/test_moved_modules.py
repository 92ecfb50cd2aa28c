"""A module that torch has no more, imported in a function."""

from __future__ import annotations

import pytest

from hpc_train.training.failures.failure_words import fix_of


def test_one_in_a_function_is_told_where_it_fails() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        from torch._six import inf  # noqa: F401
    assert fix_of(caught.value) == "write from math import inf in its place"
