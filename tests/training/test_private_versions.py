"""Which package of Lightning is used, and which versions of all libraries are known to work."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from hpc_train.training.private import versions
from hpc_train.training.private.lightning import PACKAGE
from hpc_train.training.resume.resume_state import newest_for_all
from tests.training import test_private_lightning
from tests.training.controlled import rank_config


def test_one_package_of_lightning_is_used_the_one_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose, both = versions.lightning_package, ("pytorch_lightning", "lightning")
    monkeypatch.setattr(versions, "find_spec", lambda name: name)
    assert choose(()) == choose(both) == choose(("pytorch_lightning",)) == "pytorch_lightning"
    assert choose(("lightning", "torch")) == "lightning.pytorch", "a script has imported it"
    monkeypatch.setattr(versions, "find_spec", lambda name: name == "lightning" or None)
    assert choose(()) == "lightning.pytorch", "it alone is installed"
    assert PACKAGE in sys.modules
    other = {"pytorch_lightning": "lightning", "lightning.pytorch": "pytorch_lightning"}[PACKAGE]
    assert other not in sys.modules, "never both"


@pytest.mark.skipif(PACKAGE != "pytorch_lightning", reason="this is the run with the other package")
@pytest.mark.skipif(find_spec("lightning") is None, reason="the package lightning is not installed")
def test_the_package_lightning_has_the_same_names() -> None:
    code = "import sys, lightning.pytorch, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    arguments = [
        sys.executable,
        "-c",
        code,
        "-p",
        "no:cacheprovider",
        __file__,
        test_private_lightning.__file__,
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_run_says_so_in_one_line_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(versions.TRIED, "torch", ("1.0", "1.13"))
    run = RunDir(tmp_path)
    run.attempt(0).path.mkdir(parents=True)
    for rank in (1, 0):
        assert capsys.readouterr().err == ""
        newest_for_all(rank_config(run.checkpoints, rank=rank), None)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"WARNING: torch {version('torch')} is newer than what this was tried")


def test_pip_allows_what_was_tried_and_nothing_else() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    for name, (oldest, newest) in versions.TRIED.items():
        if name != "lightning":  # no dependency: it is used where a script brings it
            major, minor = newest.split(".")
            above = f"{major}.{int(minor) + 1}"
            assert re.search(rf'"{name}>={re.escape(oldest)},<{re.escape(above)}"', text)


def test_a_version_that_nobody_tried_is_named() -> None:
    tried = {name: f"{newest}.9+cpu" for name, (_, newest) in versions.TRIED.items()}
    assert versions.untried_versions(tried.__getitem__) == ""
    later = {**tried, "torch": "2.99.0a0+git", "submitit": "1.5.3"}
    words = versions.untried_versions(later.__getitem__)
    assert words.startswith("torch 2.99.0a0+git is newer than what this was tried with (2.6 to ")
    assert "; submitit 1.5.3 is older than what this was tried with (1.5.4 to 1.5.x): " in words
    assert len(words.splitlines()) == 1

    def nothing(name: str) -> str:
        raise PackageNotFoundError(name)

    assert versions.untried_versions(nothing) == ""
    assert versions.untried_versions() == "", "constraints.txt is within what was tried"
