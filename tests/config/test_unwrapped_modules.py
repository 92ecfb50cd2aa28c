"""Scripts that train several modules, each with an optimizer of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.config.files import told_of_script, write

ALONE = """\
import torch
from torch import nn
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 1)
    def forward(self, x):
        return self.body(x)
maker = nn.Linear(8, 8)
critic = Critic()
opt_m = torch.optim.Adam(maker.parameters(), lr=0.1)
opt_c = torch.optim.Adam(critic.parameters(), lr=0.1)
# wrapped here
for x in torch.ones(4, 16, 8):
    opt_m.zero_grad()
    critic(maker(x)).sum().backward()
    opt_m.step()
    opt_c.zero_grad()
    critic(x).sum().backward()
    opt_c.step()
torch.save(maker.state_dict(), "maker.pt")
"""
WRAP = "torch.nn.parallel.DistributedDataParallel"
BOTH = f"maker = {WRAP}(maker) and critic = {WRAP}(critic)"
GROUP = "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
HALF = ALONE.replace("# wrapped here", f"maker = {WRAP}(maker)").replace(
    "from torch import nn\n", f"from torch import nn\n{GROUP}"
)
SAID = (
    "train.py:14 makes opt_c for critic, which is in no DistributedDataParallel (maker is in one):"
    " each of 2 ranks trains its own critic; write critic ="
    f" {WRAP}(critic) behind line 14"
)
told = partial(told_of_script, about="DistributedDataParallel")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_fix_of_a_script_for_one_process_names_each_module(tmp_path: Path) -> None:
    refused, _ = told(tmp_path, ALONE)
    assert refused is not None
    assert refused[1].endswith(
        f"write torch.distributed.init_process_group() and {BOTH} behind line 12"
    )


def test_the_fix_of_one_that_wraps_nothing_names_each_module(tmp_path: Path) -> None:
    refused, _ = told(tmp_path, HALF.replace(f"maker = {WRAP}(maker)", ""))
    assert refused is not None
    assert refused[1].startswith(f"write {BOTH} behind line 14, or")


def test_three_modules_of_one_optimizer_are_named(tmp_path: Path) -> None:
    chain = "list(maker.parameters()) + list(critic.parameters()) + list(last.parameters())"
    text = ALONE.replace("maker.parameters()", chain).replace(
        "maker = nn", "last = nn.Linear(1, 1)\nmaker = nn"
    )
    refused, _ = told(tmp_path, text)
    assert refused is not None
    assert f"maker = {WRAP}(maker), critic = {WRAP}(critic) and last = {WRAP}(last)" in refused[1]


def test_modules_made_in_two_functions_are_wrapped_in_each(tmp_path: Path) -> None:
    text = """\
import torch
def one():
    net = torch.nn.Linear(8, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(8)).sum().backward()
    sgd.step()
def two():
    head = torch.nn.Linear(8, 1)
    adam = torch.optim.Adam(head.parameters(), lr=0.1)
    head(torch.ones(8)).sum().backward()
    adam.step()
