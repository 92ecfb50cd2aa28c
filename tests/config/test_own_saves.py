"""A script that saves in its loop is told how the next job goes on from that."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.scripts.own_saves import note_on_own_saves

LOOP = """import torch
net = torch.nn.Linear(2, 2)
for epoch in range(9):
    torch.save(net.state_dict(), {file})
"""
FUNCTION = """import torch
def save(net, epoch):
    torch.save(net.state_dict(), f"out/{epoch}.pt")
for epoch in range(9):
    save(None, epoch)
torch.load("out/1.pt")
"""
NOT_KNOWN = "which no key names, and two stops without a known checkpoint end the run"
OPTION = """import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--resume"{more})
while True:
    torch.save({{}}, "last.pt")
    torch.load("last.pt")
"""


def note(folder: Path, text: str, *words: str) -> str:
    (folder / "train.py").write_text(text)
    loaded = load(folder / "train.py", [*words])
    return note_on_own_saves(loaded.config, folder)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LOOP.format(file="'model.pt'"), "train.py:4 saves model.pt by itself, and a job that"),
        (LOOP.format(file="'model.pt'"), "write script.resume.when=model.pt, and load it where"),
        (LOOP.format(file="f'ckpt/{epoch:03}.pt'"), "write script.resume.when=ckpt/*.pt, and"),
        (LOOP.format(file="name"), "train.py:4 saves by itself"),
        (LOOP.format(file="name"), "write script.resume.when=FILE, and load it"),
        (LOOP.format(file="f='a.pt'"), "write script.resume.when=a.pt"),
        (FUNCTION, "train.py:3 saves out/*.pt by itself"),
        (
            OPTION.format(more=""),
            "\"script.resume={when: last.pt, args: [--resume, '{newest}']}\"",
        ),
        (
            OPTION.format(more=", action='store_true'"),
            'write "script.resume={when: last.pt, args: [--resume]}"',
        ),
        (
            OPTION.replace("--resume", "-resume").format(more=", action='store_true'"),
            'write "script.resume={when: last.pt, args: [-resume]}"',
        ),
        (
            OPTION.replace("--resume", "--checkpoint").format(more=", action='store_true'"),
            "write script.resume.when=last.pt",
        ),
        (LOOP.format(file="'./out/a.pt'"), "train.py:4 saves out/a.pt by itself"),
    ],
)
def test_a_loop_that_saves_is_told_what_to_name(tmp_path: Path, text: str, said: str) -> None:
    assert said in note(tmp_path, text)


def test_one_that_loads_is_not_told_to_load(tmp_path: Path) -> None:
    assert note(tmp_path, FUNCTION).endswith("write script.resume.when=out/*.pt")


@pytest.mark.parametrize(
    ("more", "args"),
    [("", ["--resume", "{newest}"]), (", action='store_true'", ["--resume"])],
)
def test_what_is_told_is_taken(tmp_path: Path, more: str, args: list[str]) -> None:
    text = OPTION.format(more=more)
    word = note(tmp_path, text).rpartition("write ")[2].strip('"')
    assert note(tmp_path, text, word) == ""
    loaded = load(tmp_path / "train.py", [word])
    assert loaded.config.script.resume == {"when": "last.pt", "args": args}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LOOP.format(file="'model.pt'"), ["script.resume.when=model.pt"]),
        (LOOP.format(file="'model.pt'"), ["requeue.enabled=false"]),
        ("import pytorch_lightning as pl\n" + LOOP.format(file="'model.pt'"), []),
        ("from lightning.pytorch import Trainer\n" + LOOP.format(file="'model.pt'"), []),
        ("import nets\n" + LOOP.format(file="'model.pt'"), []),
        ("import pack.nets\n" + LOOP.format(file="'model.pt'"), []),
        ("import torch\nfor it in range(3): pass\ntorch.save({}, 'model.pt')\n", []),
        ("import torch\nfor it in range(3): print(it)\n", []),
    ],
)
def test_others_are_told_nothing(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "nets.py").write_text("from pytorch_lightning import Trainer\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "nets.py").write_text("def f():\n    import lightning\n")
    assert note(tmp_path, text, *words) == ""


def test_a_module_beside_it_without_lightning_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("import torch\n")
    assert note(tmp_path, "import nets\n" + LOOP.format(file="'model.pt'"))


def test_a_package_of_models_beside_it_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("from .small import *\n")
    (tmp_path / "models" / "small.py").write_text("import torch\n")
    assert note(tmp_path, "from models import *\n" + LOOP.format(file="'model.pt'"))


def test_arguments_may_have_any_name(tmp_path: Path) -> None:
    text = """import argparse, torch
p = argparse.ArgumentParser()
p.add_argument("--out", default="out/rivers.pt")
p.add_argument("--resume")
a = p.parse_args()
for epoch in range(9):
    torch.save({}, a.out)
torch.load(a.resume)
"""
    assert "write \"script.resume={when: out/rivers.pt, args: [--resume, '{newest}']}\"" in note(
        tmp_path, text
    )


def test_a_method_and_a_helper_that_save_are_told_as_well(tmp_path: Path) -> None:
    text = """import torch
class Trainer:
    def __init__(self, snapshot_path):
        self.snapshot_path = snapshot_path
    def save(self):
        torch.save({}, self.snapshot_path)
    def train(self):
        for epoch in range(3):
            self.save()
def main(snapshot_path="./snapshot.pt"):
    torch.load(snapshot_path)
    Trainer(snapshot_path).train()
