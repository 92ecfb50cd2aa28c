"""A project of a newcomer's, and what a refusal has to be: two lines, and nothing is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

NETS = """\
import abc
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def __init__(self, width: int, lr: float = 0.1): ...
class Abstract(LightningModule, abc.ABC):
    @abc.abstractmethod
    def go(self): ...
class NoInit(LightningModule): ...
class NoOptimizer(LightningModule):
    def training_step(self, batch): ...
    def configure_optimizr(self): ...
class NoLoader(LightningDataModule):
    def test_dataloader(self): ...
class Forms(LightningModule):
    def __init__(
        self,
        pair: tuple[float, float] = (0.9, 0.99),
        words: list[str] | None = None,
        table: Optional[dict[str, int]] = None,
        either: list[int] | int = 3,
        mixed: list[int] | dict[str, int] | None = None,
        many: tuple[int, ...] = (),
        encoder: nn.Module | None = None,
    ): ...
class Plain: ...
def train(cfg): print(cfg)
class Data(LightningDataModule):
    def __init__(self, batch_size: int = 8): ...
"""

CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net, init_args: {width: 3}}
data: {class_path: nets.Data}
trainer: {accelerator: cpu, max_epochs: 1}
slurm: {nodes: 1, gpus_per_node: 2, time: "0:10:00"}
"""


@pytest.fixture
def project(taken, tmp_path: Path) -> Path:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "net.py").write_text("class Net(LightningModule): ...\n")
    return tmp_path


def refused(
    hpc, project: Path, words: list[str], code: int, message: str, fix: str, *, others: int = 0
) -> None:
    """That it is told with its fix, as the first of that many more."""
    before = _files(project)
    said = hpc(*words)
    assert said.code == code, said
    error, hint, *more = said.err.splitlines()
    assert len(more) == 2 * others, more
    assert error.startswith("error: ")
    assert message in error
    assert hint.startswith("  fix: ")
    assert fix in hint
    assert _files(project) == before


def _files(project: Path) -> list[Path]:
    """Of the project; what stands in for Slurm's commands notes that it was asked."""
    return sorted(it for it in project.rglob("*") if it.name != "asked")