one()
two()
"""
    refused, _ = told(tmp_path, text)
    assert refused is not None
    net, head = (f"{it} = {WRAP}({it}) behind line" for it in ("net", "head"))
    assert refused[1].endswith(f" and {net} 4, and {head} 9")


def test_what_clips_gradients_is_no_optimizer(tmp_path: Path) -> None:
    text = ALONE.replace("    opt_m.step", "    n = clip(critic.parameters(), 1)\n    opt_m.step")
    text = text.replace("import torch\n", "from torch.nn.utils import clip_grad_norm_ as clip\n", 1)
    refused, _ = told(tmp_path, f"import torch\n{text}")
    assert refused is not None
    assert refused[1].endswith(f"{BOTH} behind line 13")


def test_a_fabric_sets_up_each_with_its_optimizer(tmp_path: Path) -> None:
    made = "from lightning.fabric import Fabric\nfabric = Fabric()\nfabric.launch()\n"
    text = ALONE.replace("from torch import nn\n", f"from torch import nn\n{made}")
    refused, _ = told(tmp_path, text.replace("# wrapped here\n", ""))
    assert refused is not None
    maker, critic = (f"{a}, {b} = fabric.setup({a}, {b})" for a, b in (M, C))
    assert refused[1].startswith(f"write {maker} behind line 14, and {critic} behind line 15, or")


M, C = ("maker", "opt_m"), ("critic", "opt_c")


def test_one_that_is_in_no_wrap_beside_one_that_is_is_noted(tmp_path: Path) -> None:
    assert told(tmp_path, HALF) == (None, [SAID])
    assert told(tmp_path, HALF, gpus=1) == (None, [])
    assert told(tmp_path, HALF, "script.launcher=none") == (None, [])
    assert "each of 3 ranks" in told(tmp_path, HALF, gpus=3)[1][0]


def test_the_line_to_write_has_what_the_other_has(tmp_path: Path) -> None:
    text = HALF.replace(f"{WRAP}(maker)", "DDP(maker, device_ids=[here])").replace(
        "import torch\n", f"import torch\nfrom torch.nn.parallel import {WRAP[18:]} as DDP\n", 1
    )
    text = text.replace("maker = nn", "here = 0\nmaker = nn")
    _, (said,) = told(tmp_path, text)
    assert said.endswith("write critic = DDP(critic, device_ids=[here]) behind line 16")
    mended = text.replace("for x in", "critic = DDP(critic, device_ids=[here])\nfor x in")
    assert told(tmp_path, mended) == (None, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("critic = Critic()", "critic = Critic().to('cpu')"),
        ("critic = Critic()", "critic = Critic()\ncritic = critic.to('cpu')"),
        ("critic = Critic()", "critic = Critic()\nprint(critic)\ncritic.train()"),
        ("critic = Critic()", "critic = nn.Sequential(nn.Linear(8, 8), nn.ReLU())"),
        ("import torch\n", "import torch\nif True:\n    pass\n"),
        ("    opt_c.step()", "    opt_c.step()\n    if dist.get_rank() == 0: print(x)"),
        ("    opt_c.step()", "    opt_c.step()\n    dist.all_reduce(x)"),
    ],
)
def test_what_else_is_done_with_it_leaves_the_note(tmp_path: Path, old: str, new: str) -> None:
    refused, said = told(tmp_path, HALF.replace(old, new, 1))
    assert refused is None
    assert ["trains its own critic" in it for it in said] == [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("critic = Critic()", f"critic = {WRAP}(Critic())"),
        ("critic = Critic()", f"critic = wrapped = Critic()\nwrapped = {WRAP}(wrapped)"),
        ("critic = Critic()", f"critic = Critic()\ncritics = [{WRAP}(it) for it in [critic]]"),
        ("critic = Critic()", "critic = Critic()\nfrom helper import share\nshare(critic)"),
        ("critic = Critic()", "from helper import share\ncritic = share(Critic())"),
        ("critic = Critic()", "critic = maker.module"),
        ("self.body = nn.Linear(8, 1)", f"self.body = {WRAP}(nn.Linear(8, 1))"),
        ("    opt_c.step()", "    [dist.all_reduce(p.grad) for p in critic.parameters()]"),
        ("    opt_c.step()", "    for p in critic.parameters(): dist.broadcast(p, 0)"),
        ("    opt_c.step()", "    pass"),
        ("critic = Critic()", "critic = Critic()\nfor p in critic.parameters():\n    p.register()"),
        ("opt_c = torch", "critic.register_comm_hook(None, None)\nopt_c = torch"),
        ("import torch\n", "import torch, deepspeed\n"),
        ("    critic(x).sum()", "    if dist.get_rank() == 0: critic(x)\n    critic(x).sum()"),
    ],
)
def test_what_may_be_shared_or_meant_is_not_noted(tmp_path: Path, old: str, new: str) -> None:
    write(tmp_path, "def share(net):\n    return net\n", "helper.py")
    assert old in HALF
    refused, said = told(tmp_path, HALF.replace(old, new, 1))
    assert refused is None or "deepspeed" in refused[0]
    if "p.register()" not in new:
        assert not any("its own critic" in it for it in said)
