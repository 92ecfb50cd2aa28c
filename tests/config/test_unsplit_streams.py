"""A stream that each of several ranks surely reads whole is noted, with the lines to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import MINIMAL, write

NETS = """\
import torch
import pytorch_lightning as pl
from torch.utils.data import DataLoader, IterableDataset
class Stream(IterableDataset):
    def __iter__(self):
        for line in open("x.csv"):
            yield torch.tensor(float(line.split(",")[0]))
class Data(pl.LightningDataModule):
    def __init__(self, batch_size=4):
        super().__init__()
        self.batch_size = batch_size
    def train_dataloader(self):
        return DataLoader(Stream(), self.batch_size)
class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        self.log("loss", batch.sum(), rank_zero_only=True)
        return self(batch).sum()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
"""
TWO = "slurm: {gpus_per_node: 2}\n"
RETURN = "        return DataLoader(Stream(), self.batch_size)\n"


def notes(
    folder: Path, patch: pytest.MonkeyPatch, new: dict[str, str] | None = None, more: str = TWO
) -> list[str]:
    text = NETS
    for old, wanted in (new or {}).items():
        assert old in text
        text = text.replace(old, wanted, 1)
    patch.chdir(folder)
    write(folder, text, "nets.py")
    loaded = api.load(write(folder, MINIMAL + more))
    return [it for it in loaded.notes if "all of its samples" in it]


def test_the_class_is_named_with_its_line_and_the_lines_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (told,) = notes(tmp_path, monkeypatch)
    assert told == (
        "nets.py:5 nets.Stream gives each of 2 ranks all of its samples: an epoch is 2 times the"
        " same; rename its __iter__ to samples, and write below it def __iter__(self): return"
        " itertools.islice(self.samples(), self.rank, None, self.world_size) (import itertools);"
        " in train_dataloader (nets.py:12) stream = Stream(); stream.rank, stream.world_size ="
        " self.trainer.global_rank, self.trainer.world_size; return DataLoader(stream,"
        " self.batch_size)"
    )


SETUP = "    def setup(self, stage):\n        self.train = Stream()\n"
RANKS = "{0}.rank, {0}.world_size = self.trainer.global_rank, self.trainer.world_size"


@pytest.mark.parametrize(
    ("new", "more", "words"),
    [
        (
            {RETURN: "        data = Stream()\n        return DataLoader(dataset=data)\n"},
            TWO,
            f"{RANKS.format('data')} in front of its return",
        ),
        (
            {
                RETURN: "        return DataLoader(self.train, 4)\n",
                "    def train_d": f"{SETUP}    def train_d",
            },
            TWO,
            f"{RANKS.format('self.train')} in front of its return",
        ),
        (
            {"DataLoader(Stream(), self.batch_size)": "DataLoader(Stream(), 4, num_workers=2)"},
            TWO,
            "each worker its own part too: Iterable sets in docs/resuming.md",
        ),
        ({"def __iter__": "samples = 3\n    def __iter__"}, TWO, "rename its __iter__ to all_samp"),
        (
            {
                "class Data(": "class Other(Stream): ...\nclass Data(",
                "DataLoader(S": "DataLoader(S",
            },
            TWO,
            "",
        ),
        ({}, "slurm: {nodes: 3}\ntrainer: {strategy: ddp}\n", "each of 3 ranks all"),
    ],
)
def test_other_forms_are_told_as_well(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    new: dict[str, str],
    more: str,
    words: str,
) -> None:
    (told,) = notes(tmp_path, monkeypatch, new, more)
    assert words in told


STRATEGY = "trainer: {strategy: {class_path: pytorch_lightning.strategies.DDPStrategy}}\n"
MORE = "import torch\nfrom others import made\n"
LINE = 'for line in open("x.csv"):'


@pytest.mark.parametrize(
    ("new", "more"),
    [
        ({}, ""),
        ({}, f"{TWO}{STRATEGY}"),
        ({LINE: "for line in itertools.islice(open('x.csv'), self.first, None, 2):"}, TWO),
        ({LINE: "for line in open(f'x{torch.distributed.get_rank()}.csv'):"}, TWO),
        ({LINE: "for line in split(open('x.csv')):"}, TWO),
        ({LINE: "for line in open('x.csv') if torch.utils.data.get_worker_info() else ():"}, TWO),
        ({LINE: "for line in open(os.environ['FILE']):"}, TWO),
        ({"Stream()": "Stream(self.trainer.local_rank)"}, TWO),
        ({"Stream()": "Stream(shard=True)"}, TWO),
        ({LINE: f"{LINE}  # of this rank"}, ""),
        ({"Stream()": "made()", "import torch\n": MORE}, TWO),
        ({RETURN: "        return made(DataLoader(Stream()))\n", "import torch\n": MORE}, TWO),
        ({"import torch\n": "import torch\nfrom parts import own\n"}, TWO),
    ],
)
def test_what_may_share_its_samples_is_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str], more: str
) -> None:
    write(tmp_path, "def own(it, world_size): ...\n", "parts.py")
    write(tmp_path, "def made(it=None): return it\n", "others.py")
    assert notes(tmp_path, monkeypatch, new, more) == []


ONE = "slurm: {gpus_per_node: 1}\n"


@pytest.mark.parametrize("workers", [2, 5])
def test_workers_that_each_read_all_are_noted_for_one_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    loader = f"        return DataLoader(Stream(), self.batch_size, num_workers={workers})\n"
    (told,) = notes(tmp_path, monkeypatch, {RETURN: loader}, ONE)
    assert told == (
        f"nets.py:5 nets.Stream gives each of {workers} workers all of its samples: an epoch is"
        f" {workers} times the same; rename its __iter__ to samples, and write below it def"
        " __iter__(self): info = torch.utils.data.get_worker_info(); return"
        " itertools.islice(self.samples(), info.id, None, info.num_workers) (import itertools)"
    )


@pytest.mark.parametrize(
    "given", ["", ", num_workers=0", ", num_workers=1", ", num_workers=self.n"]
)
def test_one_worker_shares_with_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    loader = f"        return DataLoader(Stream(), self.batch_size{given})\n"
    assert notes(tmp_path, monkeypatch, {RETURN: loader}, ONE) == []


def test_workers_that_are_told_apart_are_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = "        return DataLoader(Stream(), self.batch_size, num_workers=2)\n"
    head = "        info = torch.utils.data.get_worker_info()\n        for line in"
    new = {RETURN: loader, "        for line in": head}
    assert notes(tmp_path, monkeypatch, new, ONE) == []
