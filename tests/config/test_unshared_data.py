"""Scripts whose ranks average their gradients, and each take all of the samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import write

DDP = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
dist.init_process_group("gloo")
local_rank = int(os.environ["LOCAL_RANK"])
data = TensorDataset(torch.ones(64, 8))
net = DistributedDataParallel(torch.nn.Linear(8, 1))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
val = DataLoader(data)
train = DataLoader(data, batch_size=16, shuffle=True)
for (x,) in train:
    loss = net(x).sum()
    loss.backward()
    sgd.step()
    if dist.get_rank() == 0:
        print(f"rank {local_rank}", loss.item())
"""
FABRIC = """\
import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader
fabric = Fabric()
fabric.launch()
net = torch.nn.Linear(8, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
net, sgd = fabric.setup(net, sgd)
batches = DataLoader(torch.ones(64, 8), batch_size=16)
for x in batches:
    fabric.backward(net(x).sum())
    sgd.step()
"""
SAME = "of the samples: an epoch is 2 times the same"


def noted(folder: Path, text: str, *words: str, gpus: int = 2) -> list[str]:
    write(folder, text, "train.py")
    return [it for it in api.load("train.py", *words, gpus=gpus).notes if "of the samples" in it]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_ranks_that_each_take_all_are_noted_with_the_lines_to_write(tmp_path: Path) -> None:
    assert noted(tmp_path, DDP) == [
        (
            f"train.py:12 gives each of 2 ranks all {SAME}; write sampler ="
            " DistributedSampler(data, shuffle=True), from torch.utils.data, and"
            " DataLoader(data, batch_size=16, sampler=sampler), and sampler.set_epoch(epoch) in"
            " front of each epoch"
        )
    ]
    plain = DDP.replace(", shuffle=True", "").replace("train = D", "batches = D")
    (said,) = noted(tmp_path, plain.replace("in train:", "in batches:"))
    assert said.startswith("train.py:11 gives")
    assert said.endswith(
        "shuffle=False), from torch.utils.data, and DataLoader(data, sampler=sampler)"
    )
    assert noted(tmp_path, FABRIC) == [
        (
            f"train.py:9 gives each of 2 ranks all {SAME}; write batches ="
            " fabric.setup_dataloaders(batches) behind it"
        )
    ]
    assert "gives each of 3 ranks" in noted(tmp_path, DDP, gpus=3)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shuffle=True", "sampler=torch.utils.data.DistributedSampler(data)"),
        ("torch.ones(64, 8)", "torch.ones(64, 8)[dist.get_rank() :: 2]"),
        ("torch.ones(64, 8)", "torch.ones(64, 8)[local_rank :: 2]"),
        ("data = T", "torch.manual_seed(local_rank)\ndata = T"),
        ("data = T", "torch.manual_seed(1 + local_rank)\ndata = T"),
        ("data = T", "def of(it): return it\nof(local_rank)\ndata = T"),
        ("data = T", "world = dist.get_world_size()\ndata = T"),
        ("import os", "import os\nfrom pytorch_lightning import Trainer"),
        ("DataLoader(data", "Loader(data"),
        ("import os", "import os\nclass Mine(torch.utils.data.IterableDataset): ..."),
    ],
)
def test_ranks_that_may_share_are_said_nothing_of(tmp_path: Path, old: str, new: str) -> None:
    assert noted(tmp_path, DDP.replace(old, new)) == []


def test_one_rank_and_a_script_that_starts_its_own_are_said_nothing_of(tmp_path: Path) -> None:
    assert noted(tmp_path, DDP, gpus=1) == []
    assert noted(tmp_path, DDP, "script.launcher=none") == []
    shared = FABRIC.replace(
        "for x in batches", "batches = fabric.setup_dataloaders(batches)\nfor x in batches"
    )
    assert noted(tmp_path, shared) == []


SAMPLER = "from torch.utils.data.distributed import DistributedSampler"


@pytest.mark.parametrize(
    "line",
    [
        SAMPLER,
        f"{SAMPLER} as Sampler",
        "from torch.utils.data import DistributedSampler, TensorDataset",
        "import helper",
    ],
)
def test_a_sampler_that_is_imported_and_not_used_shares_nothing(tmp_path: Path, line: str) -> None:
    write(tmp_path, f"{SAMPLER}\n", "helper.py")
    assert len(noted(tmp_path, f"{line}\n{DDP}")) == 1


@pytest.mark.parametrize(
    ("line", "sampler"),
    [
        (SAMPLER, "DistributedSampler(data)"),
        (f"{SAMPLER} as Shares", "Shares(data)"),
        ("import helper", "helper.DistributedSampler(data)"),
        ("import torch.utils.data.distributed as D", "D.DistributedSampler(data)"),
    ],
)
def test_one_that_is_used_shares_them(tmp_path: Path, line: str, sampler: str) -> None:
    write(tmp_path, f"{SAMPLER}\n", "helper.py")
    shared = DDP.replace("batch_size=16, shuffle=True", f"batch_size=16, sampler={sampler}")
    assert noted(tmp_path, f"{line}\n{shared}") == []


NET = """\
class Net(torch.nn.Module):
    def __init__(self, stride=2):
        super().__init__()
        self.stride = stride
        self.conv = torch.nn.Conv2d(1, 1, 3, stride=stride)
    def forward(self, x):
        return self.conv(x).chunk(2, 1)
def block(width, stride=1):
    return torch.nn.Conv2d(width, width, 3, stride=stride)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("data = T", f"{NET}data = T"),
        ("data = T", "conv = torch.nn.Conv2d(1, 1, 3, stride=2)\ndata = T"),
        ("data = T", "sizes = '8,8'.split(',')\nwords = 'a b'.split()\ndata = T"),
        ("data = T", "dict(split='train')\ndata = T"),
        ("val = ", "data, rest = torch.utils.data.random_split(data, [32, 32])\nval = "),
        ("val = ", "def prepare_data(it): return it\ndata = prepare_data(data)\nval = "),
    ],
)
def test_words_of_layers_and_of_texts_share_nothing(tmp_path: Path, old: str, new: str) -> None:
    assert len(noted(tmp_path, DDP.replace(old, new))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "data = torch.ones(64, 8).chunk(2)[0]",
        "data = torch.ones(64, 8).split(32)[0]",
        "data = torch.ones(64, 8)[0 : 64 : stride]",
        "data = load(split='train[:50%]')",
        "data = load(stride=2)",
        "number = dist.get_rank(); data = torch.utils.data.random_split(d, [1, 1])[number]",
    ],
)
def test_the_same_words_of_data_may_share(tmp_path: Path, line: str) -> None:
    text = DDP.replace("data = T", f"{line}\ndata = T")
    assert noted(tmp_path, f"def load(**options): ...\nstride = 1\n{text}") == []


def test_data_that_is_made_in_the_loader_gets_a_name(tmp_path: Path) -> None:
    made = "TensorDataset(torch.ones(64, 8))"
    text = DDP.replace(f"data = {made}\n", "").replace("DataLoader(data", f"DataLoader({made}")
    (said,) = noted(tmp_path, text.replace("torch.utils.data", "torch.utils.data"))
    assert f"write dataset = {made}, sampler = DistributedSampler(dataset, shuffle=True)" in said
    assert "DataLoader(dataset, batch_size=16, sampler=sampler)" in said
    (said,) = noted(tmp_path, text.replace("torch.ones(64, 8)", f"torch.ones(64, {'8 + ' * 20}1)"))
    assert "write dataset = TensorDataset(...), sampler" in said
