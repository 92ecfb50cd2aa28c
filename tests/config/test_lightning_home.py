"""A fix names the classes of Lightning in the package that the project imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.python_text.lightning_home import own_files, package_of_project
from hpc_train.errors import ConfigError
from tests.config.checking import refusal_in
from tests.config.files import write

OLD, NEW = "pytorch_lightning", "lightning.pytorch"
NETS = """\
{package}
class Net(L.LightningModule):
    def training_step(self, batch): return batch
    def configure_optimizers(self): return None
class Data(L.LightningDataModule):
    def train_dataloader(self): return []
"""
IMPORTS = {
    "import lightning as L": NEW,
    "import lightning.pytorch as L": NEW,
    "import pytorch_lightning as L": OLD,
}
PLAIN = """\
x = 1


class Plain:
    def on_train_epoch_end(self, trainer, module): print(1)
"""


def project(folder: Path, imports: str) -> Path:
    write(folder, NETS.format(package=imports), "nets.py")
    write(folder, PLAIN, "cb.py")
    return folder


def refused(folder: Path, more: str) -> ConfigError:
    return refusal_in(folder, "{class_path: nets.Net}", "{class_path: nets.Data}", more)


@pytest.mark.parametrize("imports", IMPORTS)
@pytest.mark.parametrize(
    ("more", "name"),
    [
        ("trainer: {callbacks: [{class_path: cb.Plain}]}", "Callback"),
        ("trainer: {callbacks: {class_path: cb.Plain}}", "Callback"),
        ("loggers: [csv, {class_path: cb.Plain}]", "loggers.Logger"),
        ("trainer: {strategy: {class_path: cb.Plain}}", "strategies.Strategy"),
        ("trainer: {profiler: {class_path: cb.Plain}}", "profilers.Profiler"),
    ],
)
def test_what_a_class_is_to_derive_from_is_of_the_models_package(
    imports: str, more: str, name: str, tmp_path: Path
) -> None:
    error = refused(project(tmp_path, imports), f"{more}\n")
    assert error.hint == f"derive it from {IMPORTS[imports]}.{name}, or name a class that does"
    assert f"cb.Plain (cb.py:4) is no {name.rpartition('.')[2]}" in error.message


@pytest.mark.parametrize("imports", IMPORTS)
@pytest.mark.parametrize(
    ("more", "fix"),
    [
        ("trainer: {callbacks: [EarlyStopping]}", ".callbacks.EarlyStopping, init_args: {monitor"),
        ("trainer: {callbacks: EarlyStopping}", ".callbacks.EarlyStopping, init_args: {monitor"),
        ("trainer: {callbacks: [pl.callbacks.Timer]}", ".callbacks.Timer}"),
        ("trainer: {callbacks: [{EarlyStopping: {monitor: x}}]}", ".callbacks.EarlyStopping, i"),
        ("trainer: {callbacks: [{class_path: EarlyStopping}]}", ".callbacks.EarlyStopping"),
        ("trainer: {callbacks: [{class_path: pl.callbacks.Timer}]}", ".callbacks.Timer"),
        ("trainer: {strategy: modelparallel}", ".strategies.ModelParallelStrategy"),
        ("trainer: {stochastic_weight_avg: true}", ".callbacks.StochasticWeightAveraging"),
        ("loggers: [{CSVLogger: {save_dir: x}}]", ".loggers.CSVLogger, init_args: {save_dir: x}"),
    ],
)
def test_a_short_form_is_written_out_in_the_projects_package(
    imports: str, more: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project(tmp_path, imports))
    package = IMPORTS[imports]
    hint = refused(tmp_path, f"{more}\n").hint
    assert f"{package}{fix}" in hint
    assert (OLD if package == NEW else NEW) not in hint


def test_the_model_decides_among_files_of_both_packages(tmp_path: Path) -> None:
    folder = project(tmp_path, "import lightning as L")
    write(folder, "import pytorch_lightning as pl\nclass A(pl.LightningModule): ...\n", "aaa.py")
    error = refused(folder, "trainer: {callbacks: [{class_path: cb.Plain}]}\n")
    assert error.hint.startswith("derive it from lightning.pytorch.Callback")
    # The model itself is to be of the package of its data.
    model, data = "{class_path: cb.Plain}", "{class_path: nets.Data}"
    assert "lightning.pytorch.LightningModule" in refusal_in(folder, model, data).hint


@pytest.mark.parametrize(
    ("files", "package"),
    [
        ({}, OLD),  # both are installed
        ({"a.py": "import lightning.pytorch as pl\n"}, NEW),
        ({"a.py": "from lightning import LightningModule\n"}, NEW),
        ({"a.py": "from lightning.fabric import Fabric\n"}, OLD),
        ({"a.py": "import numpy\n", "deep/b.py": "import lightning as L\n"}, NEW),
        ({"a.py": "import lightning as L\n", "b.py": "x ="}, NEW),
        ({"a.py": "import lightning\n", "not-a-module.py": "import pytorch_lightning\n"}, NEW),
        (
            {
                "a.py": "import pytorch_lightning.callbacks\n",
                "b.py": "import lightning as L\nclass Net(L.LightningModule): ...\n",
            },
            NEW,
        ),
    ],
)
def test_the_package_of_a_project_is_that_of_its_files(
    files: dict[str, str], package: str, tmp_path: Path
) -> None:
    import sys

    for name, text in files.items():
        write(tmp_path, text, name)
    assert package_of_project([str(tmp_path), *sys.path]) == package
    assert "not-a-module" not in dict(own_files(tmp_path))
