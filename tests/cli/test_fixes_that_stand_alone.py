"""Fixes that a screen shows without the lines that diagnose shows beside them."""

from __future__ import annotations

import pytest

from hpc_train.cli.diagnosis_lines import stands_alone
from hpc_train.diagnose.rules import read_rules

FIXES = {rule.name: rule.fix for rule in read_rules()}


@pytest.mark.parametrize("name", ["labels", "gpu_assert", "file_missing", "permission"])
def test_a_fix_that_names_all_it_speaks_of_is_shown(name: str) -> None:
    assert stands_alone(FIXES[name])


@pytest.mark.parametrize("name", ["state_dict", "syntax", "other_arguments"])
def test_a_fix_that_means_lines_beside_it_is_not(name: str) -> None:
    assert not stands_alone(FIXES[name])
