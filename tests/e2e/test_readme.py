"""What the README tells a newcomer to type, typed."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Shell

UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, beginning: str) -> str:
    """The README's block that begins so."""
    (found,) = re.findall(rf"^```{language}\n({beginning}.*?)^```$", README, re.S | re.M)
    return str(found)


def test_the_first_class_of_the_readme_trains(here: Shell) -> None:
    config = block("yaml", "name: first")
    assert len(config.splitlines()) == 10
    Path(here.folder, "first.yaml").write_text(config)
    Path(here.folder, "nets.py").write_text(block("python", "import torch"))
    command, submission = block("bash", "hpc-train run").splitlines()
    words = command.partition("#")[0].split()[1:]
    here.hpc(*words)
    status = here.status("first")
    assert (status["state"], status["step"]) == ("completed", 2 * 256 // 32)
    assert submission.partition("#")[0].split()[1:] == ["submit", "first.yaml", "--follow"]
    here.hpc("submit", "first.yaml", "--dry-run")


def test_it_is_installed_from_a_clone_by_pip(here: Shell) -> None:
    install, add = block("bash", "pip install /path").splitlines()
    path = install.split()[2]
    assert path == "/path/to/hpc-train"
    assert add.partition("#")[0].split() == ["uv", "add", path]
    # What it depends on is there; the network is not asked.
    alone = ["--quiet", "--no-deps", "--no-build-isolation", "--target", "site"]
    here.run(sys.executable, "-m", "pip", "install", *alone, ROOT)
    here.environment["PYTHONPATH"] = str(here.folder / "site")
    code = "import hpc_train; print(hpc_train.__file__)"
    assert here.run(sys.executable, "-c", code).stdout.startswith(str(here.folder))
    assert "srun" in here.hpc("render", here.folder / "site/hpc_train/configs/digits.yaml").stdout


PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[tool.hatch.metadata]
allow-direct-references = true
[project]
name = "mine"
version = "0.1.0"
requires-python = ">=3.10"
"""


@pytest.mark.skipif(UV is None, reason="there is no uv here: what it asks pip for is tested alone")
def test_uv_takes_the_clone_into_a_project(here: Shell) -> None:
    (here.folder / "pyproject.toml").write_text(PROJECT)
    # What it depends on is not fetched: the network is not asked.
    here.run(UV, "add", "--quiet", "--frozen", "--offline", ROOT)
    written = (here.folder / "pyproject.toml").read_text()
    assert re.search(r'dependencies = \[\s*"hpc-train",?\s*\]', written)
    assert re.search(r'hpc-train = \{ path = ".*" \}', written)


def test_a_project_can_depend_on_the_clone(here: Shell) -> None:
    """What `uv add` asks for, without uv: the clone's path as a dependency of the project."""
    depends = f'dependencies = ["hpc-train @ {ROOT.as_uri()}"]\n'
    (here.folder / "pyproject.toml").write_text(PROJECT + depends)
    (here.folder / "mine").mkdir()
    (here.folder / "mine" / "__init__.py").touch()
    looked_at = ["--dry-run", "--quiet", "--report", "-", "--no-index", "--no-build-isolation"]
    said = here.run(sys.executable, "-m", "pip", "install", *looked_at, ".").stdout
    found = {one["metadata"]["name"]: one["download_info"] for one in json.loads(said)["install"]}
    assert found["hpc-train"]["url"] == ROOT.as_uri()
    assert set(found) == {"mine", "hpc-train"}, "all else that it needs is there"
