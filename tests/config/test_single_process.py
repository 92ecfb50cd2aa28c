"""A script for one process on several ranks: told before the queue."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.config.files import told_of_script, write

ALONE = """\
import torch
net = torch.nn.Linear(8, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
net.train()
for x in torch.ones(4, 16, 8):
    loss = net(x).sum()
    loss.backward()
    sgd.step()
torch.save(net.state_dict(), "net.pt")
"""
SAID = (
    "train.py:8 takes optimizer steps, and nothing makes a process group: 2 ranks would each train"
    " by themselves and write the same files"
)
WRAP = (
    "write torch.distributed.init_process_group() and net ="
    " torch.nn.parallel.DistributedDataParallel(net) behind line 3"
)
FIX = f"start it with --nodes 1 --gpus 1; or {WRAP}"
PARALLEL = "with --nodes 1 script.launcher=none, as one process that has the node's GPUs"
OWN = "from torch import optim\ndef fit(net, loss):\n    loss.backward()\n    {more}step()\n"


told = partial(told_of_script, about="process group")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_one_without_a_process_group_is_refused_on_several_ranks(tmp_path: Path) -> None:
    assert told(tmp_path, ALONE) == ((SAID, FIX), [])
    assert told(tmp_path, ALONE, "script.launcher=torchrun") == ((SAID, FIX), [])
    refused, _ = told(tmp_path, ALONE, "slurm.nodes=3", gpus=1)
    assert refused == (SAID.replace("2 ranks", "3 ranks"), FIX)


def test_what_it_is_told_to_write_is_taken(tmp_path: Path) -> None:
    assert told(tmp_path, ALONE, gpus=1) == (None, [])
    first, behind = WRAP.removeprefix("write ").removesuffix(" behind line 3").split(" and ")
    lines = ALONE.splitlines()
    mended = "\n".join([lines[0], "import torch.distributed", first, *lines[1:3], behind])
    assert told(tmp_path, "\n".join([mended, *lines[3:]])) == (None, [])


def test_one_that_spreads_batches_over_gpus_itself_may_be_the_one_process(tmp_path: Path) -> None:
    text = ALONE.replace("net.train()", "net = torch.nn.DataParallel(net)")
    hint = f"start it with --nodes 1 --gpus 1; or {PARALLEL}; or {WRAP}"
    assert told(tmp_path, text) == ((SAID, hint), [])
    assert told(tmp_path, text, "script.launcher=none") == (None, [])


@pytest.mark.parametrize(
    "more",
    [
        "import os; os.environ['A'] = '1'",
        "print(world)",
        "local_rank = 0",
        "import socket; socket.gethostname()",
    ],
)
def test_one_that_may_tell_its_ranks_apart_is_noted(tmp_path: Path, more: str) -> None:
    assert told(tmp_path, f"{ALONE}{more}\n") == (None, [f"{SAID}; {FIX}"])


@pytest.mark.parametrize("more", ["sgd.", "self.schedule."])
def test_a_loop_beside_the_script_is_looked_at_as_well(tmp_path: Path, more: str) -> None:
    write(tmp_path, OWN.format(more=more), "loop.py")
    text = "import torch\nfrom loop import fit\nfit(None, None)\n"
    refused, _ = told(tmp_path, text)
    assert refused is not None
    assert refused[0].startswith("train.py:1 is for one process, and nothing makes a process group")
    write(tmp_path, f"import torch.distributed\n{OWN.format(more=more)}", "loop.py")
    assert told(tmp_path, text) == (None, [])


@pytest.mark.parametrize(
    "text",
    [
        f"import torch.distributed as d\nd.init_process_group()\n{ALONE}",
        f"from torch.nn.parallel import DistributedDataParallel\n{ALONE}",
        f"from accelerate import Accelerator\n{ALONE}",
        f"from transformers import Trainer\n{ALONE}",
        f"from lightning.fabric import Fabric\n{ALONE}",
        f"import horovod.torch as hvd\n{ALONE}",
        f"import torch.multiprocessing as mp\n{ALONE}",
        f"import subprocess\n{ALONE}",
        f"import a_library\n{ALONE}",
        f"import utils\nutils.setup()\n{ALONE}",
        f"def main():\n    from lazy import setup\n    setup()\nmain()\n{ALONE}",
        f"import importlib\nimportlib.import_module('x')\n{ALONE}",
        ALONE.replace("    sgd.step()\n", ""),
        ALONE.replace("    loss.backward()\n", ""),
    ],
)
def test_what_may_make_one_or_takes_no_steps_is_not_told(tmp_path: Path, text: str) -> None:
    write(
        tmp_path, "import torch.distributed as d\ndef setup(): d.init_process_group()\n", "utils.py"
    )
    write(tmp_path, "from utils import setup\n", "lazy.py")
    refused, notes = told(tmp_path, text)
    assert notes == []
    assert refused is None or "would each train" not in refused[0]


def test_one_that_may_take_no_steps_is_left_to_the_job(tmp_path: Path) -> None:
    assert told(tmp_path, ALONE, "script.may_take_no_steps=true") == (None, [])


@pytest.mark.parametrize(
    "more",
    [
        "use = torch.accelerator.is_available()",
        "device = torch.accelerator.current_accelerator()",
        "from multiprocessing import Pool\nwith Pool() as pool: pool.map(len, ['a'])",
        "import multiprocessing\ncount = multiprocessing.cpu_count()",
        "from multiprocessing.pool import ThreadPool\nThreadPool(2)",
        "from multiprocessing import cpu_count",
        "pool = torch.nn.MaxPool2d(2)",
    ],
)
def test_a_device_and_a_pool_make_no_group(tmp_path: Path, more: str) -> None:
    assert told(tmp_path, f"{ALONE}{more}\n") == ((SAID, FIX), [])


@pytest.mark.parametrize(
    "more",
    [
        "from multiprocessing import Pool, Process",
        "import multiprocessing as mp\nmp.Pool()",
        "import multiprocessing\nmultiprocessing.Process(target=print)",
        "import torch.multiprocessing\nfrom multiprocessing import Pool",
        "accelerator = Accelerator()",
    ],
)
def test_what_may_start_ranks_beside_them_is_not_told(tmp_path: Path, more: str) -> None:
    assert told(tmp_path, f"{ALONE}{more}\n")[0] is None


def test_a_model_that_steps_itself_is_wrapped_where_it_is_made(tmp_path: Path) -> None:
    text = ALONE.replace("net.parameters()", "self.parameters()").replace("lr=0.1", "lr=1")
    _, fix = told(tmp_path, text)[0] or ("", "")
    assert fix.endswith("model = torch.nn.parallel.DistributedDataParallel(model) before its loop")


def test_what_is_imported_in_a_function_is_read_as_well(tmp_path: Path) -> None:
    text = f"from nets import make\nmake()\n{ALONE}"
    for number, inner in enumerate(("from models.small import Net", "from models import small")):
        write(tmp_path, f"def make():\n    {inner}\n", "nets.py")
        write(tmp_path, "import torch\nclass Net(torch.nn.Module): pass\n", "models/small.py")
        refused, _ = told(tmp_path, text)
        assert refused is not None, number
        assert refused[0].startswith("train.py:10 takes optimizer steps")
        write(tmp_path, "import torch.distributed as dist\n", "models/small.py")
        assert told(tmp_path, text) == (None, [])


TRAINER = """\
import torch
from torch.utils.data.dataloader import DataLoader
class Trainer:
    def __init__(self, config, net): self.net, self.system = net, config.system
    def run(self):
        sgd = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for x in torch.ones(4, 8):
            self.net(x).sum().backward()
            sgd.step()
"""
STARTS = """\
import os
import torch
from mini.trainer import Trainer
trainer = Trainer(torch, torch.nn.Linear(8, 1))
if __name__ == "__main__":
    trainer.run()
"""
ELSEWHERE = (
    "train.py:3 trains by {}mini/trainer.py, whose line 9 takes optimizer steps, and nothing makes"
    " a process group: each of the 2 ranks would end at its first step; start it with --nodes 1"
    " --gpus 1; or write torch.distributed.init_process_group() and wrap the model by"
    " DistributedDataParallel there"
)


@pytest.mark.parametrize("where", ["", "lib/"])
def test_steps_in_a_module_of_ones_own_are_noted(tmp_path: Path, where: str) -> None:
    write(tmp_path, TRAINER, f"{where}mini/trainer.py")
    word = [f"env.variables.PYTHONPATH={tmp_path / where}"] if where else []
    assert told(tmp_path, STARTS, *word) == (None, [ELSEWHERE.format(where)])
    assert told(tmp_path, STARTS, *word, gpus=1) == (None, [])
    assert told(tmp_path, STARTS, *word, "script.launcher=none") == (None, [])
    assert told(tmp_path, STARTS, *word, "script.may_take_no_steps=true") == (None, [])


@pytest.mark.parametrize(
    ("script", "trainer"),
    [
        ("", "import torch.distributed as dist\n"),
        ("", "from transformers import Trainer as Base\n"),
        ("", "from lightning.pytorch import Trainer as Base\n"),
        ("", "import unknown_package\n"),
        ("", "from torch.nn.parallel import DistributedDataParallel\n"),
        ("os.system('ls $HOME')\n", ""),
        ("torch.multiprocessing.spawn(print)\n", ""),
        ("import mini.groups\n", ""),
    ],
)
def test_steps_elsewhere_that_may_be_joined_are_left_alone(
    tmp_path: Path, script: str, trainer: str
) -> None:
    write(tmp_path, trainer + TRAINER, "mini/trainer.py")
    write(tmp_path, "import torch\ntorch.distributed.init_process_group()\n", "mini/groups.py")
    write(tmp_path, "", "unknown_package.pyi")
    refused, notes = told(tmp_path, STARTS.replace("trainer =", f"{script}trainer ="))
    assert notes == []
    assert refused is None or "trains by" not in refused[0]
