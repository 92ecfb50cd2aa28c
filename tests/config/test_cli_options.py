"""An option of LightningCLI that no class of the script takes is told before the queue."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.scripts.cli_options import unknown_cli_option
from hpc_train.errors import ConfigError

HEAD = "from lightning.pytorch.cli import LightningCLI\n"
NETS = """\
import lightning as L
class Net(L.LightningModule):
    def __init__(self, lr=0.1, width=3, cell=None): super().__init__()
    def training_step(self, batch, index): ...
    def configure_optimizers(self): ...
class Child(Net): ...
class Open(L.LightningModule):
    def __init__(self, lr=0.1, **more): super().__init__()
class Data(L.LightningDataModule):
    def __init__(self, batch_size=4): super().__init__()
"""
SCRIPT = f"{HEAD}from nets import Child, Data, Net, Open\nimport nets\n"
TAKES = "it takes lr, width, cell"
OF_DATA = "nets.Data takes no batch_sizes"
NEAR = "did you mean '--trainer.max_epochs' or '--trainer.min_epochs'?"
OF_TRAINER = "Lightning's Trainer takes no max_epoch"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "nets.py").write_text(NETS)
    return tmp_path


def told(folder: Path, line: str, *arguments: str) -> str:
    file = folder / "train.py"
    file.write_text(f"{SCRIPT}{line}\n")
    found = unknown_cli_option(ast.parse(file.read_text()), arguments, file, sys.path, folder)
    return " -> ".join(found) if found else ""


@pytest.mark.parametrize(
    ("line", "words", "said"),
    [
        (
            "LightningCLI(Net, Data)",
            ["--model.learning_rate", "0.1"],
            f"--model.learning_rate: nets.Net takes no learning_rate -> {TAKES}",
        ),
        (
            "LightningCLI(Net, Data)",
            ["--model.lr=1", "--model.widht=4"],
            "--model.widht: nets.Net takes no widht -> did you mean '--model.width'?",
        ),
        (
            "LightningCLI(model_class=Child, datamodule_class=Data)",
            ["--data.size", "4"],
            "--data.size: nets.Data takes no size -> it takes batch_size",
        ),
        (
            "if __name__ == '__main__':\n    cli = LightningCLI(Net, Data)",
            ["--trainer.max_epoch", "3"],
            f"--trainer.max_epoch: {OF_TRAINER} -> {NEAR}",
        ),
        (
            "class Own(Net):\n    def __init__(self, depth=2): ...\nLightningCLI(Own)",
            ["--model.lr", "1"],
            "--model.lr: Own takes no lr -> it takes depth",
        ),
        (
            "LightningCLI(Child)",
            ["--model.rate", "1"],
            f"--model.rate: nets.Child takes no rate -> {TAKES}",
        ),
    ],
)
def test_an_option_that_no_class_takes(
    folder: Path, line: str, words: list[str], said: str
) -> None:
    assert told(folder, line, "fit", *words) == said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("LightningCLI(Net, Data)", ["--model.lr", "1", "--model.cell.size=3", "--model.help"]),
        ("LightningCLI(Net, Data)", ["--data.batch_size=4", "--trainer.max_epochs", "3"]),
        ("LightningCLI(Net)", ["--optimizer.lr", "1", "--seed_everything", "1", "--config=a.yaml"]),
        ("LightningCLI(Net)", ["--trainer.callbacks+=EarlyStopping", "--trainer.logger.name=x"]),
        ("LightningCLI(Net)", ["--trainer.callbacks.patience=3", "--data.x=1", "--data=Data"]),
        ("LightningCLI(Open)", ["--model.rate", "1"]),
        ("LightningCLI(nets.Net)", ["--model.rate", "1"]),
        ("LightningCLI()", ["--model.rate", "1"]),
        ("LightningCLI(Net, subclass_mode_model=True)", ["--model.init_args.rate", "1"]),
        ("LightningCLI(Net, **more())", ["--model.rate", "1"]),
        ("LightningCLI(Net, args=['fit'])", ["--model.rate", "1"]),
        ("class Mine(LightningCLI): ...\nMine(Net)", ["--model.rate", "1"]),
        ("import sys\nsys.argv.pop()\nLightningCLI(Net)", ["--model.rate", "1"]),
        ("if ready():\n    LightningCLI(Net)", ["--model.rate", "1"]),
        ("LightningCLI(Net)\nLightningCLI(Child)", ["--model.rate", "1"]),
    ],
)
def test_what_a_class_takes_or_the_text_does_not_tell(
    folder: Path, line: str, words: list[str]
) -> None:
    assert told(folder, line, "fit", *words) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "model:\n  learning_rate: 0.1\n",
            f"c.yaml: model.learning_rate: nets.Net takes no learning_rate -> {TAKES}",
        ),
        (
            "fit:\n  model: {lr: 1}\n  data: {batch_sizes: 4}\n",
            f"c.yaml: data.batch_sizes: {OF_DATA} -> did you mean 'data.batch_size'?",
        ),
        ("model: {lr: 1}\ntrainer: {max_epochs: 1}\nseed_everything: 1\n", ""),
        ("model: {class_path: nets.Net, init_args: {rate: 1}}\n", ""),
        ("model: nets.Net\n", ""),
        ("- 1\n", ""),
        ("model: [\n", ""),
    ],
)
def test_a_key_of_its_config_file_that_no_class_takes(folder: Path, text: str, said: str) -> None:
    """jsonargparse told it in the job, without the file."""
    (folder / "c.yaml").write_text(text)
    assert told(folder, "LightningCLI(Net, Data)", "fit", "--config", "c.yaml") == said
    assert told(folder, "LightningCLI(Net, Data)", "fit", "--config=c.yaml") == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model.lr=0.1"], "write --model.lr=0.1"),
        (["--model.width", "3", "trainer.max_epochs=3"], "write --trainer.max_epochs=3"),
        (["--trainer.logger", "model.lr=0.1"], ""),
        (["--model.lr=1", "x=1"], ""),
    ],
)
def test_an_option_without_dashes(folder: Path, words: list[str], said: str) -> None:
    assert told(folder, "LightningCLI(Net, Data)", "fit", *words).rpartition(" -> ")[2] == said


def test_it_is_refused_at_submission(folder: Path) -> None:
    (folder / "train.py").write_text(f"{SCRIPT}LightningCLI(Net, Data)\n")
    with pytest.raises(ConfigError) as caught:
        api.load("train.py", arguments=["fit", "--model.learning_rate", "0.1"])
    assert caught.value.message == (
        "command line: script.args: train.py refuses --model.learning_rate:"
        " nets.Net takes no learning_rate"
    )
    assert caught.value.hint == TAKES
    api.load("train.py", arguments=["fit", "--model.lr", "0.1"])
