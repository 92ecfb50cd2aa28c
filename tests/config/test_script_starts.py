"""A script that surely starts nothing is refused with what is missing; one that may is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

NETS = """\
import torch
from pytorch_lightning import LightningModule

class Net(LightningModule):
    layer = torch.nn.Linear(1, 1)
"""
HEAD = """\
import argparse
import torch
from pytorch_lightning import Trainer, seed_everything
from nets import Net

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
"""
MAIN = """\
def main():
    args = parser.parse_args()
    Trainer(max_epochs=2).fit(Net(args.lr))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, NETS, "nets.py")
    return tmp_path


def said_of(folder: Path, text: str, name: str = "train.py") -> str:
    """The refusal, in one line; empty where the script is taken."""
    write(folder, text, name)
    try:
        api.load(name)
    except ConfigError as error:
        return f"{error.message.removeprefix(f'{name}: script.path: ')} -> {error.hint}"
    return ""


TWO_LINES = 'write two lines at its end: if __name__ == "__main__": and, indented below it, '


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        (HEAD + MAIN, 8, f"{TWO_LINES}main()"),
        (f"{HEAD}seed_everything(1)\ntorch.set_num_threads(2)\n{MAIN}", 10, f"{TWO_LINES}main()"),
        (HEAD + MAIN.replace("main()", "main(args, n=1)"), 8, f"{TWO_LINES}main(...)"),
        (HEAD + MAIN.replace("main()", "main(argv=None)"), 8, f"{TWO_LINES}main()"),
        (
            f"{HEAD}{MAIN}if __name__ == '__main__':\n    main\n",
            8,
            "line 12 names it and does not call it: write main()",
        ),
        (f"{HEAD}{MAIN}main\n", 8, "line 11 names it and does not call it: write main()"),
        (
            f"{HEAD}{MAIN}if __name__ == '__main__':\n    args = parser.parse_args()\n",
            8,
            "write main() at the end of the block in line 11",
        ),
        (
            f"import hydra\n{HEAD}@hydra.main()\n{MAIN.replace('main()', 'main(c)')}",
            10,
            f"{TWO_LINES}main()",
        ),
        (f"{HEAD}def fit(n):\n    Trainer().fit(n)\n{MAIN}", 10, f"{TWO_LINES}main()"),
        (f"import nets\n{MAIN}class It: ...\n", 2, f"{TWO_LINES}main()"),
    ],
)
def test_a_main_that_nothing_calls_is_told_with_what_to_write(
    folder: Path, text: str, line: int, hint: str
) -> None:
    assert said_of(folder, text) == (
        f"train.py defines main (line {line}), and nothing calls it, so nothing would be trained"
        f" -> {hint}"
    )


@pytest.mark.parametrize(
    "more",
    [
        "main()\n",
        "if __name__ == '__main__':\n    main()\n",
        "if __name__ == '__main__':\n    import sys\n    sys.exit(main())\n",
        "for n in range(3):\n    main()\n",
        "run = main\nrun()\n",
        "globals()['main']()\n",
        "start(main)\n",
        "import fire\nfire.Fire(main)\n",
        "Net().start()\n",
        "import trains\n",
        "from package import it\n",
        "try:\n    main()\nexcept KeyboardInterrupt:\n    pass\n",
        "with torch.no_grad():\n    main()\n",
        "print('a script of its own')\n",
        "assert main() is None\n",
        "class It:\n    done = main()\n",
        "class It(metaclass=Runs): ...\n",
        "@ex.automain\ndef go(): main()\n",
        "exec('main()')\n",
        "raise SystemExit(main())\n",
        "[main() for _ in range(2)]\n",
    ],
)
def test_a_script_that_may_start_something_is_taken(folder: Path, more: str) -> None:
    write(folder, "from helpers import go\ngo()\n", "trains.py")
    write(folder, "def go(): ...\n", "helpers.py")
    write(folder, "import helpers\nhelpers.go()\n", "package/__init__.py")
    write(folder, "it = 1\n", "package/it.py")
    write(folder, "", "fire.py")
    assert said_of(folder, HEAD + MAIN + more) == ""


def test_a_main_that_is_called_from_a_module_is_taken(folder: Path) -> None:
    write(folder, "import train\ntrain.main()\n", "start.py")
    assert said_of(folder, f"{HEAD}{MAIN}import start\n") == ""


def test_where_no_step_is_wanted_nothing_is_said(folder: Path) -> None:
    write(folder, HEAD + MAIN, "train.py")
    api.load("train.py", "script.may_take_no_steps=true")


