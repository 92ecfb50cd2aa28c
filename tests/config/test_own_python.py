"""A package that this Python has not, and the active environment has: which is named, once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

NETS = "import pytorch_lightning as pl\nimport kornia.x\nclass Net(pl.LightningModule): ...\n"
DATA = "class Data(pl.LightningDataModule): ...\n"
HAS = f", which has it: hpc-train runs in {sys.executable}"


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, data: str = "nets.Data") -> ConfigError:
    monkeypatch.chdir(folder)
    write(folder, f"{NETS}{DATA}", "nets.py")
    with pytest.raises(ConfigError, match="imports 'kornia', which is not installed") as caught:
        api.load(write(folder, MINIMAL.replace("nets.Data", data)))
    return caught.value


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "my venv" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    return tmp_path / "my venv"


@pytest.mark.parametrize(
    ("variable", "key"), [("VIRTUAL_ENV", "env.venv"), ("CONDA_PREFIX", "env.conda")]
)
def test_the_active_environment_that_has_it_is_the_one_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: Path, variable: str, key: str
) -> None:
    """`pip install kornia` was told, which is installed where the person looks."""
    write(venv, "", "lib/python3.11/site-packages/kornia/__init__.py")
    monkeypatch.setenv(variable, str(venv))
    told = refused(tmp_path, monkeypatch, "kornia.data.Data")
    assert told.hint == f"write {key}='{venv}'{HAS}"
    assert told.others == ()  # the other class that lacks it has the same fix


def test_an_active_environment_without_it_is_told_with_the_python_that_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: Path
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    hint = refused(tmp_path, monkeypatch).hint
    assert hint.startswith(f"hpc-train runs in {sys.executable}: name the environment that has it")
    assert hint.endswith(", env.venv=FOLDER or env.conda=NAME, or pip install kornia there")


@pytest.mark.parametrize(
    ("kind", "adds"),
    [
        ("pipx/venvs", "pipx inject hpc-train kornia"),
        ("uv/tools", "uv tool install hpc-train --with kornia"),
    ],
)
def test_a_tools_own_python_is_told_without_an_active_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: Path, kind: str, adds: str
) -> None:
    assert venv
    monkeypatch.setattr(sys, "prefix", f"/home/me/.local/{kind}/hpc-train")
    hint = refused(tmp_path, monkeypatch).hint
    assert hint.startswith(f"hpc-train runs in {sys.executable}: ")
    assert hint.endswith(f", or {adds}"), "a tool's Python has no pip to type"


@pytest.mark.parametrize("value", ["", "/nowhere", sys.prefix])
def test_in_the_projects_own_environment_it_is_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: Path, value: str
) -> None:
    assert venv
    monkeypatch.setenv("VIRTUAL_ENV", value)
    assert refused(tmp_path, monkeypatch).hint.startswith("pip install kornia, or name the")


@pytest.mark.parametrize("name", [".venv", "venv"])
@pytest.mark.parametrize("has", [True, False])
def test_the_projects_own_environment_that_nobody_activated_is_named_where_it_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: Path, name: str, has: bool
) -> None:
    assert venv
    package = "kornia" if has else "other"
    write(tmp_path, "", f"{name}/lib/python3.11/site-packages/{package}/__init__.py")
    hint = refused(tmp_path, monkeypatch).hint
    assert (hint == f"write env.venv={name}{HAS}") == has
    assert has or hint.startswith("pip install kornia, or name the")
