"""A relative path that is not where the job begins is noted, but for what the class may make."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import MINIMAL, write

NETS = """\
import torch
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def __init__(self, weights_path=""):
        super().__init__()
        self.save_hyperparameters()
    def training_step(self, batch, batch_idx): return self(batch).sum()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
class Data(pl.LightningDataModule):
    def __init__(self, batch_size=4, path="", root="", files=(), name="", log_file="", of=None,
                 csv="", table="", labels_json="", out="", result_csv="", vocab=""):
        super().__init__()
    def train_dataloader(self): return [1]
"""


def notes(folder: Path, monkeypatch: pytest.MonkeyPatch, word: str, more: str = "") -> list[str]:
    monkeypatch.chdir(folder)
    write(folder, f"{NETS}{more}", "nets.py")
    loaded = api.load(write(folder, MINIMAL), word)
    return [it for it in loaded.notes if "relative paths" in it]


def said(folder: Path, key: str, text: str, fix: str) -> str:
    where = f"which is not in {folder}, from where the job takes relative paths"
    return f"{key} is {text}, {where}: {fix}"


WHOLE = "put it there, or write the whole path"


@pytest.mark.parametrize(
    ("key", "text", "fix"),
    [
        ("data.init_args.path", "data/x.pt", WHOLE),
        ("data.init_args.path", "x.csv.gz", WHOLE),
        ("data.init_args.root", "datas", "did you mean 'data'?"),
        ("data.init_args.root", "imgs", WHOLE),
        ("data.init_args.root", "./data/imgs", WHOLE),
        ("data.init_args.path", "../none/imgs", WHOLE),
        ("data.init_args.path", "data/imgs", WHOLE),
        ("data.init_args.path", "data/trian.pt", "did you mean 'data/train.pt'?"),
        ("data.init_args.path", "daata/train.pt", "did you mean 'data/train.pt'?"),
        ("data.init_args.path", "daata/trian.pt", "did you mean 'data/train.pt'?"),
        ("data.init_args.path", "Data/Train.pt", "did you mean 'data/train.pt'?"),
        ("data.init_args.path", "train.pt", "did you mean 'data/train.pt'?"),
        ("data.init_args.path", "daata/other.pt", WHOLE),
        ("data.init_args.path", "data/train2.pt", WHOLE),
        ("data.init_args.path", "data/train_1.pt", WHOLE),
        ("model.init_args.weights_path", "w.ckpt", WHOLE),
        ("data.init_args.csv", "houses.csv", "did you mean 'data/houses.csv'?"),
        ("data.init_args.csv", "./houses.csv", "did you mean 'data/houses.csv'?"),
        ("data.init_args.csv", "dta/houses.csv", "did you mean 'data/houses.csv'?"),
        ("data.init_args.table", "prices.parquet", WHOLE),
        ("data.init_args.labels_json", "labels.JSON", WHOLE),
        ("data.init_args.vocab", "vocab.txt.gz", WHOLE),
    ],
)
def test_what_is_not_there_is_noted_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, text: str, fix: str
) -> None:
    write(tmp_path, "", "data/train.pt")
    write(tmp_path, "", "data/houses.csv")
    (told,) = notes(tmp_path, monkeypatch, f"{key}={text}")
    assert told.endswith(said(tmp_path, key, text, fix))


def test_a_file_that_torch_loads_is_noted_by_its_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def load(table):\n    return torch.load(table)\n"
    (told,) = notes(tmp_path, monkeypatch, "data.init_args.table=x.pt", text)
    assert told.endswith(said(tmp_path, "data.init_args.table", "x.pt", WHOLE))


def test_each_of_a_list_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "", "a.csv")
    (told,) = notes(tmp_path, monkeypatch, "data.init_args.files=[a.csv, b.csv]")
    assert "data.init_args.files.1 is b.csv" in told


@pytest.mark.parametrize(
    "word",
    [
        "data.init_args.path=data/train.pt",
        "data.init_args.root=data",
        "data.init_args.root=.",
        "data.init_args.path=''",
        "data.init_args.path=google/bert",
        "data.init_args.path=mnist",
        "data.init_args.path=s3://bucket/x.pt",
        "data.init_args.path=data/*.pt",
        "data.init_args.name=x.pt",
        "data.init_args.log_file=x.log",
        "data.init_args.name=x.csv",
        "data.init_args.out=x.csv",
        "data.init_args.result_csv=x.csv",
        "data.init_args.table='*.csv'",
        "data.init_args.table=prices",
        "data.init_args.table=v1.2",
        "data.init_args.table=yolov8n.pt",
        "model.init_args.weights_path=''",
        "data.init_args.of={class_path: others.Set, init_args: {path: x.pt}}",
        "container.image=x.sif",
    ],
)
def test_what_is_there_or_may_be_no_path_is_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    write(tmp_path, "", "data/train.pt")
    write(tmp_path, "class Set:\n    def __init__(self, path): ...\n", "others.py")
    assert notes(tmp_path, monkeypatch, word) == []


@pytest.mark.parametrize(
    "more",
    [
        "MNIST('data', download=True)",
        "import os; os.makedirs('data', exist_ok=True)",
        "def prepare_data(self): ...",
        "if not Path('x').exists(): ...",
        "torch.save(1, 'x')",
        "here = Path(__file__).parent",
        "os.environ['DATA']",
    ],
)
def test_of_a_module_that_may_make_it_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    assert (
        notes(tmp_path, monkeypatch, "data.init_args.root=data", f"def made():\n    {more}\n") == []
    )


@pytest.mark.parametrize(
    "more",
    [
        "if not Path(path).exists(): raise FileNotFoundError(path)",
        "if not os.path.isfile(path):\n        raise ValueError('write another path')",
        "assert os.path.exists(path), 'download it first'",
    ],
)
def test_a_module_that_only_refuses_a_path_makes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    write(tmp_path, "", "data/train.pt")
    text = f"def checked(path):\n    {more}\n"
    (told,) = notes(tmp_path, monkeypatch, "data.init_args.path=data/trian.pt", text)
    assert told.endswith("did you mean 'data/train.pt'?")
    made = f"{text}    torch.save(1, path)\n"
    assert notes(tmp_path, monkeypatch, "data.init_args.path=data/trian.pt", made) == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os.path.join('/data', self.path)", "path: x.csv"),
        ("os.path.join('/data', self.hparams.csv)", "csv: x.csv"),
        ("f'/data/{csv}'", "csv: x.csv"),
        ("'/data/' + self.csv", "csv: x.csv"),
        ("Path('/data') / path", "path: x.csv"),
        ("[os.path.join('/data', it) for it in self.files]", "files: [x.csv]"),
        ("...", "path: x.csv, root: /tmp"),
        ("...", "files: [x.csv], root: data"),
    ],
)
def test_a_name_below_another_folder_is_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    write(tmp_path, "", "data/train.pt")
    text = f"def reads(self, path):\n    {code}\n"
    assert notes(tmp_path, monkeypatch, f"data.init_args={{{words}}}", text) == []
    monkeypatch.chdir(tmp_path)
    text = text.replace(code, "...")
    root = words.replace("data}", "data").replace("root: data", "root: imgs")
    told = notes(tmp_path, monkeypatch, f"data.init_args={{{root}}}", text)
    assert bool(told) is ("/tmp" not in words)


@pytest.mark.parametrize(
    ("file", "text", "there", "path"),
    [
        ("base.yaml", "../houses.csv", "houses.csv", "houses.csv"),
        ("base.yaml", "../data/houses.csv", "data/houses.csv", "data/houses.csv"),
        ("base.yaml", "houses.csv", "configs/houses.csv", "configs/houses.csv"),
        ("base.yaml", "../none/../data/x.csv", "data/x.csv", "data/x.csv"),
        ("big/base.yaml", "../../data/houses.csv", "data/houses.csv", "data/houses.csv"),
        ("big/base.yaml", "d/x.csv", "configs/big/d/x.csv", "configs/big/d/x.csv"),
    ],
)
def test_a_path_from_the_folder_of_its_config_is_told_as_it_begins_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, there: str, path: str
) -> None:
    """`../data/x.csv` was told with a whole path, and `../x.csv` by way of the folder above."""
    project = tmp_path / "project"
    write(project, "", there)
    write(project, NETS, "nets.py")
    monkeypatch.chdir(project)
    given = f"{{class_path: nets.Data, init_args: {{csv: {text}}}}}"
    write(project, MINIMAL.replace("{class_path: nets.Data}", given), f"configs/{file}")
    write(project, f"base: {file}\n", "configs/cfg.yaml")
    loaded = api.load("configs/cfg.yaml")
    (told,) = [it for it in loaded.notes if "relative paths" in it]
    assert told.endswith(said(project, "data.init_args.csv", text, f"write {path}"))
    assert told.startswith(f"configs/{file}:4: ")
    typed = api.load("configs/cfg.yaml", f"data.init_args.csv={path}").notes
    assert not [it for it in typed if "relative paths" in it]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("../data/houses.csv", "did you mean 'data/houses.csv'?"),
        ("../../data/houses.csv", "did you mean 'data/houses.csv'?"),
        ("above.csv", "did you mean '../above.csv'?"),
        ("../none.csv", WHOLE),
    ],
)
def test_a_path_that_is_typed_from_another_folder_of_the_project_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, fix: str
) -> None:
    write(tmp_path, "", "project/data/houses.csv")
    write(tmp_path, "", "above.csv")
    (told,) = notes(tmp_path / "project", monkeypatch, f"data.init_args.csv={text}")
    assert told.endswith(f"relative paths: {fix}")
