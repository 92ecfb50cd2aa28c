"""An import of the package of Lightning that is not installed, where the other one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.python_text.lacking_packages import fix_of_import

OLD = "Lightning is installed as pytorch_lightning here"
NEW = "Lightning is installed as lightning here"
CLASSES = "Trainer = LightningModule = Callback = None\n"


def installed(folder: Path, package: str) -> Path:
    """A folder of packages with as much of Lightning as imports ask for."""
    root = folder / "packages"
    main = root / package.replace(".", "/")
    (main / "callbacks").mkdir(parents=True)
    if package != "pytorch_lightning":
        (root / "lightning/__init__.py").write_text(CLASSES)
        (root / "lightning/fabric").mkdir()
        (root / "lightning/fabric/__init__.py").write_text("Fabric = None\n")
    else:
        (root / "lightning_fabric").mkdir()
        (root / "lightning_fabric/__init__.py").write_text("Fabric = None\n")
    (main / "__init__.py").write_text(CLASSES)
    (main / "callbacks/__init__.py").write_text("EarlyStopping = None\n")
    return root


def fix(tmp_path: Path, package: str, line: str) -> str:
    words = line.split()
    module = words[1]
    names = line.partition(" import ")[2].split(", ") if words[0] == "from" else []
    bare = tuple(it.partition(" as ")[0] for it in names)
    file = tmp_path / "nets.py"
    file.write_text(f"import os\n{line}\n")
    path = [str(tmp_path), str(installed(tmp_path, package))]
    return fix_of_import(module, bare, file, path)


@pytest.mark.parametrize(
    ("line", "write"),
    [
        ("import lightning as L", "import pytorch_lightning as L"),
        ("import lightning.pytorch as pl", "import pytorch_lightning as pl"),
        (
            "import lightning.pytorch",
            "import pytorch_lightning, and pytorch_lightning for lightning.pytorch below",
        ),
        ("from lightning import LightningModule", "from pytorch_lightning import LightningModule"),
        (
            "from lightning import LightningModule as LM, Trainer",
            "from pytorch_lightning import LightningModule as LM, Trainer",
        ),
        (
            "from lightning.pytorch.callbacks import EarlyStopping",
            "from pytorch_lightning.callbacks import EarlyStopping",
        ),
        ("from lightning import pytorch as pl", "import pytorch_lightning as pl"),
        ("from lightning import pytorch", "import pytorch_lightning as pytorch"),
        ("from lightning.fabric import Fabric", "from lightning_fabric import Fabric"),
        ("from lightning.pytorch import *", "from pytorch_lightning import *"),
    ],
)
def test_of_the_newer_package_the_same_import_of_the_older_one_is_told(
    tmp_path: Path, line: str, write: str
) -> None:
    package = write.removeprefix("from ").removeprefix("import ")
    home = "lightning_fabric" if package.startswith("lightning_fabric") else "pytorch_lightning"
    said = fix(tmp_path, "pytorch_lightning", line)
    assert said == f"write {write}: Lightning is installed as {home} here"


@pytest.mark.parametrize(
    ("line", "write"),
    [
        ("import pytorch_lightning as pl", "import lightning.pytorch as pl"),
        ("from pytorch_lightning import Trainer", "from lightning.pytorch import Trainer"),
        ("from lightning_fabric import Fabric", "from lightning.fabric import Fabric"),
    ],
)
def test_of_the_older_package_the_same_import_of_the_newer_one_is_told(
    tmp_path: Path, line: str, write: str
) -> None:
    assert fix(tmp_path, "lightning.pytorch", line) == f"write {write}: {NEW}"


def test_what_the_other_package_has_elsewhere_is_not_told_as_a_line(tmp_path: Path) -> None:
    said = fix(tmp_path, "pytorch_lightning", "from lightning import Trainer, Fabric")
    assert said == f"{OLD}: import that one"


def test_where_neither_is_installed_it_is_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (tmp_path / "nets.py").write_text("import lightning as L\n")
    (tmp_path / "site" / "torch").mkdir(parents=True)  # else this is no Python to train with
    (tmp_path / "site" / "torch" / "__init__.py").touch()
    path = [str(tmp_path), str(tmp_path / "site")]
    said = fix_of_import("lightning", (), tmp_path / "nets.py", path)
    assert said.startswith("pip install lightning, or ")