RECORD = "from dataclasses import dataclass\n\n@dataclass\nclass Config:\n    lr: float = 0.1\n"
YAML = "and a config is a YAML file -> write a YAML file with name: my-run, model: {class_path:"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("config.py", RECORD, "only defines Config, which holds values"),
        ("mine.py", f"{RECORD}\nconfig = Config(lr=1)\n", "only defines Config, which holds val"),
        ("mine.py", f"from nets import Net\n{RECORD}    net = Net\n", "only defines Config, which"),
        ("mine.py", "class C:\n    lr = 0.1\n", "only defines C, which holds values"),
        ("mine.py", "import torch\nlr, opt = 0.1, torch.optim.SGD\n", "only assigns values"),
        ("config.py", "def get_config():\n    return dict(lr=1)\n", "trains nothing"),
    ],
)
def test_a_config_in_python_is_told_what_a_config_is(
    folder: Path, name: str, text: str, said: str
) -> None:
    told = said_of(folder, text, name)
    assert told.startswith(f"{name} {said}")
    assert YAML in told


def test_a_module_of_classes_is_told_apart_from_a_config(folder: Path) -> None:
    said = "defines classes and functions, and starts none of them -> call what trains at its end"
    for name, text in (("nets.py", NETS), ("data.py", f"{NETS}\ndef make(): return Net()\n")):
        assert said in said_of(folder, text, name)


MAKES = "if __name__ == '__main__':\n    args = parser.parse_args()\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{MAKES}    trainer = Trainer(max_epochs=2)\n    model = Net(args.lr)\n", 10),
        ("trainer = Trainer(max_epochs=2)\n# trainer.fit(Net())\n", 8),
        ("Trainer()\n", 8),
        ("t = Trainer(logger=Log('x'))\nprint(t.num_devices, Net())\n", 8),
        ("a = Trainer()\nb = Trainer()\n", 8),
    ],
)
def test_a_trainer_that_nothing_is_asked_of_is_refused(folder: Path, text: str, line: int) -> None:
    said = f"train.py:{line} makes a Trainer, and nothing calls its fit, test, validate or predict"
    fix = "write trainer.fit(model, data) at its end; if that is right:"
    assert said_of(folder, HEAD + text) == (
        f"{said}, so nothing would be trained -> {fix} script.may_take_no_steps=true"
    )
    write(folder, HEAD + text, "train.py")
    api.load("train.py", "script.may_take_no_steps=true")


@pytest.mark.parametrize(
    "text",
    [
        "trainer = Trainer()\ntrainer.fit(Net())\n",
        "Trainer().fit(Net())\n",
        "trainer = Trainer()\nrun(trainer, Net())\n",
        "trainer = Trainer()\nTask(trainer)\n",
        "trainer = Trainer()\nnets.train()\n",
        "def go():\n    trainer.fit(Net())\ntrainer = Trainer()\ngo()\n",
        "def go(t):\n    return t\ntrainer = Trainer()\ngo(1)\n",
        "trainer = Trainer()\nfor _ in range(2):\n    Net()(torch.ones(1)).sum().backward()\n",
        "trainer = Trainer()\ndo = trainer.fit\ndo(Net())\n",
        "trainer = Trainer()\ntrainer.tuner.lr_find(Net())\n",
        "class It:\n    def go(self): trainer.fit(Net())\ntrainer = Trainer()\nIt().go()\n",
        "def make():\n    return Trainer()\ntrainer = make()\n",
        "trainer = Trainer()\nimport trains\n",
        "from lightning.pytorch.cli import LightningCLI\nTrainer()\nLightningCLI(Net, run=True)\n",
        "trainer = Trainer()\n[it.fit(Net()) for it in [trainer]]\n",
        "trainer = other = Trainer()\nother.fit(Net())\n",
    ],
)
def test_a_trainer_of_which_something_may_be_asked_is_taken(folder: Path, text: str) -> None:
    write(folder, "from helpers import go\ngo()\n", "trains.py")
    write(folder, "def go(): ...\n", "helpers.py")
    assert said_of(folder, HEAD + text) == ""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import torch\nimport no_such_root\nno_such_root.setup(pythonpath=True)\nimport src.x", 2),
        ("import no_such_root, sys\nsys.path.append('..')\nimport src.x", 1),
        ("import sys\nsys.path.append('..')\nimport no_such_root", 0),
        ("import nets\nimport no_such_root\nimport sys\nsys.path.append('..')", 2),
        ("import elsewhere\nimport no_such_root\nimport sys\nsys.path.append('..')", 0),
        ("# sys.path is set elsewhere\nimport no_such_root", 0),
        (
            (
                "try:\n    import no_such_root\nexcept ImportError:\n    pass\n"
                "import os; os.chdir('a')"
            ),
            0,
        ),
    ],
)
def test_a_package_that_is_imported_before_the_path_changes_is_refused(
    folder: Path, text: str, line: int
) -> None:
    write(folder, "import sys\nsys.path.append('lib')\n", "elsewhere.py")
    said = said_of(folder, f"{text}\nprint(1)\n")
    told = f"train.py:{line}: imports 'no_such_root', which is not installed"
    assert told in said if line else said == ""
