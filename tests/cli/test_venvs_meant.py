"""What is told of an `env.venv` that is a folder in a venv, around venvs, or of conda."""

from __future__ import annotations

import json
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


def activated(tmp_path: Path, name: str, *, has_us: bool = False, more: str = "") -> Path:
    """A venv whose activate does what it is for."""
    venv(tmp_path / name, has_us=has_us)
    text = f'PATH="{tmp_path / name}/bin:$PATH"\nexport PATH\n{more}\n'
    (tmp_path / name / "bin/activate").write_text(text)
    return tmp_path / name


@pytest.mark.parametrize(
    ("line", "others", "place"),
    [
        ("source bare/bin/activate", [], 0),
        (". bare/bin/activate", [], 0),
        ("source {}/bare/bin/activate", ["export OMP_NUM_THREADS=4", "# mine"], 2),
        ("source $HOME/bare/bin/activate", ["set -e", "ulimit -n 4096"], 2),
        ("source ~/bare/bin/activate", [], 0),
    ],
)
@pytest.mark.parametrize("how", [[], ["--dry-run"]])
def test_a_venv_that_setup_activates_and_that_lacks_hpc_train_is_refused(
    hpc, taken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line, others, place, how
) -> None:
    """It was queued, and ended before its training."""
    monkeypatch.setenv("HOME", str(tmp_path))
    activated(tmp_path, "bare")
    lines = [*others, line.format(tmp_path)]
    said = hpc("submit", DIGITS, f"env.setup={json.dumps(lines)}", *how)
    assert said.code == 3, said
    error, fix = said.err.splitlines()
    assert f"env.setup.{place} is `{lines[-1]}`, a venv that has no hpc-train" in error
    assert f"{tmp_path}/bare/bin/python install" in fix
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "lines",
    [
        ["source good/bin/activate"],
        ["source bare/bin/activate", "export PYTHONPATH=/nodes/only"],
        ["source bare/bin/activate", "source good/bin/activate"],
        ["module load python || true", "source bare/bin/activate"],
        ["[ -e bare ] && source bare/bin/activate"],
        ["source bare/bin/activate || true"],
        ["source bare/bin/activate", "if true; then export A=1; fi"],
        ["source own/bin/activate"],
        ["source $ENVS/bare/bin/activate"],
        ["source /nope/not/here/bin/activate"],
    ],
)
def test_a_venv_of_setup_that_has_it_or_of_which_only_the_job_can_tell_is_taken(
    hpc, taken, tmp_path: Path, lines: list[str]
) -> None:
    activated(tmp_path, "bare")
    activated(tmp_path, "good", has_us=True)
    # Its text sets what its own Python has not: that of another one is found first.
    activated(tmp_path, "own", more=f'PATH="{tmp_path}/good/bin:$PATH"')
    said = hpc("submit", DIGITS, f"env.setup={json.dumps(lines)}")
    assert said.code == 0, said
    assert "has no hpc-train" not in said.err
