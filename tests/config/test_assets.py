from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config import assets
from hpc_train.errors import HpcTrainError


def test_the_files_of_the_repository_are_found() -> None:
    assert (assets.template_dir() / "srun.sbatch.in").is_file()
    assert (assets.config_dir() / "digits.yaml").is_file()


def test_a_wheel_finds_them_inside_the_package_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "hpc_train" / "configs").mkdir(parents=True)
    monkeypatch.setattr(assets, "_PACKAGE", tmp_path / "hpc_train")
    assert assets.config_dir() == tmp_path / "hpc_train" / "configs"


def test_a_damaged_installation_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "_PACKAGE", tmp_path / "hpc_train")
    with pytest.raises(HpcTrainError, match="sbatch_templates of hpc-train is missing"):
        assets.template_dir()