main()
"""
    said = f"train.py:6 saves snapshot.pt by itself, {NOT_KNOWN}"
    assert note(tmp_path, text).endswith(f"{said}: write script.resume.when=snapshot.pt")
    (tmp_path / "utils.py").write_text(
        "import torch\ndef save_on_master(*args, **kwargs):\n    torch.save(*args, **kwargs)\n"
        "def log(*args):\n    print(*args)\ndef restart(path):\n    torch.load(path)\n"
    )
    text = "import utils\nfor epoch in range(3):\n    utils.log(1, 'b')\n    {}"
    told = note(tmp_path, text.format("utils.save_on_master({}, 'a.pth')\n"))
    said = f"train.py:4 saves a.pth by itself, {NOT_KNOWN}"
    assert told.endswith(f"{said}: write script.resume.when=a.pth")
    assert note(tmp_path, text.format("print(epoch)\n")) == ""


def test_a_file_with_several_defaults_is_not_guessed(tmp_path: Path) -> None:
    text = (
        "import torch\ndef a(path='a.pt'): pass\ndef b(path='b.pt'): pass\n"
        "for path in 'ab':\n    torch.save({}, path)\n"
    )
    assert "script.resume.when=FILE" in note(tmp_path, text)


PARSED = """import argparse, os, torch
from pathlib import Path
p = argparse.ArgumentParser()
p.add_argument("--checkpoint-dir", type=Path, default="./out/")
p.add_argument("--name", default="net")
args = p.parse_args()
for epoch in range(3):
    {}
"""


@pytest.mark.parametrize(
    ("save", "words", "when"),
    [
        ("torch.save(1, args.checkpoint_dir / 'a.pth')", [], "out/a.pth"),
        ("torch.save(1, args.checkpoint_dir / 'a.pth')", ["--checkpoint-dir", "ck"], "ck/a.pth"),
        ("torch.save(1, args.checkpoint_dir / 'a.pth')", ["--check=/ck"], "/ck/a.pth"),
        ("torch.save(1, os.path.join(args.checkpoint_dir, f'{epoch}.pt'))", [], "out/*.pt"),
        ("torch.save(1, str(args.checkpoint_dir) + '/a.pt')", [], "out/a.pt"),
        ("torch.save(1, f'{args.checkpoint_dir}/{args.name}-{epoch + 1}.pt')", [], "out/net-*.pt"),
        ("torch.save(1, 'out/{}-{:04d}.pt'.format(args.name, epoch))", [], "out/net-*.pt"),
        ("torch.save(1, 'out/a_%04d.pt' % epoch)", [], "out/a_*.pt"),
        ("to = args.checkpoint_dir / 'a.pth'; torch.save(1, to)", [], "out/a.pth"),
        ("for to in [args.checkpoint_dir / 'a.pth']: torch.save(1, to)", [], "out/a.pth"),
        ("with open(args.checkpoint_dir / 'a', 'wb') as f: torch.save(1, f)", [], "out/a"),
        ("torch.save(1, args.other / 'a.pth')", [], "FILE"),
        ("args.checkpoint_dir = other(); torch.save(1, args.checkpoint_dir / 'a.pth')", [], "FILE"),
        ("torch.save(1, f'{folder}/a.pt')", [], "FILE"),
        ("torch.save(1, folder / 'a.pt')", [], "FILE"),
        ("for to in 'ab': torch.save(1, to)", [], "FILE"),
    ],
)
def test_the_file_is_told_as_the_arguments_name_it(
    tmp_path: Path, save: str, words: list[str], when: str
) -> None:
    (tmp_path / "train.py").write_text(PARSED.format(save))
    loaded = load(tmp_path / "train.py", [], arguments=words)
    assert f"script.resume.when={when}, and" in note_on_own_saves(loaded.config, tmp_path)


SAVER = """import torch
def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
"""


@pytest.mark.parametrize(
    ("call", "when"),
    [
        ("save_checkpoint({}, False)", "checkpoint.pth.tar"),
        ("save_checkpoint({}, False, 'a.tar')", "a.tar"),
        (
            "save_checkpoint({}, is_best=False, filename='c_{:04d}.pth.tar'.format(epoch))",
            "c_*.pth.tar",
        ),
    ],
)
def test_a_function_that_saves_is_asked_what_it_is_given(
    tmp_path: Path, call: str, when: str
) -> None:
    text = f"{SAVER}for epoch in range(3):\n    {call}\n"
    assert f"train.py:3 saves {when} by itself" in note(tmp_path, text)


def test_a_loop_and_a_function_in_another_file_are_told_as_well(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "saver.py").write_text(SAVER)
    text = "from lib import saver\nfor epoch in range(3):\n    {}\n"
    told = note(tmp_path, text.format("saver.save_checkpoint({}, False)"))
    assert "lib/saver.py:3 saves checkpoint.pth.tar by itself, and a job" in told
    assert note(tmp_path, text.format("print(saver)")) == ""
    loop = "class Trainer:\n    def run(self):\n        while True: torch.save(1, 'a.pt')\n"
    (tmp_path / "lib" / "loop.py").write_text(f"import torch\n{loop}")
    told = note(tmp_path, "from lib.loop import Trainer\nTrainer().run()\n")
    assert "lib/loop.py:4 saves a.pt by itself" in told
    submits = "import submitit\nsubmitit.AutoExecutor('logs').submit(Trainer)\n"
    assert note(tmp_path, f"from lib.loop import Trainer\n{submits}") == ""  # it trains nothing
