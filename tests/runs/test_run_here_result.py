"""What `run_here` gives, taken for the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.api import Run
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_here_result import RunHereResult


def made(folder: Path) -> RunHereResult:
    return RunHereResult(Run(RunDir(folder)), 0)


def test_it_unpacks_and_compares_as_a_tuple(tmp_path: Path) -> None:
    run, code = result = made(tmp_path)
    assert (run.directory.path, code) == (tmp_path, 0)
    assert result == (run, 0)
    assert (isinstance(result, tuple), result[1], result.run, result.code) == (True, 0, run, 0)


@pytest.mark.parametrize("name", ["best_model", "status", "wait", "directory"])
def test_who_takes_it_for_the_run_is_told_how_to_have_that(tmp_path: Path, name: str) -> None:
    says = "run_here gives a pair, the run and its exit code: write run, code ="
    with pytest.raises(AttributeError, match=f"{says} hpc_train.run_here.*, and run.{name}"):
        getattr(made(tmp_path), name)


@pytest.mark.parametrize("name", ["best", "metrics", "id"])
def test_so_is_who_looks_for_what_a_run_has_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(AttributeError, match=r"run_here gives a pair.*run\."):
        getattr(made(tmp_path), name)


def test_what_python_asks_for_by_itself_is_not_there(tmp_path: Path) -> None:
    assert not hasattr(made(tmp_path), "_repr_html_")
    assert not hasattr(made(tmp_path), "nothing_known_xyz")
