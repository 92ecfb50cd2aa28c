"""What the old class was given, where the command line names another: what to give again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.load import load
from tests.config.files import MINIMAL, write

NETS = """\
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def __init__(self, lr=1, width=2, name="a", key="", sizes=()): super().__init__()
class Other(pl.LightningModule):
    def __init__(self, lr, name="", api_key="", sizes=()): super().__init__()
class Open(pl.LightningModule):
    def __init__(self, **more): super().__init__()
class Bare(pl.LightningModule):
    def __init__(self): super().__init__()
"""
LEFT_OUT = "names another class, and what the old one was given is left out: "


@pytest.mark.parametrize(
    ("given", "word", "again"),
    [
        (
            "lr: 0.01, width: 2",
            "model.class_path=nets.Other",
            "give again what the new one takes: model.init_args.lr=0.01",
        ),
        (
            "lr: 1e-3, width: 2, name: res-18",
            "model.class_path=nets.Other",
            "what the new one takes: model.init_args.lr=0.001 model.init_args.name=res-18",
        ),
        (
            "api_key: abc, sizes: [1, 2], name: a b",
            "model.class_path=nets.Other",
            (
                "give again what the new one takes: model.init_args.api_key=..."
                " model.init_args.sizes=... model.init_args.name=..."
            ),
        ),
        ("lr: 1, width: 2", "model.class_path=nets.Bare", "the new one takes none of them"),
        ("width: 2", "model.class_path=nets.Bare", "the new one takes no such argument"),
        ("width: 2", "model.class_path=nets.Open", "takes: model.init_args.width=..."),
        ("width: 2", "model.class_path=nets.Absent", "takes: model.init_args.width=..."),
    ],
)
def test_of_what_is_left_out_the_new_class_is_told_what_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, word: str, again: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, NETS, "nets.py")
    form = f"{{class_path: nets.Net, init_args: {{{given}}}}}"
    text = MINIMAL.replace("{class_path: nets.Net}", form)
    (note,) = [it for it in load(write(tmp_path, text), [word]).notes if LEFT_OUT in it]
    assert note.endswith(again)


def test_of_a_target_and_of_an_item_of_a_list_the_new_class_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, NETS, "nets.py")
    of = "{_target_: nets.Net, lr: 0.01, width: 2}"
    text = MINIMAL.replace("{class_path: nets.Net}", of)
    notes = load(write(tmp_path, text), ["model._target_=nets.Other"]).notes
    assert notes[0].endswith("left out: model.lr, model.width; give again what the new one takes:"
                             " model.lr=0.01")  # fmt: skip
    item = "{class_path: nets.Net, init_args: {lr: 0.01, width: 2}}"
    text = f"{MINIMAL}trainer: {{callbacks: [{item}]}}\n"
    notes = load(write(tmp_path, text), ["trainer.callbacks.0.class_path=nets.Other"]).notes
    assert notes[0].endswith("takes: trainer.callbacks.0.init_args.lr=0.01")


def test_a_class_of_a_notebook_is_left_to_its_own_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    form = "{class_path: nets.Net, init_args: {lr: 1}}"
    path = write(tmp_path, MINIMAL.replace("{class_path: nets.Net}", form))
    (note,) = load(path, ["model.class_path=__main__.Net"]).notes
    assert note.endswith("give again what the new one takes: model.init_args.lr=...")
