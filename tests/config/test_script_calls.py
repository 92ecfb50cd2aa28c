"""What a script's text shows to fail, or to do nothing, is refused before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.scripts import script_calls
from hpc_train.errors import ConfigError
from tests.config.files import write
from tests.config.test_script_starts import folder, said_of

__all__ = ["folder"]

HEAD = "import pytorch_lightning as pl\nfrom nets import Net\n"
DATA = "class Data(pl.LightningDataModule): ...\n"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("pl.Trainer().fit(Net, Data)", "train.py:4 gives fit the class Net, and no object of it"),
        ("pl.Trainer().fit(Net(), datamodule=Data)", "train.py:4 gives fit the class Data"),
        ("t = pl.Trainer()\nt.test(model=Net)", "train.py:5 gives test the class Net"),
        ("pl.Trainer().fit(Net(), Data())", ""),
        ("pl.Trainer().fit(Net())", ""),
        ("t = mine()\nt.fit(Net, Data)", ""),
        ("Net = Net()\npl.Trainer().fit(Net)", ""),
        ("t = pl.Trainer()\nt = mine(t)\nt.fit(Net)", ""),
        ("def go(Net):\n    pl.Trainer().fit(Net)\ngo(Net())", ""),
        ("if len(DATA):\n    pl.Trainer().fit(Net)\npl.Trainer().fit(Net())", ""),
    ],
)
def test_a_class_in_the_place_of_an_object_is_told(folder: Path, call: str, said: str) -> None:
    text = said_of(folder, f"{HEAD}{DATA}{call}\n")
    assert text.startswith(said) if said else text == ""
    assert not said or text.endswith("(...) there")


@pytest.mark.parametrize("word", ["main", "_main_", "__Main__"])
def test_a_guard_that_is_never_true_is_told(folder: Path, word: str) -> None:
    text = f"{HEAD}if __name__ == '{word}':\n    pl.Trainer().fit(Net())\n"
    assert said_of(folder, text) == (
        f"train.py:3 compares __name__ with '{word}', which it never is, so nothing would be"
        ' trained -> write if __name__ == "__main__":'
    )
    quoted = text.replace("__name__", "'__name__'").replace(word, "__main__")
    assert said_of(folder, quoted).startswith(
        "train.py:3 compares the text '__name__' with '__main__', which it never is, so nothing"
    )
    assert said_of(folder, text.replace(word, "__main__")) == ""
    assert said_of(folder, f"{text}else:\n    pl.Trainer().fit(Net())\n") == ""
    assert said_of(folder, f"{text}pl.Trainer().fit(Net())\n") == ""


def test_a_cli_without_its_parser_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from pytorch_lightning.cli import LightningCLI\nfrom nets import Net\n"
    text += "if __name__ == '__main__':\n    LightningCLI(Net)\n"
    monkeypatch.setattr(script_calls, "_CLI_NEEDS", "no_such_parser")
    assert said_of(folder, text) == (
        "train.py:4 needs jsonargparse for LightningCLI, and it is not installed"
        " -> pip install 'jsonargparse[signatures]'"
    )
    write(folder, "", "no_such_parser.py")
    assert said_of(folder, text.replace("(Net)", "(Net, run=False)")) == ""


OF_CLI = "from lightning.pytorch.cli import LightningCLI\nfrom nets import Net\n"


def test_a_cli_without_its_command_is_told(folder: Path) -> None:
    """It was told by jsonargparse in the rank."""
    said = "calls LightningCLI, which wants a command: fit, validate, test or predict"
    fix = "write as the first word behind --: fit"
    for number, text in (
        (3, "LightningCLI(Net)"),
        (
            4,
            "if __name__ == '__main__':\n    LightningCLI(Net, trainer_defaults={'max_epochs': 1})",
        ),
        (4, "def main():\n    cli = LightningCLI(Net)\nmain()"),
    ):
        assert said_of(folder, f"{OF_CLI}{text}\n") == f"train.py:{number} {said} -> {fix}"
    with pytest.raises(ConfigError, match="wants a command"):
        api.load("train.py", arguments=["--model.lr", "0.1"])
    write(folder, "fit: {}\n", "a.yaml")  # which names the command
    for arguments in (["fit"], ["--config", "a.yaml"], ["--trainer.max_epochs", "1", "test"]):
        api.load("train.py", arguments=arguments)
    config = write(folder, "name: x\nscript: {path: train.py, args: [--model.lr, 0.1]}\n")
    with pytest.raises(ConfigError) as caught:
        api.load(config)
    assert caught.value.hint == "write script.args: [fit, --model.lr, 0.1]"


@pytest.mark.parametrize(
    "text",
    [
        "LightningCLI(Net, run=False)",
        "LightningCLI(Net, args=['fit'])",
        "LightningCLI(Net, parser_kwargs={'default_config_files': ['a.yaml']})",
        "LightningCLI(Net, **more())",
        "class Mine(LightningCLI): ...\nMine(Net)",
        "import sys\nsys.argv.append('fit')\nLightningCLI(Net)",
        "if ready():\n    LightningCLI(Net)",
        "def main():\n    LightningCLI(Net)\nprint(1)",
        "def main():\n    if ready():\n        return\n    LightningCLI(Net)\nmain()",
        "try:\n    LightningCLI(Net)\nfinally:\n    print(1)",
        "with mock.patch('sys.argv', ['a', 'fit']):\n    LightningCLI(Net)",
    ],
)
def test_a_cli_that_may_have_its_command_is_taken(folder: Path, text: str) -> None:
    assert "wants a command" not in said_of(folder, f"{OF_CLI}{text}\n")
