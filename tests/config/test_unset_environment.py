"""Variables of the user's own that no one sets: noted before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import told_of_script, write

HERE = "which is not set here: write env.variables.TIDE_DATA=VALUE behind the command"
READ = 'os.environ["TIDE_DATA"]'
MAIN = f"import os\ndef main():\n    root = {READ}\n    print(root)\nmain()\n"
NETS = """\
import os
import pytorch_lightning as pl
import torch
{}
class Net(pl.LightningModule):
    def training_step(self, batch, _): return self(batch)
    def configure_optimizers(self): return torch.optim.SGD(self.parameters())
class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
"""


def told(folder: Path, text: str, *words: str) -> tuple[tuple[str, str] | None, list[str]]:
    return told_of_script(folder, f"{text}print(1)\n", *words, about="which is not set here")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDE_DATA", raising=False)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (MAIN, 3),
        (f"import os\nroot = {READ}\n", 2),
        ("from os import environ\nroot = environ['TIDE_DATA']\n", 2),
        (f"import os\nroot = open({READ} + '/a')\nmore = {READ}\n", 2),
    ],
)
def test_one_that_it_surely_reads_is_noted_with_its_line(
    tmp_path: Path, text: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(tmp_path, text) == (None, [f"train.py:{line} reads TIDE_DATA, {HERE}"])
    assert told(tmp_path, text, "env.variables.TIDE_DATA=/data") == (None, [])
    assert told(tmp_path, text, "env.passthrough=[TIDE_DATA]") == (None, [])
    assert told(tmp_path, text, "env.modules=[tides]") == (None, [])
    assert told(tmp_path, text, "env.setup=[source tides.sh]") == (None, [])
    monkeypatch.setenv("TIDE_DATA", "")
    assert told(tmp_path, text) == (None, [])


def test_a_secret_is_told_with_env_passthrough(tmp_path: Path) -> None:
    (note,) = told(tmp_path, MAIN.replace("TIDE_DATA", "TIDE_API_KEY"))[1]
    assert "list it in env.passthrough: [TIDE_API_KEY], and set it in the shell" in note


def test_each_is_noted_once(tmp_path: Path) -> None:
    text = f"import os\na = {READ}\nb = os.environ['TIDE_YEAR']\nc = {READ}\n"
    notes = told(tmp_path, text)[1]
    assert [it.split(",")[0] for it in notes] == [
        "train.py:2 reads TIDE_DATA",
        "train.py:3 reads TIDE_YEAR",
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"import os\nos.environ['TIDE_DATA'] = '.'\nroot = {READ}\n",
        f"import os\nif 'TIDE_DATA' in os.environ:\n    pass\nroot = {READ}\n",
        f"import os\nos.environ.setdefault('TIDE_DATA', '.')\nroot = {READ}\n",
        f"import os\nif os.path.exists('a'):\n    root = {READ}\n",
        f"import os\ntry:\n    root = {READ}\nexcept KeyError:\n    root = '.'\n",
        f"import os\ndef never():\n    return {READ}\n",
        "import os\nroot = os.environ.get('TIDE_DATA', '.')\nmore = os.environ.get('TIDE_DATA')\n",
        f"import os\nfrom dotenv import load_dotenv\nload_dotenv()\nroot = {READ}\n",
        f"import os\nimport rootutils\nroot = {READ}\n",
        f"import os\nimport sets\nroot = {READ}\n",
        f"import os\nroot = {READ.replace('TIDE_DATA', 'TMPDIR')}\n",
        f"import os\nroot = {READ.replace('TIDE_DATA', 'LOCAL_RANK')}\n",
        f"import os\nroot = {READ.replace('TIDE_DATA', 'MASTER_PORT')}\n",
    ],
)
def test_one_that_may_be_set_or_not_read_is_nobodys_business(tmp_path: Path, text: str) -> None:
    write(tmp_path, "import os\nos.environ['TIDE_DATA'] = '.'\n", "sets.py")
    for package in ("dotenv", "rootutils"):
        write(tmp_path, "def load_dotenv(): ...\n", f"{package}.py")
    assert told(tmp_path, text) == (None, [])


def test_a_module_that_is_imported_reads_it_for_a_script_and_for_a_config(tmp_path: Path) -> None:
    write(tmp_path, f"import os\nROOT = {READ}\n", "places.py")
    assert told(tmp_path, "import places\n")[1] == [f"places.py:2 reads TIDE_DATA, {HERE}"]
    write(tmp_path, f"if __name__ == '__main__':\n    import os\n    print({READ})\n", "places.py")
    assert told(tmp_path, "import places\n")[1] == []
    names = "model: {class_path: nets.Net}\ndata: {class_path: nets.Data}\n"
    config = write(tmp_path, f"name: x\nglobal_batch_size: 8\n{names}")
    for text, noted in ((f"ROOT = {READ}", True), ("ROOT = 1", False)):
        write(tmp_path, NETS.format(text), "nets.py")
        notes = [it for it in api.load(config).notes if "TIDE_DATA" in it]
        assert notes == [f"nets.py:4 reads TIDE_DATA, {HERE}"] * noted
