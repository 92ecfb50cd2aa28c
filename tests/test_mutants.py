"""The mutation run itself: the same seed gives the same mutants, and what is excepted is there."""

from __future__ import annotations

import ast
from pathlib import Path

import yaml

from tests.mutants import (
    EQUIVALENT,
    ROOT,
    TESTS,
    copy_of_the_project,
    equivalents,
    mutants_of,
    sample,
)


def test_the_same_seed_gives_the_same_mutants_and_another_seed_others() -> None:
    modules = ["plan/policy", "plan/world"]
    first = sample(1, 10, modules)
    assert (len(first), first) == (10, sample(1, 10, modules))
    assert first != sample(2, 10, modules)
    every = sample(1, 0, modules)
    assert set(first) < set(every)
    assert every == sample(2, 0, modules)


def test_a_mutant_is_a_module_that_differs_in_one_place() -> None:
    original = ast.unparse(ast.parse((ROOT / "hpc_train/plan/policy.py").read_text()))
    for mutant in sample(3, 20, ["plan/policy"]):
        lines = zip(original.splitlines(), mutant.source().splitlines(), strict=False)
        changed = sum(before != after for before, after in lines)
        assert changed >= 1 or mutant.change.endswith("removed")
        assert original != mutant.source()


def test_every_module_and_tests_of_its_own_are_in_the_copy(tmp_path: Path) -> None:
    copied = copy_of_the_project(tmp_path / "copy")
    for module, tests in TESTS.items():
        assert (copied / "hpc_train" / f"{module}.py").is_file()
        for name in tests:
            assert (copied / "tests" / f"{name}.py").is_file(), name


def test_what_no_test_can_notice_is_a_mutant_that_there_is_with_a_reason() -> None:
    every = {(m.path, m.text, m.change) for path in TESTS for m in mutants_of(path)}
    assert equivalents() <= every
    assert all(entry["why"] for entry in yaml.safe_load(EQUIVALENT.read_text()) or [])
