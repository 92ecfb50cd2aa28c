"""Sweeps that are typed in the form of Slurm's --array, or of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import loaded, refused


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("seed=1,2,3%2", "--sweep seed=1,2,3 --at-most 2"),
        ("seed=1, 2 % 1", "--sweep seed=1,2 --at-most 1"),
        ("seed=range(0,3)%2", "--sweep 'seed=range(0,3)' --at-most 2"),
        ("seed=[1,2]%2", "--sweep 'seed=[1,2]' --at-most 2"),
        ("model.init_args.lr=1e-3,.01%4", "--sweep model.init_args.lr=1e-3,.01 --at-most 4"),
    ],
)
def test_how_many_at_once_is_an_option_of_its_own(tmp_path: Path, typed: str, fix: str) -> None:
    error = refused(tmp_path, "", sweep=[typed])
    assert "is of Slurm's --array" in error.message
    assert error.hint == f"write {fix}"


@pytest.mark.parametrize(
    ("written", "values"),
    [("range(0,3)%2", "range(0,3)"), ("1,2,3%2", "[1,2,3]"), ("'[1, 2]%2'", "[1, 2]")],
)
def test_in_a_file_too(tmp_path: Path, written: str, values: str) -> None:
    from hpc_train.config.sweeps.sweep import points_of
    from hpc_train.errors import ConfigError

    with pytest.raises(ConfigError, match=r"cfg.yaml:5: sweep.seed is .* Slurm's --array") as told:
        points_of(loaded(tmp_path, f"sweep: {{seed: {written!r}}}\n".replace('"', "")))
    assert told.value.hint == f"write {values}, and submit it with --at-most 2"


@pytest.mark.parametrize("values", ["10%,20%", "a%20,b%20", "1a%2,2", "1%02"])
def test_a_percent_sign_in_a_value_is_the_values(tmp_path: Path, values: str) -> None:
    loaded(tmp_path, "", sweep=[f"model.init_args.x={values}"])


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("model.init_args.lr: [0.1, 0.01]", "model.init_args.lr=0.1,0.01"),
        ("model.init_args.lr:0.1, 0.01", "model.init_args.lr=0.1,0.01"),
        ("seed: range(3)", "'seed=range(3)'"),
        ("seed: 3", "seed=3"),
        ("model.init_args.betas: [[1, 2], [3, 4]]", "'model.init_args.betas=[[1, 2], [3, 4]]'"),
        ("seed: [1, 2]%2", "'seed=[1, 2]' --at-most 2"),
    ],
)
def test_the_form_of_a_file_is_told_with_an_equals_sign(
    tmp_path: Path, typed: str, fix: str
) -> None:
    error = refused(tmp_path, "", sweep=[typed])
    assert "has the form of a file" in error.message
    assert error.hint == f"write it with an =: --sweep {fix}"
