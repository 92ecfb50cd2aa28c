"""What is told of an `env.venv` that is a folder in a venv, around venvs, or of conda."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_submit import DIGITS, venv


@pytest.mark.parametrize(
    ("wanted", "fix"),
    [
        ("mine/bin", "write the folder itself: env.venv={}/mine"),
        ("mine/bin/", "write the folder itself: env.venv={}/mine"),
        ("mine/bin/activate", "write the folder itself: env.venv={}/mine"),
        ("mine/lib/python3.11/site-packages", "write the folder itself: env.venv={}/mine"),
        ("base/envs/x", "it is an environment of conda: write env.conda={}/base/envs/x"),
        ("base/envs/new", "`python3 -m venv {}/base/envs/new` makes one"),
        ("mine/project", "`python3 -m venv {}/mine/project` makes one"),
        ("many", "write one of its folders: env.venv={}/many/a"),
        ("one", "write the folder that has bin/activate: env.venv={}/one/a"),
        ("tools/bin", "write the folder that has bin/activate"),
    ],
)
def test_a_folder_beside_a_venv_is_told_with_the_venv(
    hpc, taken, tmp_path: Path, wanted: str, fix: str
) -> None:
    for name in ("mine", "base", "many/a", "many/b", "one/a"):
        venv(tmp_path / name, has_us=True)
    for name in ("base/conda-meta", "base/envs/x/conda-meta", "mine/project", "tools/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "mine/lib/python3.11/site-packages").mkdir(parents=True)
    said = hpc("submit", DIGITS, f"env.venv={wanted}")
    assert said.code == 3
    assert said.err.splitlines()[1].endswith(fix.format(tmp_path)), said.err
